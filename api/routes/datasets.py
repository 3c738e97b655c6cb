"""Datasets and uploaded tokenizers: list, look, remove. Uploads are in `api.routes.uploads`."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path, PurePath

from fastapi import APIRouter, Request, Response
from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

from api import dataset_schemas, encodings, kept_files, regular, schemas, views
from api.cards import kind_of
from api.deps import Database, DataDir, DatasetName, tagged
from api.errors import ApiError
from db import datasets
from db.engine import reading, transaction
from db.errors import NotFound
from nas import catalog

router = APIRouter(prefix="/api/v1/datasets", tags=["datasets"])
log = logging.getLogger("blockwright.api")

EXCERPT = 1000  # characters


def is_built_in(name: str) -> bool:
    """Whether the name is a built-in corpus or a synthetic task, which nobody adds or removes."""
    return name in catalog.DATASETS or name in catalog.TASKS


@router.get("", response_model=schemas.Page[dataset_schemas.Dataset])
def list_datasets(request: Request, engine: Database) -> Response:
    """Built-in texts, then synthetic tasks, then what was uploaded, by name."""
    with reading(engine) as connection:
        stored = {row.name: row for row in datasets.list(connection)}
        uses = datasets.uses(connection)
    names = [*catalog.DATASETS, *catalog.TASKS, *(name for name in stored if not is_built_in(name))]
    items = [views.dataset(name, stored.get(name), n_uses=uses.get(name, 0)) for name in names]
    return tagged(request, schemas.Page[dataset_schemas.Dataset](items=items))


@router.get("/{name}", response_model=dataset_schemas.DatasetDetail)
def get_dataset(name: DatasetName, request: Request, engine: Database, data_dir: DataDir) -> Response:
    """One dataset: its beginning, the searches that need it, and what it has been encoded with."""
    with reading(engine) as connection:
        try:
            row = datasets.get(connection, name)
        except NotFound:
            if not is_built_in(name):
                raise
            row = None  # not used yet, or drawn on the fly
        users = datasets.in_use_by(connection, name)
    seen = views.dataset(name, row, n_uses=len(users))
    excerpt, found = None, []
    if row is not None:
        excerpt = _excerpt(data_dir, row)
        found = encodings.of_dataset(data_dir, row.fingerprint)
    detail = dataset_schemas.DatasetDetail(**seen.model_dump(), excerpt=excerpt, encodings=found, in_use_by=list(users))
    return tagged(request, detail)


def _excerpt(data_dir: Path, row: datasets.Dataset) -> str | None:
    if row.path is None or kind_of(row) != "text":
        return None
    start = regular.first_bytes(data_dir / row.path, 4 * EXCERPT)
    return None if start is None else start.decode(errors="ignore")[:EXCERPT]


@router.delete("/{name}", status_code=204, response_model=None)
def remove_dataset(name: DatasetName, engine: Database, data_dir: DataDir) -> Response:
    """Remove an upload that no queued or running search names. Finished searches keep what they have read."""
    if is_built_in(name):
        raise ApiError(409, "built-in", f"dataset {name!r} is built in; it cannot be removed")
    file = None
    try:
        with transaction(engine) as connection:
            removed = datasets.remove(connection, name)
            assert removed.path is not None  # `remove` takes uploads only
            file = PurePath(removed.path).name
            if datasets.unused(connection, removed.fingerprint):
                kept_files.set_aside(data_dir, file)
    finally:
        if file is not None:
            _settle(engine, data_dir, [file])
    return Response(status_code=204)


def clean_up(engine: Engine, data_dir: Path) -> None:
    """Finish what a killed api has left: parts of uploads, and removals that were on their way.

    A file that no row names is none of these and stays: it may belong to another database.
    """
    kept_files.remove_left_over_parts(data_dir)
    _settle(engine, data_dir, kept_files.aside(data_dir))


def _settle(engine: Engine, data_dir: Path, files: Sequence[str]) -> None:
    """A file that was set aside goes if its row has gone, with what was encoded of it, and comes back if it has not."""
    try:
        for file in files:
            fingerprint = kept_files.fingerprint_of(file)
            with transaction(engine) as connection:
                if datasets.unused(connection, fingerprint):
                    kept_files.remove_aside(data_dir, file)
                    encodings.remove(data_dir, fingerprint)
                else:
                    kept_files.bring_back(data_dir, file)
    except SQLAlchemyError as error:  # out of reach or not migrated, as /readyz says; the next start does it
        log.warning("removed datasets are kept for now: %s", str(error).splitlines()[0])
