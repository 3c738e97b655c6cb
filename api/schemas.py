"""What the service answers, field by field: searches, their trials and what these report. L slots, K candidates.

The other `*_schemas.py` have results, rules, datasets, estimates and the catalog. A request is
`nas.config.request.SearchRequest` itself and a table `nas.cost.LatencyTable`; neither is typed again here.
"""

from __future__ import annotations

from typing import Any, Generic, Literal, TypeVar

from pydantic import BaseModel, Field

from api.estimate_schemas import TrialEstimate
from nas.cost import LatencyTable as LatencyTable

State = Literal["queued", "running", "succeeded", "failed", "cancelled"]
Item = TypeVar("Item")


class Page(BaseModel, Generic[Item]):
    """Part of a list; `next` is the cursor of the following part."""

    items: list[Item]
    next: str | None = Field(None, description="opaque; pass it as ?cursor= for the next page, null at the end")


class Progress(BaseModel):
    """How far a search is, over all its trials."""

    step: int = Field(description="weight updates done")
    n_steps: int = Field(description="weight updates planned; retrainings are estimated until they are known")
    share: float = Field(ge=0, le=1)
    eta_s: float | None = Field(description="seconds left at the pace so far; null while nothing can be said")


class Strip(BaseModel):
    """One label a slot, first to last: what makes a search recognisable in a list."""

    labels: list[str]
    undecided: list[int] = Field(description="slots whose candidates tie: of `leading` show no block there, by chance")
    step: int = Field(description="weight updates of the trial that it was read from")
    source: Literal["leading", "derived"] = Field(
        description="derived: the search's result. leading: the most probable candidates of its first trial by now"
    )


class Best(BaseModel):
    """The best figure of a search so far."""

    bits_per_byte: float = Field(description="bits per `unit`; the name is of a time when there were bytes alone")
    unit: str = Field(description="what they are told in, such as bits per word, or bits per label")
    what: Literal["test", "validation"] = Field(
        description="test: of the result. validation: the lowest so far, of the first trial's leading path with the "
        "supernet's weights, or of a derived architecture that is being retrained"
    )


class Search(BaseModel):
    """One search, with all that a list or a page head needs."""

    id: str
    name: str
    state: str = Field(examples=["running"], description="queued, running, succeeded, failed or cancelled")
    stage: str | None = Field(
        examples=["searching"], description="measuring, searching, deriving, retraining, diagnosing or exporting"
    )
    cancelling: bool = Field(description="a running search that is being stopped")
    reason: str | None = Field(description="why it failed, for a person who wants to act on it")
    created_at: str
    started_at: str | None
    finished_at: str | None
    attempt: int = Field(description="starts of a runner so far")
    labels: list[str] = Field(description="candidates in the order of every matrix")
    last_event: int = Field(description="number of the newest event")
    progress: Progress
    request: dict[str, Any] = Field(description="the request with every default written out")
    latency_table: str | None = Field(description="id of the latency table in use")
    estimate: TrialEstimate | None = Field(description="null in lists, and before it is made")
    result: dict[str, Any] | None = Field(description="what /report answers, once the search has succeeded")
    strip: Strip | None = Field(description="null before the first report")
    best: Best | None = Field(description="null before the first validation")


class Trial(BaseModel):
    """One supernet search or one retraining."""

    id: str
    kind: str = Field(description="search or retrain")
    sample: int = Field(description="which sample of `ranges`, or of a retraining which architecture")
    seed: int
    state: str = Field(description="queued, running, succeeded, failed, cancelled, lost or pre-empted")
    reason: str | None
    params: dict[str, Any] = Field(description="the sample's values by JSON pointer")
    architecture: str | None = Field(description="id of the architecture that is retrained")
    step: int = Field(description="newest reported step")
    n_steps: int
    attempt: int = Field(description="the search's attempt that it last started in")
    result: dict[str, Any] | None
    created_at: str
    started_at: str | None
    finished_at: str | None


class Report(BaseModel):
    """State of a trial after `step` weight updates; losses in nats per token, null where the kind has none."""

    trial: str
    step: int
    phase: str | None = Field(description="warm-up, search, settle or prune; null of a retraining, and of old searches")
    train_loss: float | None
    val_loss: float | None
    val_loss_soft: float | None
    val_loss_argmax: float | None
    val_loss_sampled: float | None = Field(description="mean of paths that are drawn from softmax(alpha)")
    tau: float | None
    expected_ms: float | None
    entropy: float | None
    identity_share: float | None = Field(description="expected share of slots with identity")
    alpha_velocity: float | None = Field(
        description="mean change of softmax(alpha) since the report before, total variation per slot"
    )
    dual: float | None = Field(
        description="what the budget's pressure stands at, nats per token for a cost of once the budget; 0: it meets it"
    )
    tokens_per_s: float | None
    warning: str | None = Field(description="what was found since the report before, in words")


class Probabilities(BaseModel):
    """softmax(alpha) of a trial after `step` weight updates, its z, and with `?evidence=true` what else there is."""

    trial: str
    step: int
    probabilities: list[list[float | None]] = Field(description="(L, K); columns are the search's labels")
    null_gaps: list[float | None] | None = Field(description="(L,) gap of log-probabilities that chance alone reaches")
    path: list[int] | None = Field(description="(L,) column of each slot that the parsimony pass holds; null before it")
    updates: list[list[int | None]] | None = Field(description="(L, K) weight updates that each candidate has had")
    z: list[list[float | None]] | None = Field(
        description="(L, K) mean of each alpha's gradient over its standard error; positive where descent lowers alpha"
    )
    effect_nats: list[list[float | None]] | None = Field(
        description="(L, K) nats per token that held-out loss rises by when the path takes this candidate here; null "
        "where it was not tried"
    )
    effect_se: list[list[float | None]] | None = Field(description="(L, K) standard error of effect_nats")
    finalists: list[list[int]] | None = Field(
        description="(F, L) columns of the networks that did best by shared weights within every bound before the "
        "parsimony pass, best first; null before it"
    )
    finalist_nats: list[float | None] | None = Field(description="(F,) their held-out losses, nats per token")


class Architecture(BaseModel):
    """A derived architecture or a baseline, as stored."""

    id: str
    role: str
    trial: str | None = Field(description="the search trial it was derived from; null for a parent")
    string: str
    hash: str
    predicted_ms: float | None
    is_result: bool
    architecture: dict[str, Any] = Field(
        description="the content of architecture.json; each candidate tells its `reach` beyond the trained length"
    )


class Artifact(BaseModel):
    """A file that a search left; GET /artifacts/{id} downloads it."""

    id: str
    kind: str
    name: str
    media_type: str
    sha256: str
    n_bytes: int


class LatencyTableRow(BaseModel):
    """A table in the list; GET /latency-tables/{id} has its entries."""

    id: str
    device: dict[str, str]
    serve: dict[str, Any]
    n_entries: int
    error_median: float
    error_p95: float
    created_at: str


class Event(BaseModel):
    """The `data` of one server-sent event; `number` is its `id`."""

    number: int
    type: str
    at: str
    data: dict[str, Any] = Field(description="of `reports`: trial, first_step, last_step and the rows themselves")


class Health(BaseModel):
    """An answer to a probe."""

    status: Literal["ok"]


class Version(BaseModel):
    """Of the running service."""

    version: str
    python: str
