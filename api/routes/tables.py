"""Measured latency tables."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from api import schemas, views
from api.deps import Cursor, Database, TableId, tagged
from db import latency_tables
from db.engine import reading

router = APIRouter(prefix="/api/v1/latency-tables", tags=["latency tables"])


@router.get("", response_model=schemas.Page[schemas.LatencyTableRow])
def list_tables(
    request: Request, engine: Database, limit: Annotated[int, Query(ge=1, le=1000)] = 50, cursor: Cursor = None
) -> Response:
    """Newest first, without their entries."""
    with reading(engine) as connection:
        page = latency_tables.list(connection, limit=limit, cursor=cursor)
    return tagged(request, views.page(page, views.table))


@router.get("/{table_id}", response_model=schemas.LatencyTable)
def get_table(table_id: TableId, request: Request, engine: Database) -> Response:
    """One table, whole; its id in a request's `latency_table` makes a search use it."""
    with reading(engine) as connection:
        stored = latency_tables.get(connection, table_id)
    return tagged(request, views.Anything(stored.body))
