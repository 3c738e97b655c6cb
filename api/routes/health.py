"""For those who run the service: is it up, is it ready, which version is it."""

from __future__ import annotations

import platform

from fastapi import APIRouter
from sqlalchemy.exc import SQLAlchemyError

from api import schemas
from api.deps import Database
from api.errors import ApiError
from api.version import installed
from db import revision
from db.engine import reading

router = APIRouter(tags=["health"])


@router.get("/healthz", response_model=schemas.Health)
def healthz() -> schemas.Health:
    """Up: this process answers."""
    return schemas.Health(status="ok")


@router.get("/readyz", response_model=schemas.Health)
def readyz(engine: Database) -> schemas.Health:
    """Ready: the database answers and has the tables that this version needs."""
    try:
        with reading(engine) as connection:
            current = revision.current(connection)
    except SQLAlchemyError as error:
        raise ApiError(503, "database-unavailable", "the database does not answer") from error
    if current != revision.HEAD:
        detail = f"the database is at revision {current}, this version needs {revision.HEAD}; run blockwright migrate"
        raise ApiError(503, "not-migrated", detail)
    return schemas.Health(status="ok")


@router.get("/version", response_model=schemas.Version)
def get_version() -> schemas.Version:
    """Of the running service."""
    return schemas.Version(version=installed(), python=platform.python_version())
