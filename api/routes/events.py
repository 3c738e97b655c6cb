"""The event stream of a search: server-sent events, numbered from 1, replayed exactly from any number on.

The stream ends when the search has ended and everything was sent; asked again from there it answers 204, which tells
a browser's EventSource to stop. A search that is resumed later goes on with its numbers.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Header, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.sse import KEEPALIVE_COMMENT, EventSourceResponse, format_sse_event
from sqlalchemy import Engine
from sqlalchemy.exc import OperationalError

from api import schemas, views
from api.deps import BIGGEST, AppSettings, Database, SearchId, Streams, tagged
from api.errors import ApiError
from api.follow import Follower
from db import events, reports, searches
from db.engine import reading

router = APIRouter(prefix="/api/v1/searches", tags=["searches"])

PING_S = 15.0
AWAY_S = 0.5  # between two looks at a database that is out of reach
BATCH = 100  # events read at once: bounds the memory of a replay


@router.get(
    "/{search_id}/events",
    response_class=Response,
    responses={
        200: {
            "description": "`id` is the event's number, `event` its type, `data` the JSON of an Event",
            "content": {"text/event-stream": {"schema": schemas.Event.model_json_schema()}},
        },
        204: {"description": "the search has ended, and nothing lies beyond the number asked from"},
    },
)
async def follow_events(
    search_id: SearchId,
    engine: Database,
    streams: Streams,
    settings: AppSettings,
    after: Annotated[int, Query(ge=0, le=BIGGEST, description="send what lies beyond this number")] = 0,
    last_event_id: Annotated[
        int | None, Header(ge=0, le=BIGGEST, description="as `after`; a reconnecting client's wins")
    ] = None,
) -> Response:
    """Every event beyond a number, then each new one as it happens; `reports` events carry their rows."""
    if len(streams) >= settings.max_streams:
        detail = f"{settings.max_streams} event streams are open, the most that are allowed; close one or try later"
        raise ApiError(503, "too-many-streams", detail, {"Retry-After": "5"})
    start = after if last_event_id is None else last_event_id
    search = await run_in_threadpool(_get, engine, search_id)
    if search.state in searches.TERMINAL and search.last_event <= start:
        return Response(status_code=204)
    headers = {"X-Accel-Buffering": "no"}
    return EventSourceResponse(_lines(engine, streams, search_id, start, settings.max_streams), headers=headers)


@router.get("/{search_id}/warnings", response_model=schemas.Page[schemas.Event])
def list_warnings(search_id: SearchId, request: Request, engine: Database) -> Response:
    """What the search warned of, oldest first: the newest 200, without a replay of all its events."""
    with reading(engine) as connection:
        searches.get(connection, search_id)
        found = events.warnings(connection, search_id)
    return tagged(request, schemas.Page[schemas.Event](items=[views.event(each, dict(each.data)) for each in found]))


async def _lines(
    engine: Engine, streams: Follower, search_id: str, sent: int, max_streams: int
) -> AsyncIterator[bytes]:
    with streams.follow(search_id) as subscription:
        yield b"retry: 1000\n\n"  # and the headers with it: the client knows that it is connected
        if len(streams) > max_streams:  # of many at once, all are past the check above; asked again, it refuses them
            return
        newest = ""
        while True:
            try:
                batch = await run_in_threadpool(_read, engine, search_id, sent)
            except OperationalError:
                # Out of reach for a while. A client sent away now would be refused until it is back, or give up.
                if subscription.ended:
                    return
                yield KEEPALIVE_COMMENT
                await asyncio.sleep(AWAY_S)
                continue
            for event in batch:
                sent, newest = event.number, event.type
                yield format_sse_event(data_str=event.model_dump_json(), event=event.type, id=str(event.number))
            if batch:
                continue
            if newest in searches.TERMINAL or subscription.ended:
                return
            if not await subscription.beyond(sent, PING_S):
                yield KEEPALIVE_COMMENT


def _get(engine: Engine, search_id: str) -> searches.Search:
    with reading(engine) as connection:
        return searches.get(connection, search_id)


def _read(engine: Engine, search_id: str, sent: int) -> list[schemas.Event]:
    """The next events, in one consistent view with the rows of their `reports`."""
    found = []
    with reading(engine) as connection:
        for row in events.after(connection, search_id, sent, limit=BATCH):
            data = dict(row.data)
            if row.type == "reports":
                rows = reports.between(connection, data["trial"], data["first_step"], data["last_step"])
                data["reports"] = [views.streamed(each) for each in rows]
            found.append(views.event(row, data))
    return found
