"""What each block of a pruned path buys: held-out nats with their error, and milliseconds, beside the z of its alpha.

L slots, K candidates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.table import Table
from rich.text import Text

from api.looks import Looks, strip
from nas.leading import Matrix, of_path

CAPTION = (
    "nats per token that the loss rises by where the slot takes the other block instead, with one standard error; ms "
    "that the block takes more than it; z of the block's alpha: where it is negative, its gradient asks for the block; "
    "each comparison was made with the other slots as they stood then"
)


@dataclass(frozen=True)
class Pass:
    """What a parsimony pass holds by one report.

    Args:
        path: (L,) candidate of each slot.
        effect_nats: (L, K) rise of the loss with each candidate that was tried; None: none was.
        effect_se: (L, K) its standard error.
        z: (L, K) of each alpha's gradient; None where it was not told.
        undecided: slots where another candidate does as well.
    """

    path: Sequence[int]
    effect_nats: Matrix | None
    effect_se: Matrix | None
    z: Matrix | None
    undecided: Sequence[int]


def held(row: Mapping[str, Any], by_chance: Sequence[int]) -> Pass | None:
    """Of a row of probabilities with its evidence, as the service and result.json tell it; None before a pass."""
    path, nats, errors = row.get("path"), row.get("effect_nats"), row.get("effect_se")
    if path is None:
        return None
    return Pass(path, nats, errors, row.get("z"), of_path(path, by_chance, nats, errors))


def path_strip(labels: Sequence[str], looks: Looks, found: Pass) -> Text:
    """The strip of the path; `?` marks an undecided slot."""
    return strip([labels[index] for index in found.path], looks, found.undecided)


def bought_table(
    labels: Sequence[str], looks: Looks, found: Pass, slot_ms: Mapping[str, float] | None, title: str
) -> Table:
    """A row a slot: its block, what it buys, what it takes, and against what.

    Args:
        labels: of the candidates, (K,).
        looks: how they are drawn.
        found: the pass.
        slot_ms: milliseconds that a candidate adds to a network, by label; None while they are not known.
        title: above the table.
    """
    table = Table(title=title, caption=CAPTION, title_justify="left", caption_justify="left", box=None, padding=(0, 1))
    for name in ("slot", "block", "nats", "ms", "z", "against", ""):
        table.add_column(name, justify="right" if name in ("slot", "nats", "ms", "z") else "left")
    for slot, own in enumerate(found.path):
        other = _against(found, slot, labels, slot_ms)
        z = found.z[slot][own] if found.z else None
        table.add_row(
            str(slot + 1),
            f"{looks[labels[own]].letter} {labels[own]}" if labels[own] in looks else labels[own],
            _nats(found, slot, other),
            f"{slot_ms[labels[own]] - slot_ms[labels[other]]:+.3f}" if slot_ms and other is not None else "-",
            "-" if z is None else f"{z:+.1f}",
            "nothing" if other is None else labels[other],
            "undecided" if slot in found.undecided else "",
        )
    return table


def _against(found: Pass, slot: int, labels: Sequence[str], slot_ms: Mapping[str, float] | None) -> int | None:
    """The cheapest candidate that was tried in the place of a slot's own; while costs are unknown the first one."""
    if found.effect_nats is None:
        return None
    own, row = found.path[slot], found.effect_nats[slot]
    tried = [index for index, nats in enumerate(row) if index != own and nats is not None]
    return min(tried, key=lambda index: slot_ms[labels[index]] if slot_ms else 0.0, default=None)


def _nats(found: Pass, slot: int, other: int | None) -> str:
    nats = found.effect_nats[slot][other] if found.effect_nats and other is not None else None
    error = found.effect_se[slot][other] if found.effect_se and other is not None else None
    if nats is None:
        return "-"
    return f"{nats:+.4f}" + ("" if error is None else f" ± {error:.4f}")
