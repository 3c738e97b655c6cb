"""What-if: the architectures of a search under other constraints, from what it has stored, without new training.

The models of `POST /searches/{id}/derive`, and what it does. numpy and scipy are loaded by the first such request, so
that an api that is never asked stays small. L slots, K candidates.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

from pydantic import BaseModel, Field, ValidationError
from sqlalchemy import Connection

from api.errors import ApiError
from api.field_errors import field_errors, summary
from db import architectures, latency_tables, reports, searches, trials
from nas.config.base import Config
from nas.config.constraints import Constraints
from nas.config.request import SearchRequest
from nas.cost import LatencyTable
from nas.errors import InvalidInput, SearchFailed
from nas.exact import clock
from nas.steps import StepRecord

if TYPE_CHECKING:
    from nas.what_if import Answers, Cost, Found

CostName = Literal["latency", "parameters", "flops", "cache_bytes"]
ObjectiveName = Literal["probability", "nats"]
_MOST_S = 60.0  # of processor time, by the estimate below
_PER_CELL_S = 60e-6  # of one solve and one cell of (L, K): 25 ms at 96 x 5 (bench/derive.py), and as much to spare
_WAIT_S = 30.0
_LONGEST_S = 90.0  # wall time of what the estimate did not foresee, such as a conflict among many constraints

_one = threading.Lock()  # one derivation at a time: each takes a whole core, and the service has others to answer
_few = threading.BoundedSemaphore(8)  # that derive or wait: each holds one of the threads that answer everything else


class AskedFront(Config):
    """A Pareto front of the objective against one cost."""

    cost: CostName
    points: int = Field(20, ge=2, le=200, description="at most so many; all of the front where it has fewer")


class DeriveBody(Config):
    """What to derive from a search's stored probabilities. The search's own budget is no part of it unless repeated."""

    objective: ObjectiveName | None = Field(
        None,
        description="probability: the sum of log softmax(alpha); nats: minus what the parsimony pass measured each "
        "block to be worth; null: nats where all seeds have them, else probability",
    )
    constraints: Constraints = Field(Constraints(), description="all of which hold")
    k: int = Field(1, ge=1, le=100, description="how many architectures, each another network")
    front: AskedFront | None = Field(None, description="null: none")
    sample: int | None = Field(None, ge=0, lt=256, description="null: the sample that the search chose")
    seeds: tuple[Annotated[int, Field(ge=0, lt=2**31)], ...] | None = Field(
        None, min_length=1, max_length=64, description="null: every seed of the sample that has reported"
    )


class CostOf(BaseModel):
    """What an architecture costs in one way, in the unit that `costs` of the answer tells."""

    value: float
    ratio_to_parent: float | None = Field(description="null where the space cannot build the interleaved parent")


class DerivedArchitecture(BaseModel):
    """One architecture of one seed."""

    string: str = Field(description="a letter a slot", examples=["AFS.M"])
    slots: list[str] = Field(description="the label of each slot, counted from 0")
    score: float = Field(description="by the objective, nats; the larger the better")
    log_probability: float = Field(description="sum over slots of log softmax(alpha), nats")
    nats: float | None = Field(description="held-out loss that it costs over the pass's path; null without a pass")
    guessed: list[int] = Field(description="slots whose nats were not measured but read from alpha")
    undecided: list[int] = Field(description="slots in which the search could not tell its best candidates apart")
    costs: dict[CostName, CostOf | None] = Field(description="null where no table or block tells it")


class DerivedFront(BaseModel):
    """By rising cost: nothing that meets the constraints beats a point in both objective and cost."""

    cost: CostName
    complete: bool = Field(description="whether these are all points of the front")
    points: list[DerivedArchitecture]


class SeedAnswer(BaseModel):
    """What one seed says."""

    trial: str = Field(description="id of the trial")
    seed: int
    state: str = Field(description="of the trial; what is running may still change its mind")
    step: int = Field(description="weight updates at the report that this is derived from")
    phase: str | None = Field(description="warm-up, search, settle or prune; null where it was not told")
    reason: str | None = Field(description="why there is no architecture; null where there is")
    architectures: list[DerivedArchitecture]
    front: DerivedFront | None


class AgreedSlot(BaseModel):
    """What most seeds' best architectures have in a slot."""

    label: str
    n_seeds: int = Field(description="seeds that have it there")


class FamilyRange(BaseModel):
    """Slots of a family over the seeds' best architectures."""

    least: int
    most: int


