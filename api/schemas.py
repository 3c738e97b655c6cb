"""What the service answers, field by field: the OpenAPI document and the Python of every answer.

A request is `nas.config.request.SearchRequest` itself and a table `nas.cost.LatencyTable`; neither is typed again here.
L slots, K candidates.
"""

from __future__ import annotations

from typing import Any, Generic, Literal, TypeVar

from pydantic import BaseModel, Field

from api.layouts import LayoutComparison, Power, RetrainedLayout
from api.rule_schemas import Costs, Statement
from nas.cost import LatencyTable as LatencyTable
from nas.placement import MAX_SLOTS, Spacing, Zone

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


class TrialMeasured(BaseModel):
    """Mean seconds that the search trials behind a result took."""

    seconds: float = Field(description="of all phases but the parsimony pass")
    prune_seconds: float = Field(description="of the parsimony pass")


class TrialEstimate(BaseModel):
    """What a search trial was estimated to take before one was placed; or why there is no estimate."""

    memory_bytes: int | None = Field(None, description="at the peak: weights, moments, and what a step holds")
    seconds: float | None = Field(None, description="of all phases but the parsimony pass")
    prune_seconds: float | None = Field(None, description="of the parsimony pass, at most")
    reason: str | None = Field(None, description="why there is no estimate")
    measured: TrialMeasured | None = Field(
        None, description="in a result, what the trials took; null where max_minutes ended them all"
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


class SpaceSize(BaseModel):
    """How many networks may be derived."""

    n_slots: int
    n_candidates: int
    n_architectures: int | None = Field(description="what the layout leaves; null above 2^53, which JSON would round")
    log10_architectures: float


class TrialCount(BaseModel):
    """Trials, and weight updates at most: of each, the parsimony pass included, and of all."""

    searches: int
    search_steps: int = Field(description="of one; as a rule the parsimony pass ends long before it")
    retrainings: int = Field(description="supposing that every seed derives an architecture of its own")
    retrain_steps: int = Field(description="of one")
    n_steps: int = Field(description="of all")


class MemorySize(BaseModel):
    """Parameters, and what they take in float32; activations come on top."""

    supernet_parameters: int
    largest_parameters: int = Field(description="of the largest network that may be derived")
    parent_parameters: int | None = Field(description="of the interleaved parent; null where the space has none")
    uncounted: list[str] = Field(description="labels of classes in Python, which tell no formula and count as 0")
    weight_bytes: int = Field(description="of the supernet, as all that follows")
    gradient_bytes: int = Field(description="if every parameter has one at once")
    moment_bytes: int = Field(description="AdamW's two")
    total_bytes: int


class TimeNeeded(BaseModel):
    """Seconds at the speed of the newest search of the same shape that has ended here, without measuring and export."""

    search_trial_s: float = Field(description="of one search trial, at most")
    retraining_s: float = Field(description="of one retraining")
    all_s: float = Field(description="of all trials, one after the other; as many as have room run side by side")
    tokens_per_s: float = Field(description="that a search trial trained on")


class Estimate(BaseModel):
    """What a request would take, at most, before it is queued."""

    space: SpaceSize
    trials: TrialCount
    memory: MemorySize
    time: TimeNeeded | None = Field(description="null where nothing of this shape has ended here")
    time_unknown: str | None = Field(description="why time is null, in words")


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
    """softmax(alpha) of a trial after `step` weight updates, and with `?evidence=true` what stands beside it."""

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


class SeedProbabilities(BaseModel):
    """What one trial's search ended with."""

    sample: int
    seed: int
    step: int
    labels: list[str]
    probabilities: list[list[float]] = Field(description="(L, K)")
    null_gaps: list[float] = Field(description="(L,)")
    # Results of older versions have none of these.
    z: list[list[float | None]] | None = Field(None, description="(L, K), as in `/probabilities`")
    path: list[int] | None = Field(None, description="(L,) what the parsimony pass left; null without one")
    effect_nats: list[list[float | None]] | None = Field(None, description="(L, K), as in `/probabilities`")
    effect_se: list[list[float | None]] | None = Field(None, description="(L, K) standard error of effect_nats")


class KeptBound(BaseModel):
    """One bound of the budget, and what an architecture does with it."""

    name: str = Field(description="latency, parameters, flops or cache_bytes")
    unit: str = Field(description="of all figures here; a ratio of latencies is `of the parent`")
    target: float
    predicted: float = Field(description="by the latency table, or counted")
    expected: float | None = Field(description="of paths drawn from the probabilities, where the search ended")
    measured: float | None = Field(description="of latency alone; null: not timed")
    low: float | None = Field(description="lower end of the 95% interval of what was measured")
    high: float | None
    verdict: Literal["within", "over", "cannot tell"]
    reason: str | None = Field(None, description="why a bound on latency was not timed; null: it was, or is counted")


class ResultArchitecture(BaseModel):
    """An architecture in a result."""

    role: str = Field(description="argmax, budget, or parent")
    string: str = Field(description="a letter a slot", examples=["SAFSFAFM"])
    slots: list[str] = Field(description="the label of each slot")
    undecided: list[int] = Field(
        description="slots whose candidates tie; the cheapest was taken, unless earlier edits had given away too much"
    )
    sample: int | None
    seed: int | None
    predicted_ms: float | None
    expected_ms: float | None = Field(None, description="of paths drawn from the probabilities, where the search ended")
    bounds: list[KeptBound] = Field([], description="each bound of the budget; empty without one")


class Quality(BaseModel):
    """Bits per unit on the test part, derived minus parent, paired over windows or examples and seeds."""

    unit: str = Field("bits per byte", description="such as bits per word, bits per masked byte, or bits per label")
    derived_bits_per_byte: float = Field(description="in `unit`")
    parent_bits_per_byte: float = Field(description="in `unit`")
    difference: float
    low: float
    high: float
    verdict: Literal["better", "worse", "cannot tell"]
    n_windows: int
    n_seeds: int


class Latency(BaseModel):
    """Derived against parent at the first serve mode, timed in turns in one process."""

    ratio: float = Field(description="median of paired ratios")
    low: float
    high: float
    repeatability: float = Field(description="how far the ratio of the parent to its own twin is from 1")
    derived_ms: float
    parent_ms: float


class ModeLatency(Latency):
    """Derived against parent at one of the serve modes."""

    serve: dict[str, Any] = Field(description="as in the request")


class LengthQuality(BaseModel):
    """One network on the test part at one length."""

    bits: float | None = Field(description="per unit; null where `why` says what keeps the network out")
    se: float | None = Field(description="standard error over windows of the seeds' means")
    why: str | None


class LengthDifference(BaseModel):
    """Derived minus parent at one length, paired over windows and seeds."""

    bits: float
    low: float
    high: float
    verdict: Literal["better", "worse", "cannot tell"]


class LengthPositions(BaseModel):
    """Mean loss at each place of a window, nats."""

    width: int = Field(description="places that a mean is of")
    derived: list[float | None] | None
    parent: list[float | None] | None


class LengthScores(BaseModel):
    """Derived and parent at one of the lengths that the request names."""

    length: int = Field(description="tokens of a window")
    unit: str
    n_windows: int
    derived: LengthQuality
    parent: LengthQuality | None
    difference: LengthDifference | None = Field(description="null where one of the two has no score")
    positions: LengthPositions


class Sample(BaseModel):
    """What came of one setting of the hyper-parameters in `ranges`."""

    sample: int
    values: dict[str, float] = Field(description="by JSON pointer")
    state: Literal["succeeded", "pruned", "failed"]
    reason: str | None = Field(description="why it was pruned, or failed")
    seeds: list[int]
    losses: list[float] = Field(description="of the seeds, where each ended; empty of a failed one")
    loss: float | None = Field(description="their mean, nats per token")
    sd: float | None = Field(description="their standard deviation")
    cost: float | None = Field(description="in the unit of the budget's first bound; null without one")


class Winner(BaseModel):
    """Which sample won, and by how much."""

    sample: int
    values: dict[str, float]
    runner_up: int | None
    margin: float | None = Field(description="nats per token below the runner-up, mean of paired seeds")
    se: float | None
    low: float | None = Field(description="lower end of the margin's 95% interval; null of one seed")
    high: float | None
    clear: bool
    sentence: str


class RuleLine(BaseModel, extra="allow"):
    """What the architectures of the seeds have in common; beside the line, the numbers behind it."""

    statement: str
    verdict: Literal["not supported", "suggested", "supported"]


class Export(BaseModel):
    """The downloadable model."""

    file: str
    sha256: str
    logits_max_abs_difference: float = Field(description="exported against trained model, same tokens")


class Metric(BaseModel):
    """A figure that the field uses for the task, on the test part, mean of the seeds."""

    name: str
    unit: str = Field(description="what it counts in, or its range")
    lower_is_better: bool
    derived: float | None
    parent: float | None = Field(description="null without a parent")
    majority: float | None = Field(None, description="of labels: the score of always answering the most frequent")
    chance: float | None = Field(None, description="of a synthetic task: the score of a blind guess")
    best: float | None = Field(None, description="of a synthetic task with default options: the highest there is")


class Positions(BaseModel):
    """Mean loss at each position of a window on the test part, nats; null where none is scored."""

    derived: list[float | None]
    parent: list[float | None] | None


class Result(BaseModel):
    """What a search found: the content of its result.json."""

    search: dict[str, Any] = Field(description="id, name, dataset and what else identifies the run")
    probabilities: list[SeedProbabilities]
    architectures: list[ResultArchitecture]
    derived: ResultArchitecture
    parent: ResultArchitecture | None = Field(description="null where the request asked for no baseline")
    rule: RuleLine
    rules: list[Statement] = Field([], description="what the seeds say; empty in results of older versions")
    quality: Quality | None
    latency: Latency | None
    retrained: list[RetrainedLayout] = Field([], description="`derived` first; empty in results of older versions")
    comparisons: list[LayoutComparison] = Field(
        [],
        description="`derived` against each other layout, `rule` against those of its seeds; empty in older results",
    )
    power: list[Power] = Field([], description="what they could show, told before; empty in results of older versions")
    metrics: list[Metric] = Field([], description="the field's first; empty in results of older versions")
    latencies: list[ModeLatency] = Field([], description="of each serve mode; empty in results of older versions")
    lengths: list[LengthScores] = Field([], description="of each length; empty in results of older versions")
    samples: list[Sample] = Field([], description="of all settings in order; empty where one was run")
    winner: Winner | None = Field(None, description="null where one setting was run")
    positions: Positions | None = Field(None, description="null in results of older versions")
    export: Export
    cut_short: list[str] = Field(
        [], description="a line for each trial behind these figures that max_minutes ended; empty in older results"
    )
    estimate: TrialEstimate | None = Field(None, description="null in results of older versions")
    seconds: dict[str, float] = Field(description="measuring, searching, deriving, retraining, exporting, total")


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


class Rule(BaseModel):
    """A rule line with its evidence: what describes a search's seeds, or, with a `kind`, one statement of theirs."""

    id: str
    statement: str
    verdict: str
    evidence: dict[str, Any]


class RuleAtDepth(BaseModel, extra="forbid"):
    """Which depth a rule is to be carried to, and how."""

    n_slots: int = Field(strict=True, ge=1, le=MAX_SLOTS, description="depth of the layout", examples=[32])
    ratio: float | None = Field(
        None, strict=True, ge=1, le=MAX_SLOTS, description="all blocks : attention blocks; null: the rule's own"
    )
    zone: Zone = Field(
        "found", description="found: the part of the depth where the seeds put attention; paper: the first two thirds"
    )
    spacing: Spacing = Field(
        "uniform", description="uniform: evenly from the zone's first slot to its last; stride: one gap"
    )
    d_model: int | None = Field(None, strict=True, ge=4, le=16384, description="width; null: the search's")


class FoundAt(BaseModel):
    """Where a rule was found; elsewhere it can be wrong."""

    n_slots: int
    d_model: int
    train_length: int = Field(description="tokens of a training window")
    dataset: str
    dataset_fingerprint: str | None = Field(description="sha256 of the text")
    n_steps: int = Field(description="weight updates of each search trial")
    budget: dict[str, Any] = Field(description="as in the request")
    n_searches: int
    n_seeds: int
    undecided: int = Field(description="undecided slots over all seeds")


class Layout(BaseModel):
    """A rule at another depth: a suggestion that nobody has trained."""

    rule: str = Field(description="id of the rule, or par or sandwich")
    search: str | None = Field(description="id of the search that it comes from, or whose space it is laid out in")
    n_slots: int
    d_model: int
    slots: list[str] = Field(description="the label of each slot")
    string: str = Field(description="a letter a slot", examples=["AFFFAFFFAFFFAFFF"])
    attention: list[int] = Field(description="slots with attention, counted from 0")
    ratio: float = Field(description="all blocks : attention blocks, as asked for")
    zone: Zone = Field(description="that of a statement's layout is what the statement says")
    spacing: Spacing
    statement: str = Field(description="one line for people; slots are counted from 1 there")
    verdict: Literal["not supported", "suggested", "supported"] = Field(
        description="elsewhere than it was found, suggested at best"
    )
    found_at: FoundAt | None = Field(description="null of par and sandwich")
    costs: Costs
    request: dict[str, Any] = Field(description="fixes every slot; POST it to /searches to train the layout")


class Artifact(BaseModel):
    """A file that a search left; GET /artifacts/{id} downloads it."""

    id: str
    kind: str
    name: str
    media_type: str
    sha256: str
    n_bytes: int


DatasetKind = Literal["text", "documents", "tokens", "tokenizer", "synthetic"]


class CardSettings(BaseModel):
    """What the bytes of a dataset alone do not say; part of its fingerprint where it differs from the default."""

    kind: Literal["text", "documents", "tokens", "tokenizer"]
    ends: tuple[int, int] | None = Field(
        None, description="of a text: byte offsets at which a given training, and then a validation part end"
    )
    corpus: str | None = Field(None, description="standard corpus whose conventions hold, such as enwik8")
    dtype: str | None = Field(None, description="of tokens: uint16 or uint32")
    vocab_size: int | None = Field(None, description="of tokens: ids are below it")
    eos_id: int | None = Field(None, description="of tokens: the id that ends a document")


class Card(BaseModel):
    """What reading a dataset has told."""

    settings: CardSettings
    n_bytes: int = Field(description="of what is kept, in its one canonical form")
    n_rows: int = Field(description="lines of a text, documents, tokens, or entries of a tokenizer's vocabulary")
    n_characters: int | None = Field(description="distinct characters; null for tokens and tokenizers")
    lengths: list[tuple[int, int]] = Field(
        description="[largest bytes, number] of lines or documents, by powers of two, without empty bins at either end"
    )
    label_kind: Literal["sequence", "token"] | None = Field(
        description="null without labels; sequence: one for each document; token: one for each word"
    )
    labels: dict[str, int] | None = Field(description="label and how often it stands, sorted by label")
    given_parts: dict[str, int] | None = Field(
        description="rows of each part that the data name themselves (train, validation, test); null: we deal them"
    )
    part_rows: dict[str, int] | None = Field(
        description="documents of each part (weights, alpha, validation, test), duplicates included; null for others"
    )
    n_duplicates: int = Field(description="documents that stand exactly so before; equal ones always share a part")
    n_left_out: int = Field(
        description="documents that also stand in a later given part (train, validation, test): in no part"
    )
    samples: list[dict[str, Any]] = Field(
        description="the first rows, at most 3: text, pair, label, or words and labels, and part; long ones are cut"
    )
    majority: float | None = Field(description="share of the most frequent label: the score of looking at nothing")


class Dataset(BaseModel):
    """A dataset that requests may name, or a tokenizer (of kind `tokenizer`) that `task.tokenizer` may."""

    name: str
    description: str
    built_in: bool
    kind: DatasetKind = Field(
        description="text: one stream; documents: rows, with labels or without; tokens: token ids; tokenizer: an "
        "uploaded tokenizer.json; synthetic: drawn on the fly, see `tasks` of the catalogue"
    )
    fingerprint: str | None = Field(
        description="sha256 of the content; of a built-in one known after its first use; null of a synthetic task"
    )
    n_bytes: int | None
    created_at: str | None = Field(description="when it was uploaded; of a built-in one, first used")
    n_uses: int = Field(description="queued and running searches that name it; above 0 it cannot be removed")
    card: Card | None = Field(description="null where it was not read yet, was uploaded long ago, or is synthetic")


class Encoding(BaseModel):
    """The dataset as token ids, kept for the searches to come."""

    tokenizer: dict[str, Any] = Field(description="as `task.tokenizer` of a request")
    vocab_size: int
    n_tokens: dict[str, int] = Field(description="tokens of each part: weights, alpha, validation, test")


class DatasetDetail(Dataset):
    """A dataset, with its beginning, who needs it, and what it was encoded with."""

    excerpt: str | None = Field(
        description="first characters of a text, at most 1000; null for others, which `card.samples` shows, and for a "
        "built-in one"
    )
    encodings: list[Encoding] = Field(description="what has been encoded so far; empty before the first search")
    in_use_by: list[str] = Field(description="ids of the queued and running searches that name it, oldest first")


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


class Reach(BaseModel):
    """What a candidate can do beyond the length it was trained at."""

    longest: int | None = Field(description="tokens that an input may have; null: any number")
    why: str = Field(description="one sentence for people, in lower case")


class Block(BaseModel):
    """A block that candidates may name."""

    name: str
    description: str
    family: str = Field(description="what rules group by")
    letter: str = Field(description="in strings such as AFS.M")
    colour: str = Field(description="of the family, #RRGGBB, safe for colour-blind eyes")
    options: dict[str, Any] = Field(description="JSON schema of its options, with the ranges that they state")
    cache_known: bool = Field(description="whether the bytes that it keeps token by token are known before it is built")
    reach: Reach = Field(
        description="with default options in the default space; the JSON of an architecture has each candidate's own"
    )


class SyntheticTask(BaseModel):
    """A task whose examples are drawn on the fly; `task.dataset` names it."""

    name: str
    description: str
    objective: str = Field(description="what `task.objective` must be")
    causal: bool | None = Field(description="what `space.causal` must be; null: either")
    unrolled: bool = Field(description="whether `space.backbone.pooling` must be unroll")
    options: dict[str, Any] = Field(
        description="JSON schema of `task.dataset_options`, with the ranges that they state"
    )
    best_accuracy: float = Field(description="highest there is, for default options")
    best_why: str = Field(description="what makes it so, as one clause")
    source: str


class TokenizerType(BaseModel):
    """One way to make token ids of text; `task.tokenizer.type` names it."""

    type: str
    description: str


class Catalog(BaseModel):
    """Everything that a form for a request needs."""

    blocks: list[Block]
    families: list[str] = Field(description="of all blocks, those of installed packages last")
    objectives: list[str]
    tasks: list[SyntheticTask]
    tokenizers: list[TokenizerType]
    presets: dict[str, dict[str, Any]] = Field(description="complete requests by name")
    preset_descriptions: dict[str, str] = Field(description="one line for each preset")
    request_schema: dict[str, Any] = Field(description="JSON schema of a request")
    max_dataset_bytes: int = Field(description="longest file that may be uploaded, and longest content of one")
    min_dataset_bytes: int = Field(description="shortest text that any request could use")


class Health(BaseModel):
    """An answer to a probe."""

    status: Literal["ok"]


class Version(BaseModel):
    """Of the running service."""

    version: str
    python: str
