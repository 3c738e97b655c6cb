"""What routes are given: the engine, the settings, ids that are ids, and answers with an ETag."""

from __future__ import annotations

import hashlib
from pathlib import Path as FilePath
from typing import Annotated

from fastapi import Depends, Path, Query, Request, Response
from pydantic import BaseModel
from sqlalchemy import Engine

from api.follow import Follower
from api.settings import Settings
from api.slots import Slots
from db import ids
from nas.text import NAME

SearchId = Annotated[str, Path(pattern=ids.PATTERN, description="id of the search")]
ArtifactId = Annotated[str, Path(pattern=ids.PATTERN, description="id of the artifact")]
ArchitectureId = Annotated[str, Path(pattern=ids.PATTERN, description="id of the architecture")]
RuleId = Annotated[str, Path(pattern=ids.PATTERN, description="id of the rule")]
TableId = Annotated[str, Path(pattern=r"^[0-9a-f]{32}$", description="id of the table: hash of its content")]
DatasetName = Annotated[str, Path(pattern=NAME, description="name of the text")]
BIGGEST = 2**63 - 1  # what a column holds; beyond it the driver fails
Cursor = Annotated[str | None, Query(max_length=400, description="`next` of the page before")]


def _engine(request: Request) -> Engine:
    engine: Engine = request.app.state.engine
    return engine


def _settings(request: Request) -> Settings:
    settings: Settings = request.app.state.settings
    return settings


def _follower(request: Request) -> Follower:
    follower: Follower = request.app.state.follower
    return follower


def _uploads(request: Request) -> Slots:
    uploads: Slots = request.app.state.uploads
    return uploads


def _data_dir(request: Request) -> FilePath:
    return _settings(request).data_dir


Database = Annotated[Engine, Depends(_engine)]
Streams = Annotated[Follower, Depends(_follower)]
Uploads = Annotated[Slots, Depends(_uploads)]
AppSettings = Annotated[Settings, Depends(_settings)]
DataDir = Annotated[FilePath, Depends(_data_dir)]


def tagged(request: Request, answer: BaseModel) -> Response:
    """The answer with a strong ETag of its own bytes; to GET, 304 where the client has just these."""
    body = answer.model_dump_json().encode()
    etag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    # Only GET: a change has been made by now, and its answer must not be lost.
    if request.method == "GET" and matches(request, etag):
        return Response(status_code=304, headers={"ETag": etag})
    return Response(body, media_type="application/json", headers={"ETag": etag})


def matches(request: Request, etag: str) -> bool:
    """Whether If-None-Match names this ETag (RFC 9110, section 13.1.2: by weak comparison)."""
    given = [each.strip().removeprefix("W/") for each in request.headers.get("if-none-match", "").split(",")]
    return etag in given or "*" in given
