"""Architectures by their own id; a search lists its own."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from api import schemas, views
from api.deps import ArchitectureId, Database, tagged
from db import architectures
from db.engine import reading

router = APIRouter(prefix="/api/v1/architectures", tags=["architectures"])


@router.get("/{architecture_id}", response_model=schemas.Architecture)
def get_architecture(architecture_id: ArchitectureId, request: Request, engine: Database) -> Response:
    """One architecture, with the content of architecture.json."""
    with reading(engine) as connection:
        return tagged(request, views.architecture(architectures.get(connection, architecture_id)))
