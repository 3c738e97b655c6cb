"""The metrics that the field uses for each task, with their units, from what a retraining leaves on the test part.

No torch: whoever writes or shows a result reads this. C classes; counts are (C, C) scored examples or tokens, by class,
then by answer. A share of nothing is 0, as in the tools of the field, so that no class without examples or answers
makes a figure undefined.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nas.config.task import Task
from nas.student import half_width

Counts = Sequence[Sequence[int]]


@dataclass(frozen=True)
class Outcome:
    """What one training left: nats per scored token on the test part, and counts; empty where no labels are given."""

    nats_per_token: float
    counts: Counts = ()


@dataclass(frozen=True)
class Metric:
    """A figure that papers compare.

    Args:
        name: what the field calls it.
        unit: what it counts in, or its range.
        lower_is_better: which way is up.
        of: its value for one training; raises OverflowError where that is beyond all numbers.
    """

    name: str
    unit: str
    lower_is_better: bool
    of: Callable[[Outcome, Task], float]


def _bits(outcome: Outcome, task: Task) -> float:
    return outcome.nats_per_token / task.units_per_token / math.log(2)


def _perplexity(outcome: Outcome, task: Task) -> float:
    return math.exp(outcome.nats_per_token)


def bits(name: str) -> Metric:
    """Cross-entropy in bits, for each unit of the task's quality."""
    return Metric(name, "bits", True, _bits)


def perplexity(name: str, unit: str) -> Metric:
    """exp of the mean nats: among how many equally likely ones the model is left to choose."""
    return Metric(name, unit, True, _perplexity)


def by_counts(name: str, unit: str, of: Callable[[Counts], float]) -> Metric:
    """A metric of classes and answers alone."""
    return Metric(name, unit, False, lambda outcome, task: of(outcome.counts))


def accuracy(counts: Counts) -> float:
    """Share of right answers."""
    return _share(sum(row[number] for number, row in enumerate(counts)), sum(map(sum, counts)))


def f1(counts: Counts, number: int) -> float:
    """Harmonic mean of the precision and the recall of one class: 2 right / (answers + examples)."""
    answers = sum(row[number] for row in counts)
    return _share(2 * counts[number][number], answers + sum(counts[number]))


def positive_f1(counts: Counts) -> float:
    """F1 of the second of two classes: "1" behind "0", "yes" behind "no"."""
    return f1(counts, 1)


def macro_f1(counts: Counts) -> float:
    """Mean of the F1 of all classes, rare ones as much as frequent ones."""
    return _share(sum(f1(counts, number) for number in range(len(counts))), len(counts))


def matthews(counts: Counts) -> float:
    """Correlation of classes and answers: Matthews 1975 for two classes, Gorodkin 2004 for more."""
    total = sum(map(sum, counts))
    right = sum(row[number] for number, row in enumerate(counts))
    examples = [sum(row) for row in counts]
    answers = [sum(column) for column in zip(*counts, strict=True)]
    spread = (total**2 - sum(each**2 for each in answers)) * (total**2 - sum(each**2 for each in examples))
    together = sum(one * other for one, other in zip(examples, answers, strict=True))
    return _share(right * total - together, math.sqrt(spread))


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


_ACCURACY = by_counts("accuracy", "share of examples", accuracy)
_MACRO_F1 = by_counts("macro F1", "0 to 1", macro_f1)
_TOKEN_ACCURACY = by_counts("token accuracy", "share of tokens", accuracy)

# By objective, then by the tokenizer's type or, before it, by the standard corpus.
_CAUSAL: Mapping[str, tuple[Metric, ...]] = {
    "bytes": (bits("bits per byte"),),
    "characters": (bits("bits per character"),),
    "words": (perplexity("word perplexity", "words"),),
    "bpe": (bits("bits per byte"), perplexity("token perplexity", "tokens")),
    "file": (bits("bits per byte"), perplexity("token perplexity", "tokens")),
    "given": (perplexity("token perplexity", "tokens"),),
}
_CAUSAL_BYTES: Mapping[str, tuple[Metric, ...]] = {  # papers call the bytes of these two characters
    "enwik8": (bits("bits per character"),),
    "text8": (bits("bits per character"),),
}
_SEQUENCES: Mapping[str, tuple[Metric, ...]] = {  # GLUE: Wang et al. 2018 (arXiv:1804.07461), table 1
    "mrpc": (_ACCURACY, by_counts("F1", "0 to 1", positive_f1)),
    "sst-2": (_ACCURACY,),
    "cola": (by_counts("Matthews correlation", "-1 to 1", matthews), _ACCURACY),
}


