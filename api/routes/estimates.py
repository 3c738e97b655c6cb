"""What a request would take, told before it is queued."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from api import estimate_schemas, texts
from api.body import StrictRoute
from api.deps import Database, tagged
from api.estimating import estimate
from api.examples import REQUEST
from api.routes.searches import check_costs
from db.engine import transaction
from nas.config.request import SearchRequest

router = APIRouter(prefix="/api/v1", tags=["searches"], route_class=StrictRoute)


@router.post(
    "/searches:estimate",
    response_model=estimate_schemas.Estimate,
    openapi_extra={"requestBody": {"content": {"application/json": {"example": REQUEST}}}},
)
def estimate_search(body: SearchRequest, request: Request, engine: Database) -> Response:
    """Size of the space, weight updates, memory and, where a search of its shape has ended here, time.

    Nothing is stored. What submitting would refuse is refused here too.
    """
    with transaction(engine) as connection:
        texts.pinned(connection, body)
        check_costs(connection, body)
        found = estimate(connection, body)
    return tagged(request, found)