class AgreementOfSeeds(BaseModel):
    """How far the seeds' best architectures agree. No architecture: one made of averages would be nobody's."""

    n_seeds: int
    n_networks: int = Field(description="different networks among them; skipped slots make no difference")
    slots: list[AgreedSlot]
    families: dict[str, FamilyRange]


class KnownCost(BaseModel):
    unit: str
    parent: float | None = Field(description="of the interleaved parent")


class Derivation(BaseModel):
    """Seed by seed; nothing is stored, nothing was trained, and a latency is a prediction by the search's table."""

    search: str
    sample: int
    objective: ObjectiveName
    costs: dict[CostName, KnownCost]
    seeds: list[SeedAnswer]
    agreement: AgreementOfSeeds | None = Field(description="null where no seed has an architecture")


class NotDerivable(InvalidInput):
    """A stored search that cannot be derived from here."""

    code = "not-derivable"


@dataclass(frozen=True)
class Stored:
    """What a derivation reads of a search, so that the database is let go before it begins."""

    id: str
    request: SearchRequest
    table: LatencyTable | None
    sample: int
    rows: tuple[tuple[trials.Trial, str | None, StepRecord], ...]


def stored(connection: Connection, search_id: str, body: DeriveBody) -> Stored:
    """The last report of each trial that is asked for.

    Raises:
        NotFound: no such search.
        NotDerivable: the search or its latency table cannot be read here.
        InvalidInput: a sample or a seed that it does not have, or several samples of which none is chosen yet.
        ApiError: nothing is reported yet.
    """
    search = searches.get(connection, search_id)
    try:
        request = SearchRequest.model_validate(search.request)
    except ValidationError as error:  # stored by a machine with other blocks
        raise NotDerivable(f"the search cannot be read here: {summary(field_errors(error.errors()))}") from None
    table = None
    if search.latency_table_id is not None:
        try:
            table = LatencyTable.model_validate(latency_tables.get(connection, search.latency_table_id).body)
        except ValidationError as error:
            raise NotDerivable(
                f"latency table {search.latency_table_id} cannot be read here: {summary(field_errors(error.errors()))}"
            ) from None
    found = []
    for trial in trials.of_search(connection, search_id, kind="search"):
        newest = reports.newest(connection, trial.id)
        if newest is not None and newest[1].probabilities:
            found.append((trial, newest[0].phase, _record(newest[1])))
    if not found:
        now = f"{search.state} ({search.stage})" if search.stage else search.state
        detail = f"search {search_id} is {now} and has reported no probabilities yet; they come with its first report"
        raise ApiError(409, "no-report", detail)
    sample = _sample(connection, search_id, [trial for trial, _, _ in found], body.sample)
    rows = [row for row in found if row[0].sample == sample]
    known = [row[0].seed for row in rows]
    for seed in body.seeds or ():
        if seed not in known:
            raise InvalidInput(f"no seed {seed} of sample {sample} has reported; {_numbers('seed', known)} did")
    chosen = tuple(row for row in rows if body.seeds is None or row[0].seed in body.seeds)
    return Stored(search_id, request, table, sample, chosen)


def derive(found: Stored, body: DeriveBody) -> Derivation:
    """The answer.

    Raises:
        InvalidInput: labels, families or slots that the space does not have, nats that no pass measured, too much at
            once, or no answer in time.
        Infeasible: no architecture meets the constraints; with those in conflict.
        SearchFailed: no seed has anything to derive from.
        ApiError: others are being derived.
    """
    _check_amount(found, body)
    detail = "other architectures are being derived, one after the other; try again later"
    busy = ApiError(503, "too-many-derivations", detail, {"Retry-After": "10"})
    if not _few.acquire(blocking=False):
        raise busy
    try:
        if not _one.acquire(timeout=_WAIT_S):
            raise busy
        try:
            with clock.within(_LONGEST_S):
                return _derive(found, body)
        finally:
            _one.release()
    finally:
        _few.release()