def metrics(task: Task, corpus: str | None = None) -> tuple[Metric, ...]:
    """What is told of a model of this task; the first is the field's own.

    Args:
        task: with its sizes where they are known.
        corpus: standard corpus whose conventions hold, as the dataset's card names it; None: none.
    """
    kind = task.tokenizer.type
    if task.objective == "causal_lm":
        return _CAUSAL_BYTES.get(corpus or "", _CAUSAL[kind]) if kind == "bytes" else _CAUSAL[kind]
    if task.objective == "masked_lm":
        return (bits(task.quality_unit), perplexity("perplexity of masked tokens", "tokens"))
    if task.synthetic is not None:
        return (_ACCURACY if task.objective == "sequence_classification" else _TOKEN_ACCURACY,)
    if task.objective == "token_classification":
        return (_TOKEN_ACCURACY, _MACRO_F1)
    return _SEQUENCES.get(corpus or "", (_ACCURACY, _MACRO_F1))


def value(metric: Metric, outcome: Outcome, task: Task) -> float | None:
    """Of one training; None where a model is so far off that no number holds it."""
    try:
        found = metric.of(outcome, task)
    except OverflowError:
        return None
    return found if math.isfinite(found) else None


def mean(values: Sequence[float | None]) -> float | None:
    """None where there are none, and where one of them or their sum is beyond all numbers."""
    known = [each for each in values if each is not None]
    if not known or len(known) < len(values):
        return None
    try:
        return math.fsum(known) / len(known)
    except OverflowError:
        return None


def majority(counts: Counts) -> Counts:
    """The counts of whoever always answers the most frequent class, on the same examples."""
    examples = [sum(row) for row in counts]
    most = examples.index(max(examples))
    return [[each if number == most else 0 for number in range(len(counts))] for each in examples]


def report(
    task: Task, corpus: str | None, derived: Sequence[Outcome], parent: Sequence[Outcome] = ()
) -> list[dict[str, Any]]:
    """Each metric with its values, as JSON for a result; the field's first.

    Args:
        task: with its sizes.
        corpus: as for `metrics`.
        derived: one of each seed.
        parent: the same seeds of what it is compared with; empty: nothing.

    Returns:
        Of each {"name", "unit", "lower_is_better", "derived", "parent"}, means, None where there are none; their values
        of each seed, "derived_seeds" and "parent_seeds"; half the width of their 95% t intervals over the seeds,
        "derived_half" and "parent_half"; the paired "difference" and its interval, "low" to "high". Such an interval
        says nothing of other test examples. For labels also "majority", the score of always answering the most frequent
        class, and for synthetic tasks "chance", that of a blind guess, and "best", the highest there is, where the
        options are those it is known for.
    """
    return [_entry(metric, task, derived, parent) for metric in metrics(task, corpus)]


def _entry(metric: Metric, task: Task, derived: Sequence[Outcome], parent: Sequence[Outcome]) -> dict[str, Any]:
    own, others = ([value(metric, each, task) for each in side] for side in (derived, parent))
    pairs = list(zip(own, others, strict=True)) if others else []
    differences = [one - other for one, other in pairs if one is not None and other is not None]
    difference = mean(differences) if len(differences) == len(own) else None
    half = _half(differences if difference is not None else [])
    return {
        "name": metric.name,
        "unit": metric.unit,
        "lower_is_better": metric.lower_is_better,
        "derived": mean(own),
        "parent": mean(others),
        "derived_seeds": own,
        "parent_seeds": others,
        "derived_half": _half(own),
        "parent_half": _half(others),
        "difference": difference,
        "low": None if difference is None or half is None else difference - half,
        "high": None if difference is None or half is None else difference + half,
        **_baselines(metric, task, derived[0].counts),
    }


def _half(values: Sequence[float | None]) -> float | None:
    """Half the width of the interval of a mean; None where that is none, and where the values are all the same: counts
    of the same few examples often are, and have not shown how they differ."""
    known = [each for each in values if each is not None]
    if mean(values) is None or len({*known}) < 2:
        return None
    try:
        half = half_width(known)
    except OverflowError:
        return None
    return half if half is not None and math.isfinite(half) else None


def _baselines(metric: Metric, task: Task, counts: Counts) -> dict[str, float | None]:
    if not counts:
        return {}
    found = {"majority": value(metric, Outcome(0.0, majority(counts)), task)}
    if task.synthetic is not None:
        found["chance"] = 1 / len(counts)
        if task.synthetic_options() == task.synthetic.options():
            found["best"] = task.synthetic.best[0]
    return found
