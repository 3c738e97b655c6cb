"""What the service answers of what a search found, field by field. L slots, K candidates."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, Field

from api.estimate_schemas import TrialEstimate
from api.layouts import LayoutComparison, Power, RetrainedLayout
from api.rule_schemas import Statement


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
    finalists: list[list[int]] | None = Field(None, description="(F, L), as in `/probabilities`")
    finalist_nats: list[float] | None = Field(None, description="(F,), as in `/probabilities`")


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
    derived_seeds: list[float | None] = Field([], description="of each seed; empty in results of older versions")
    parent_seeds: list[float | None] = Field([], description="of the same seeds; empty without a parent")
    derived_half: float | None = Field(
        None, description="half the width of its 95% t interval over the seeds, which says nothing of other examples"
    )
    parent_half: float | None = Field(None, description="null of one seed, as of derived")
    difference: float | None = Field(None, description="derived minus parent, mean over paired seeds")
    low: float | None = Field(None, description="of its 95% t interval over the seeds")
    high: float | None = Field(None, description="null of one seed, as low")
    majority: float | None = Field(None, description="of labels: the score of always answering the most frequent")
    chance: float | None = Field(None, description="of a synthetic task: the score of a blind guess")
    best: float | None = Field(None, description="of a synthetic task with default options: the highest there is")


class Positions(BaseModel):
    """Mean loss at each position of a window on the test part, nats; null where none is scored."""

    derived: list[float | None]
    parent: list[float | None] | None


class Advice(BaseModel):
    """Which trained layout to take: a reading of the comparisons, each with its own 95%."""

    take: str | None = Field(
        description="name in `retrained`, not always `derived`; null where quality and latency speak for different "
        "layouts, or nothing speaks for any"
    )
    sentence: str = Field(description="it with the figures behind it, for people")


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
    advice: Advice | None = Field(
        None, description="null where nothing was trained beside the derived one, and in older results"
    )
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
