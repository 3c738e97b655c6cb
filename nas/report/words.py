"""Numbers as text: always with what they are of, and as many digits as their difference needs."""

from __future__ import annotations

import math
from collections.abc import Sequence

NONE = "–"  # noqa: RUF001 (a dash where a number would stand, not a minus)


def fixed(value: float | None, digits: int = 3) -> str:
    return NONE if value is None else f"{value:.{digits}f}"


def signed(value: float | None, digits: int = 4) -> str:
    return NONE if value is None else f"{value:+.{digits}f}"


def short(value: float | None) -> str:
    """Five significant digits, for numbers of any size."""
    return NONE if value is None else f"{value:.5g}"


def whole(value: float | None) -> str:
    """Thousands set apart, for parameters, operations and bytes."""
    return NONE if value is None else f"{value:,.0f}"


def decimals(*values: float | None) -> int:
    """Digits behind the point that the largest of the values needs to show two that are not 0: three to six."""
    largest = max((abs(value) for value in values if value is not None), default=0.0)
    return 3 if not largest else max(3, min(6, 1 - math.floor(math.log10(largest))))


def interval(low: float | None, high: float | None, digits: int = 4, *, sign: bool = True) -> str:
    if low is None or high is None:
        return "no interval"
    show = signed if sign else fixed
    return f"{show(low, digits)} to {show(high, digits)}"


def count(number: int, singular: str, plural: str | None = None) -> str:
    return f"{number} {singular if number == 1 else plural or singular + 's'}"


def slots(found: Sequence[int]) -> str:
    """Slots counted from 1, runs drawn together: `slot 3`, `slots 1, 3-5`."""
    runs: list[list[int]] = []
    for slot in sorted(found):
        if runs and slot == runs[-1][-1] + 1:
            runs[-1].append(slot)
        else:
            runs.append([slot])
    parts = [f"{run[0] + 1}-{run[-1] + 1}" if len(run) > 1 else str(run[0] + 1) for run in runs]
    return f"{'slot' if len(found) == 1 else 'slots'} {', '.join(parts)}"


def listed(parts: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return " and ".join([", ".join(parts[:-1]), parts[-1]]) if len(parts) > 1 else "".join(parts)


def cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def serve(mode: object, batch: object, query: object, memory: object = 0) -> str:
    """A serve mode: `prefill of 8 x 128 tokens`."""
    behind = f" behind {memory} in memory" if memory else ""
    return f"{mode} of {batch} x {query} tokens{behind}"
