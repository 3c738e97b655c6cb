"""Texts to train on: upload, list, look, remove. An upload is checked and hashed while it is read, never held whole."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError
from starlette.requests import ClientDisconnect

from api import encodings, regular, schemas, views
from api.cards import kind_of
from api.deps import AppSettings, Database, DataDir, DatasetName, Uploads, tagged
from api.errors import ApiError
from api.upload import (
    Received,
    Upload,
    aside,
    bring_back,
    remove_aside,
    remove_left_over_parts,
    set_aside,
    too_large,
)
from db import datasets
from db.engine import reading, transaction
from db.errors import NameTaken, NotFound
from nas import catalog
from nas.text import NAME

router = APIRouter(prefix="/api/v1/datasets", tags=["datasets"])
log = logging.getLogger("blockwright.api")

MEDIA_TYPES = ("text/plain", "application/octet-stream")
EXCERPT = 1000  # characters
BLOCK = 256 * 1024
_TEXT = {"schema": {"type": "string", "format": "binary"}}


@router.post(
    "",
    status_code=201,
    response_model=schemas.Dataset,
    max_body_size=2**62,  # in place of the service's: `max_dataset_bytes` holds here, at once and while it is read
    responses={200: {"model": schemas.Dataset, "description": "the name stands for this very text already"}},
    openapi_extra={"requestBody": {"required": True, "content": dict.fromkeys(MEDIA_TYPES, _TEXT)}},
)
async def add_dataset(
    name: Annotated[str, Query(pattern=NAME, description="what requests will call it")],
    request: Request,
    engine: Database,
    settings: AppSettings,
    uploads: Uploads,
) -> Response:
    """Upload a text: UTF-8, as the body itself, with a length or in chunks. A name means one text until removed."""
    _check_media_type(request)
    declared = _declared_length(request)
    if declared is not None and declared > settings.max_dataset_bytes:
        raise too_large(settings.max_dataset_bytes, declared)
    if _is_built_in(name):
        raise NameTaken(f"dataset {name!r} is built in; take another name")
    with uploads.one():
        if declared is not None:
            await run_in_threadpool(_refuse_another_length, engine, name, declared)
        upload = await run_in_threadpool(Upload, settings.data_dir, settings.max_dataset_bytes)
        try:
            async for block in _blocks(request, settings.upload_patience_s):
                await run_in_threadpool(upload.write, block)
            received = await run_in_threadpool(upload.finish)
            added = await run_in_threadpool(_keep, engine, name, upload, received)
        finally:
            upload.discard()
    answer = tagged(request, views.dataset(name, added.dataset, n_uses=0))
    answer.status_code = 201 if added.is_new else 200
    answer.headers["Location"] = f"/api/v1/datasets/{name}"
    return answer


def _check_media_type(request: Request) -> None:
    media_type, _, parameters = request.headers.get("content-type", MEDIA_TYPES[0]).lower().partition(";")
    if media_type.strip() not in MEDIA_TYPES:
        detail = f"the body must be {' or '.join(MEDIA_TYPES)}, not {media_type.strip()[:60] or 'nothing'}"
        raise ApiError(415, "unsupported-media-type", detail)
    charset = parameters.partition("charset=")[2].partition(";")[0].strip(' "')
    if charset not in ("", "utf-8", "utf8", "us-ascii"):
        raise ApiError(415, "unsupported-media-type", f"the text must be UTF-8, not {charset[:60]}")
    encoding = request.headers.get("content-encoding", "identity")
    if encoding.lower() != "identity":
        raise ApiError(415, "unsupported-media-type", f"the text must be sent as it is, not {encoding[:60]}")


def _declared_length(request: Request) -> int | None:
    """Content-Length, which the server has checked to be a number; None for a body in chunks."""
    length = request.headers.get("content-length")
    return int(length) if length is not None and "transfer-encoding" not in request.headers else None


def _refuse_another_length(engine: Engine, name: str, n_bytes: int) -> None:
    """Said before gigabytes are sent: a text of another length is another text."""
    with reading(engine) as connection:
        try:
            taken = datasets.get(connection, name)
        except NotFound:
            return
    if taken.n_bytes != n_bytes:
        raise NameTaken(f"dataset {name!r} is another text, of {taken.n_bytes} bytes; take another name")


async def _blocks(request: Request, patience_s: float) -> AsyncIterator[bytes]:
    """The body in blocks; only the last one is shorter than BLOCK."""
    chunks = request.stream()
    n_bytes, block, more = 0, bytearray(), True
    while more:
        try:
            async with asyncio.timeout(patience_s):
                while more and len(block) < BLOCK:
                    chunk = await anext(chunks, None)
                    more = chunk is not None
                    block += chunk or b""
        except TimeoutError:
            detail = f"less than {BLOCK} bytes came in {patience_s:g} s, after {n_bytes} bytes; send the text again"
            raise ApiError(408, "upload-incomplete", detail) from None
        except ClientDisconnect:
            detail = f"the connection broke off after {n_bytes + len(block)} bytes; send the text again"
            raise ApiError(400, "upload-incomplete", detail) from None
        n_bytes += len(block)
        yield bytes(block)
        block.clear()


def _keep(engine: Engine, name: str, upload: Upload, received: Received) -> datasets.Added:
    """The row and the file, both or neither. (Killed in between, a file stays that no name leads to.)"""
    try:
        with transaction(engine) as connection:
            return datasets.add(
                connection,
                name=name,
                fingerprint=received.fingerprint,
                n_bytes=received.n_bytes,
                path=received.path,
                put_in_place=lambda: upload.put_in_place(received),
            )
    except (SQLAlchemyError, ApiError):
        _take_back(engine, upload, received)
        raise


def _take_back(engine: Engine, upload: Upload, received: Received) -> None:
    """Remove the file unless a row names it: a commit may have gone through though its answer was lost, and another
    upload of the same text may have come between. Where that cannot be known, the file stays."""
    try:
        with transaction(engine) as connection:
            if datasets.unused(connection, received.fingerprint):
                upload.take_back()
    except SQLAlchemyError as error:
        log.warning("the file of a refused text is kept: %s", str(error).splitlines()[0])


@router.get("", response_model=schemas.Page[schemas.Dataset])
def list_datasets(request: Request, engine: Database) -> Response:
    """Built-in texts, then synthetic tasks, then what was uploaded, by name."""
    with reading(engine) as connection:
        stored = {row.name: row for row in datasets.list(connection)}
        uses = datasets.uses(connection)
    built_in = [*catalog.DATASETS, *catalog.TASKS]
    names = [*built_in, *(name for name in stored if name not in built_in)]
    items = [views.dataset(name, stored.get(name), n_uses=uses.get(name, 0)) for name in names]
    return tagged(request, schemas.Page[schemas.Dataset](items=items))


@router.get("/{name}", response_model=schemas.DatasetDetail)
def get_dataset(name: DatasetName, request: Request, engine: Database, data_dir: DataDir) -> Response:
    """One dataset: its beginning, the searches that need it, and what it has been encoded with."""
    with reading(engine) as connection:
        try:
            row = datasets.get(connection, name)
        except NotFound:
            if not _is_built_in(name):
                raise
            row = None  # not used yet, or never read
        users = datasets.in_use_by(connection, name)
    excerpt = None
    if row is not None and row.path is not None and kind_of(row) == "text":
        start = regular.first_bytes(data_dir / row.path, 4 * EXCERPT)
        excerpt = None if start is None else start.decode(errors="ignore")[:EXCERPT]
    seen = views.dataset(name, row, n_uses=len(users))
    found = [] if row is None else encodings.of_dataset(data_dir, row.fingerprint)
    detail = schemas.DatasetDetail(**seen.model_dump(), excerpt=excerpt, encodings=found, in_use_by=list(users))
    return tagged(request, detail)


def _is_built_in(name: str) -> bool:
    return name in catalog.DATASETS or name in catalog.TASKS


@router.delete("/{name}", status_code=204, response_model=None)
def remove_dataset(name: DatasetName, engine: Database, data_dir: DataDir) -> Response:
    """Remove an upload that no queued or running search names. Finished searches keep what they have read."""
    if _is_built_in(name):
        raise ApiError(409, "built-in", f"dataset {name!r} is built in; it cannot be removed")
    removed = None
    try:
        with transaction(engine) as connection:
            removed = datasets.remove(connection, name)
            if datasets.unused(connection, removed.fingerprint):
                set_aside(data_dir, removed.fingerprint)
    finally:
        if removed is not None:
            _settle(engine, data_dir, [removed.fingerprint])
    return Response(status_code=204)


def clean_up(engine: Engine, data_dir: Path) -> None:
    """Finish what a killed api has left: parts of uploads, and removals that were on their way.

    A text that no row names is none of these and stays: it may belong to another database.
    """
    remove_left_over_parts(data_dir)
    _settle(engine, data_dir, aside(data_dir))


def _settle(engine: Engine, data_dir: Path, fingerprints: Sequence[str]) -> None:
    """A text that was set aside goes if its row has gone, and comes back if it has not."""
    try:
        for fingerprint in fingerprints:
            with transaction(engine) as connection:
                if datasets.unused(connection, fingerprint):
                    remove_aside(data_dir, fingerprint)
                else:
                    bring_back(data_dir, fingerprint)
    except SQLAlchemyError as error:  # out of reach or not migrated, as /readyz says; the next start does it
        log.warning("removed texts are kept for now: %s", str(error).splitlines()[0])
