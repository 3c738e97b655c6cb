"""Where documents are cut into parts: by their bins, so that equal ones stay together and order does not count."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from nas.ingest.card import BINS, PARTS, part_of
from nas.ingest.digests import Tally
from nas.text import ENDS_PERCENT

NEEDED = 20  # distinct documents of which 72:18:5:5 percent are at least one each
NEEDED_TRAIN = 5  # the same for 80:20
_WITHIN_TRAIN = (80, 100)  # weights and alpha, where validation is given
_TRAIN_AND_VALIDATION = (72, 90)  # weights and alpha; the rest is validation, where none is given


def _ends(counts: Any, percents: tuple[int, ...]) -> Iterator[int]:
    """First bins at which so many percent of the documents lie before."""
    import numpy as np

    below = np.cumsum(counts) * 100
    total = int(counts.sum())
    return (int(np.searchsorted(below, percent * total)) + 1 for percent in percents)


def deal_all(found: Tally) -> tuple[int, int, int]:
    """`Card.deal` of documents that name no part."""
    first, second, third = _ends(found.counts[None], ENDS_PERCENT)
    return first, second, third


def deal_given(found: Tally, named: Mapping[str, int]) -> tuple[int, int, int]:
    """`Card.deal` of documents that name the parts `named`, "train" among them."""
    validation = found.counts.get("validation")
    percents = _TRAIN_AND_VALIDATION if validation is None else _WITHIN_TRAIN
    first, third = _ends(found.counts["train"], percents)
    second = BINS
    if validation is not None:
        third = BINS
        if "test" not in named:
            (second,) = _ends(validation, (50,))
    return first, second, third


def rows_of_parts(deal: tuple[int, int, int], found: Tally) -> dict[str, int]:
    """Documents of each of PARTS."""
    rows = [0] * len(PARTS)
    for given, counts in found.counts.items():
        for number in counts.nonzero()[0].tolist():
            rows[part_of(number, given, deal)] += int(counts[number])
    return dict(zip(PARTS, rows, strict=True))
