"""What a search would have derived under other constraints: answered at once, from what it has stored."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response

from api.body import StrictRoute
from api.deps import Database, SearchId, tagged
from api.deriving import Derivation, DeriveBody, derive, stored
from db.engine import reading

router = APIRouter(prefix="/api/v1/searches", tags=["searches"], route_class=StrictRoute)

EXAMPLE: dict[str, Any] = {
    "constraints": {
        "budget": {"latency": {"ratio_to_parent": 0.8}},
        "counts": [{"family": "attention", "at_most": 2}],
        "mixers_apart": True,
    },
    "k": 3,
    "front": {"cost": "latency", "points": 10},
}


@router.post(
    "/{search_id}/derive",
    response_model=Derivation,
    openapi_extra={"requestBody": {"content": {"application/json": {"example": EXAMPLE}}}},
)
def derive_again(search_id: SearchId, body: DeriveBody, request: Request, engine: Database) -> Response:
    """The best architectures of each seed under constraints of the body, and fronts. Nothing is stored or trained.

    A search that is running answers from each trial's newest report, and says which step that is. Where no architecture
    meets the constraints, the problem has code `infeasible` and names the fewest of them that are in conflict, each
    with its nearest value that can be met.
    """
    with reading(engine) as connection:
        found = stored(connection, search_id, body)
    return tagged(request, derive(found, body))
