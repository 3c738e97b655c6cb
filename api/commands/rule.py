"""`blockwright rule`: the PAR placement rule at any depth, without a search."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated

import typer

from api import show
from nas.errors import InvalidInput
from nas.placement import Spacing, attention_positions


def register(app: typer.Typer) -> None:
    app.command()(rule)


def rule(
    blocks: Annotated[int, typer.Option("--blocks", help="Depth: number of blocks.")],
    ratio: Annotated[str, typer.Option("--ratio", help="All blocks : attention blocks, such as 5 or 9/2.")],
    spacing: Annotated[
        str, typer.Option("--spacing", help="uniform over the first two thirds, or stride.")
    ] = "uniform",
) -> None:
    """Print where attention goes by the PAR paper's rule; a suggestion of one paper, not measured on your data."""
    try:
        value = Fraction(ratio)
    except (ValueError, ZeroDivisionError):
        raise InvalidInput(f"ratio is {ratio!r}; it must be a number, such as 5 or 9/2") from None
    kind: Spacing
    if spacing == "uniform":
        kind = "uniform"
    elif spacing == "stride":
        kind = "stride"
    else:
        raise InvalidInput(f"spacing is {spacing!r}; it must be uniform or stride")
    positions = attention_positions(blocks, value, spacing=kind)
    labels = ["attention" if index in positions else "ffn" for index in range(blocks)]
    console = show.terminal()
    console.print(show.strip(labels, show.looks([{"label": each, "block": each} for each in ("attention", "ffn")])))
    console.print("".join("A" if label == "attention" else "F" for label in labels))
    console.print(
        f"attention in {len(positions)} of {blocks} blocks, counted from 1: {', '.join(str(p + 1) for p in positions)}"
    )
    console.print("suggested by one paper on one model (arXiv:2009.04534); not measured on your data")
