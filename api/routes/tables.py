"""Latency tables: those that searches here have measured, and those that were brought."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from api import schemas, views
from api.body import StrictRoute
from api.deps import Cursor, Database, TableId, tagged
from db import latency_tables
from db.engine import reading, transaction
from nas.cost import LatencyTable

router = APIRouter(prefix="/api/v1/latency-tables", tags=["latency tables"], route_class=StrictRoute)


@router.get("", response_model=schemas.Page[schemas.LatencyTableRow])
def list_tables(
    request: Request, engine: Database, limit: Annotated[int, Query(ge=1, le=1000)] = 50, cursor: Cursor = None
) -> Response:
    """Newest first, without their entries."""
    with reading(engine) as connection:
        page = latency_tables.list(connection, limit=limit, cursor=cursor)
    return tagged(request, views.page(page, views.table))


@router.post("", status_code=201, response_model=schemas.LatencyTableRow)
def add_table(body: LatencyTable, request: Request, engine: Database) -> Response:
    """Bring a table that was measured elsewhere; its id, a hash of its content, makes it usable in requests.

    It is used only where a request names it, never in place of a measurement on this device. The same table twice is
    one table.
    """
    with transaction(engine) as connection:
        # A key of its own: a search that names no table looks for one that this service has measured itself.
        stored = latency_tables.add(
            connection, table_id=body.id, key=f"added-{body.id}", body=body.model_dump(mode="json")
        )
    answer = tagged(request, views.table(stored))
    answer.status_code = 201
    answer.headers["Location"] = f"/api/v1/latency-tables/{stored.id}"
    return answer


@router.get("/{table_id}", response_model=schemas.LatencyTable)
def get_table(table_id: TableId, request: Request, engine: Database) -> Response:
    """One table, whole; its id in a request's `latency_table` makes a search use it."""
    with reading(engine) as connection:
        stored = latency_tables.get(connection, table_id)
    return tagged(request, views.Anything(stored.body))
