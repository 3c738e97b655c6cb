"""The least and the most of a ratio over the seeds, in words, for the report and the terminal. No numpy here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nas.report import read

FROM = 6  # seeds: nas.statements.RANGE_SEEDS, which comes with numpy


def ratio_range(statement: Mapping[str, Any]) -> str | None:
    """`2 : 1 to 4 : 1`, or `2 : 1 to none` where a seed has no such block; None of few seeds and of other kinds."""
    if statement.get("kind") != "ratio":
        return None
    low, high = read.number(statement.get("range_low")), read.number(statement.get("range_high"))
    if low is not None and high is not None:
        return f"{low:.3g} : 1 to {high:.3g} : 1"
    # The statement has no range where a seed has no such block, whose ratio would be infinite.
    known = [value for value in read.numbers(statement.get("by_seed")) if value is not None]
    lacks = len(known) < len(read.items(statement.get("by_seed")))
    if not known or not lacks or (read.whole(statement.get("n_seeds")) or 0) < FROM:
        return None
    return f"{min(known):.3g} : 1 to none"