def _derive(found: Stored, body: DeriveBody) -> Derivation:
    from nas import constrain, what_if

    request = found.request
    costs = what_if.all_costs(request, found.table)
    constraints = constrain.read(body.constraints, request, found.table)
    what_if.check(request, constraints)
    measured = all(record.path is not None for _, _, record in found.rows)
    objective = body.objective or ("nats" if measured else "probability")
    front = None if body.front is None else (body.front.cost, body.front.points)
    seeds, best, failed = [], [], []
    for trial, phase, record in found.rows:
        answer: Answers | None = None
        reason = None
        try:
            answer = what_if.answers(
                request, costs, record, constraints, objective=objective, k=body.k, front=front
            )  # fmt: skip
            best.append(answer.best[0].architecture)
        except SearchFailed as error:
            reason = str(error)
            failed.append(error)
        seeds.append(_seed(trial, phase, record.step, answer, reason, costs, body))
    if not best:
        raise SearchFailed(f"seed {seeds[0].seed} at step {seeds[0].step}: {failed[0]}")
    agreed = what_if.agreement(request, best)
    return Derivation(
        search=found.id,
        sample=found.sample,
        objective=objective,
        costs={name: KnownCost(unit=cost.unit, parent=cost.parent) for name, cost in costs.items()},
        seeds=seeds,
        agreement=AgreementOfSeeds(
            n_seeds=agreed.n_seeds,
            n_networks=agreed.n_networks,
            slots=[AgreedSlot(label=label, n_seeds=n) for label, n in zip(agreed.labels, agreed.n_agree, strict=True)],
            families={family: FamilyRange(least=a, most=b) for family, (a, b) in agreed.families.items()},
        ),
    )


def _seed(
    trial: trials.Trial,
    phase: str | None,
    step: int,
    answer: Answers | None,
    reason: str | None,
    costs: dict[str, Cost],
    body: DeriveBody,
) -> SeedAnswer:
    front = None
    if answer is not None and answer.front is not None and body.front is not None:
        points = [_architecture(each, costs) for each in answer.front]
        front = DerivedFront(cost=body.front.cost, complete=answer.complete, points=points)
    return SeedAnswer(
        trial=trial.id,
        seed=trial.seed,
        state=trial.state,
        step=step,
        phase=phase,
        reason=reason,
        architectures=[] if answer is None else [_architecture(each, costs) for each in answer.best],
        front=front,
    )


def _architecture(found: Found, costs: dict[str, Cost]) -> DerivedArchitecture:
    told: dict[Any, CostOf | None] = dict.fromkeys(get_args(CostName))
    for name, value in found.costs.items():
        parent = costs[name].parent
        told[name] = CostOf(value=value, ratio_to_parent=value / parent if parent else None)
    return DerivedArchitecture(
        string=str(found.architecture),
        slots=list(found.architecture.labels),
        score=found.score,
        log_probability=found.log_probability,
        nats=found.nats,
        guessed=list(found.guessed),
        undecided=list(found.architecture.undecided),
        costs=told,
    )


def _record(row: reports.Matrices) -> StepRecord:
    """As a search reports it; a value that was not finite is not a number again."""
    nan = float("nan")
    assert row.probabilities is not None
    gaps = row.null_gaps or [None] * len(row.probabilities)
    return StepRecord(
        row.step,
        probabilities=[[nan if value is None else value for value in each] for each in row.probabilities],
        null_gaps=[0.0 if gap is None else gap for gap in gaps],
        path=row.path,
        effect_nats=row.effect_nats,
        effect_se=row.effect_se,
    )


def _sample(connection: Connection, search_id: str, found: Sequence[trials.Trial], asked: int | None) -> int:
    """The sample asked for, the one that architectures were derived from, or the only one."""
    samples = sorted({trial.sample for trial in found})
    if asked is not None:
        if asked not in samples:
            raise InvalidInput(f"no trial of sample {asked} has reported; {_numbers('sample', samples)} did")
        return asked
    by_id = {trial.id: trial.sample for trial in found}
    for each in architectures.of_search(connection, search_id):
        if each.trial_id in by_id:
            return by_id[each.trial_id]
    if len(samples) > 1:
        raise InvalidInput(
            f"the search has not chosen among its samples yet; give one of {_numbers('sample', samples)}"
        )
    return samples[0]


def _numbers(name: str, numbers: Sequence[int]) -> str:
    return f"{name if len(numbers) == 1 else name + 's'} {', '.join(map(str, numbers))}"


def _check_amount(found: Stored, body: DeriveBody) -> None:
    """Raises: InvalidInput: it would keep the service busy for longer than a minute."""
    solves = len(found.rows) * (2 + body.k / 5 + (0 if body.front is None else 1.5 * body.front.points))
    space = found.request.space
    seconds = solves * _PER_CELL_S * space.n_slots * len(space.candidates)
    if seconds > _MOST_S:
        raise InvalidInput(
            f"{len(found.rows)} seeds of {space.n_slots} slots and {len(space.candidates)} candidates would take about "
            f"{seconds:,.0f} s; ask for fewer seeds, points or architectures, at most {_MOST_S:g} s at once"
        )
