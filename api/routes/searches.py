"""Searches: submit, list, look, cancel, resume, delete, and everything that one has produced so far."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Header, Query, Request, Response
from fastapi.responses import PlainTextResponse
from sqlalchemy import Connection

from api import regular, rule_schemas, schemas, texts, views
from api.body import StrictRoute
from api.deps import BIGGEST, Cursor, Database, DataDir, SearchId, tagged
from api.examples import REQUEST
from api.plain import plain
from db import (
    architectures,
    artifacts,
    events,
    folders,
    ids,
    latency_tables,
    reports,
    rules,
    searches,
    standings,
    trials,
)
from db.engine import reading, transaction
from db.errors import NotFound
from db.paging import Page
from nas.budgets import bounds, check_each
from nas.config.request import SearchRequest
from nas.cost import LatencyTable
from nas.errors import InvalidInput
from nas.text import NAME

router = APIRouter(prefix="/api/v1/searches", tags=["searches"], route_class=StrictRoute)
T = TypeVar("T")

Limit = Annotated[int, Query(ge=1, le=1000, description="rows of a page")]
TrialId = Annotated[str | None, Query(pattern=ids.PATTERN, description="only this trial")]
FirstStep = Annotated[int, Query(ge=0, le=BIGGEST, description="from this weight update on")]
LastStep = Annotated[int | None, Query(ge=0, le=BIGGEST, description="up to this weight update")]
Stride = Annotated[int, Query(ge=1, le=1_000_000, description="only steps that it divides, and each trial's newest")]
IdempotencyKey = Annotated[
    str | None,
    Header(min_length=1, max_length=200, pattern=r"^[\x21-\x7e]+$", description="the same key queues one search only"),
]


@router.post(
    "",
    status_code=201,
    response_model=schemas.Search,
    openapi_extra={"requestBody": {"content": {"application/json": {"example": REQUEST}}}},
)
def submit_search(
    body: SearchRequest, request: Request, engine: Database, idempotency_key: IdempotencyKey = None
) -> Response:
    """Queue a search. The answer stands only once the database has it for good."""
    created = create(engine, body, idempotency_key)
    standing = standings.NONE
    if not created.is_new:
        with reading(engine) as connection:
            standing = standings.of_searches(connection, [created.search.id]).get(created.search.id, standing)
    answer = tagged(request, views.search(created.search, standing))
    answer.status_code = 201
    answer.headers["Location"] = f"/api/v1/searches/{created.search.id}"
    if not created.is_new:
        answer.headers["Idempotency-Replayed"] = "true"
    return answer


def create(engine: Database, body: SearchRequest, idempotency_key: str | None) -> searches.Created:
    """Check what only the database knows, and write the search in one transaction, committed on return.

    Raises:
        ApiError: the dataset is unknown, does not fit, or is too short.
        InvalidInput: no latency table has the id that the request names, or it does not fit.
        Infeasible: no architecture is within a bound of the budget that is known before anything is measured.
        IdempotencyConflict: the key was used for another request.
    """
    with transaction(engine) as connection:
        stored = texts.pinned(connection, body).model_dump(mode="json")
        check_costs(connection, body)
        return searches.create(
            connection,
            request=stored,
            name=body.name,
            labels=body.space.labels,
            dataset=body.task.dataset,
            tokenizer=body.task.tokenizer.name,
            cpus=body.resources.cpus,
            gpus=body.resources.gpus,
            n_steps=planned_steps(body),
            idempotency_key=idempotency_key,
            request_hash=hashlib.sha256(body.model_dump_json().encode()).hexdigest(),
        )


def planned_steps(body: SearchRequest) -> int:
    """Weight updates of all trials, supposing that every seed derives an architecture of its own."""
    search = body.trials.n_samples * body.trials.n_seeds * body.method.most_steps
    return search + body.retrain.most_trials(body.trials.n_seeds) * body.retrain.n_steps


@router.get("", response_model=schemas.Page[schemas.Search])
def list_searches(
    request: Request,
    engine: Database,
    state: schemas.State | None = None,
    dataset: Annotated[str | None, Query(pattern=NAME)] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Response:
    """Newest first; without their results, which `/report` has."""
    with reading(engine) as connection:
        page = searches.list(connection, state=state, dataset=dataset, limit=limit, cursor=cursor)
        standing = standings.of_searches(connection, [row.id for row in page.items])
    return tagged(request, views.page(page, lambda row: views.search(row, standing[row.id])))


@router.get("/{search_id}", response_model=schemas.Search)
def get_search(search_id: SearchId, request: Request, engine: Database) -> Response:
    """One search, with its stage, progress and estimate of time left."""
    with reading(engine) as connection:
        return tagged(request, _search(connection, searches.get(connection, search_id)))


@router.post("/{search_id}/cancel", response_model=schemas.Search)
def cancel_search(search_id: SearchId, request: Request, engine: Database) -> Response:
    """A queued search is cancelled at once; a running one as soon as its runner has stopped. Idempotent."""
    with transaction(engine) as connection:
        changed = _search(connection, searches.cancel(connection, search_id))
    return tagged(request, changed)


@router.post("/{search_id}/resume", response_model=schemas.Search)
def resume_search(search_id: SearchId, request: Request, engine: Database, data_dir: DataDir) -> Response:
    """Queue a failed or cancelled search again; it goes on from its checkpoints. Idempotent."""
    with transaction(engine) as connection:
        queued = searches.resume(connection, search_id)
        texts.check_resumable(connection, queued, data_dir)
        changed = _search(connection, queued)
    return tagged(request, changed)


@router.delete("/{search_id}", status_code=204, response_model=None)
def delete_search(search_id: SearchId, engine: Database, data_dir: DataDir) -> Response:
    """Forget a finished search, its rows and its files; a running one is cancelled first."""
    with folders.removal(data_dir, search_id) as set_aside, transaction(engine) as connection:
        searches.delete(connection, search_id)
        set_aside()
    return Response(status_code=204)


@router.get("/{search_id}/trials", response_model=schemas.Page[schemas.Trial])
def list_trials(search_id: SearchId, request: Request, engine: Database) -> Response:
    """Every trial of the search: samples, seeds, retrainings."""
    return tagged(request, _all_of(engine, search_id, trials.of_search, views.trial))


@router.get("/{search_id}/reports", response_model=schemas.Page[schemas.Report])
def list_reports(
    search_id: SearchId,
    request: Request,
    engine: Database,
    trial: TrialId = None,
    first_step: FirstStep = 0,
    last_step: LastStep = None,
    stride: Stride = 1,
    limit: Limit = 1000,
    cursor: Cursor = None,
) -> Response:
    """Curves, by trial and step."""
    with reading(engine) as connection:
        searches.get(connection, search_id)
        page = reports.of_search(
            connection,
            search_id,
            trial_id=trial,
            first_step=first_step,
            last_step=last_step,
            stride=stride,
            limit=limit,
            cursor=cursor,
        )
    return tagged(request, views.page(page, views.report))


@router.get("/{search_id}/probabilities", response_model=schemas.Page[schemas.Probabilities])
def list_probabilities(
    search_id: SearchId,
    request: Request,
    engine: Database,
    trial: TrialId = None,
    first_step: FirstStep = 0,
    last_step: LastStep = None,
    stride: Stride = 1,
    evidence: Annotated[bool, Query(description="with updates and effects of each cell, and finalists")] = False,
    limit: Limit = 1000,
    cursor: Cursor = None,
) -> Response:
    """softmax(alpha) as reported, by trial and step: a row a slot, a column a candidate."""
    with reading(engine) as connection:
        searches.get(connection, search_id)
        page = reports.probabilities(
            connection,
            search_id,
            trial_id=trial,
            first_step=first_step,
            last_step=last_step,
            stride=stride,
            limit=limit,
            cursor=cursor,
        )
    return tagged(request, views.page(page, lambda row: views.probabilities(row, evidence=evidence)))


@router.get("/{search_id}/architectures", response_model=schemas.Page[schemas.Architecture])
def list_architectures(search_id: SearchId, request: Request, engine: Database) -> Response:
    """What was derived, seed by seed, and what it is compared with."""
    return tagged(request, _all_of(engine, search_id, architectures.of_search, views.architecture))


@router.get("/{search_id}/rules", response_model=schemas.Page[rule_schemas.Rule])
def list_rules(search_id: SearchId, request: Request, engine: Database) -> Response:
    """Where the architectures agree, with the evidence."""
    return tagged(request, _all_of(engine, search_id, rules.of_search, views.rule))


@router.get("/{search_id}/artifacts", response_model=schemas.Page[schemas.Artifact])
def list_artifacts(search_id: SearchId, request: Request, engine: Database) -> Response:
    """Files of the search; /api/v1/artifacts/{id} downloads one."""
    return tagged(request, _all_of(engine, search_id, artifacts.of_search, views.artifact))


@router.get("/{search_id}/log", response_class=PlainTextResponse)
def get_log(
    search_id: SearchId,
    engine: Database,
    data_dir: DataDir,
    tail: Annotated[int, Query(ge=0, le=1_000_000, description="bytes from its end")] = 20_000,
) -> PlainTextResponse:
    """The end of what the runner has printed, in whole lines where that leaves any; empty before it has started."""
    with reading(engine) as connection:
        searches.get(connection, search_id)
    end = regular.last_bytes(data_dir / "searches" / search_id / "runner.log", tail + 1) or b""
    if len(end) > tail:  # one byte more, to see whether a line begins here
        end = end[end.find(b"\n", 0, -1) + 1 or 1 :]
    return PlainTextResponse(plain(end.decode(errors="replace")))


def _search(connection: Connection, row: searches.Search) -> schemas.Search:
    told = events.first(connection, row.id, "estimate")
    standing = standings.of_searches(connection, [row.id])[row.id]
    return views.search(row, standing, None if told is None else told.data)


def _all_of(
    engine: Database,
    search_id: str,
    of_search: Callable[[Connection, str], list[T]],
    view: Callable[[T], Any],
) -> schemas.Page[Any]:
    """A short list of one search in a single page; an unknown search is an error and no empty list."""
    with reading(engine) as connection:
        searches.get(connection, search_id)
        rows = of_search(connection, search_id)
    return views.page(Page(tuple(rows), None), view)


def check_costs(connection: Connection, request: SearchRequest) -> None:
    """The table that a request names, and each bound of its budget that is known already: what is counted by formula,
    and latency where there is a table.

    Raises:
        InvalidInput: no latency table has the id, it does not fit the request, or a block does not tell a cost.
        Infeasible: even the smallest architecture is over a bound.
    """
    table = None
    if request.latency_table is not None:
        try:
            stored = latency_tables.get(connection, request.latency_table)
        except NotFound:
            raise InvalidInput(
                f"unknown latency table {request.latency_table!r}; leave it out to have one measured"
            ) from None
        table = LatencyTable.model_validate(stored.body)
        table.check(request.space, request.task.serve[0])
    check_each(bounds(request, table), request.space.allowed)
