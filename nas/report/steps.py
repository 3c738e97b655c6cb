"""Which of a trial's reports a report reads, and what it takes of each; the same of files and of rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nas.report import read
from nas.report.data import Item, Step, evenly

CURVE = 97  # reports of a trial that are read, first and last among them
_SLOTS = 1600  # of all matrices of a trial together


def chosen(steps: Sequence[int]) -> tuple[int, ...]:
    """Steps of a trial that are read."""
    return evenly(sorted(steps), CURVE)


def with_matrices(steps: Sequence[Item], n_slots: int) -> tuple[Item, ...]:
    """Of the steps that are read, those whose probabilities are read and drawn too: of a deep space fewer."""
    return evenly(steps, max(4, min(16, _SLOTS // max(n_slots, 1))))


def step_of(record: Mapping[str, Any]) -> Step:
    """Of a step record, as JSON or as the columns of a row."""
    probabilities, z = read.matrix(record.get("probabilities")), read.matrix(record.get("z"))
    return Step(
        step=read.whole(record.get("step")) or 0,
        train_loss=read.number(record.get("train_loss")),
        val_loss=read.number(record.get("val_loss")),
        val_loss_soft=read.number(record.get("val_loss_soft")),
        val_loss_argmax=read.number(record.get("val_loss_argmax")),
        tau=read.number(record.get("tau")),
        expected_ms=read.number(record.get("expected_ms")),
        probabilities=probabilities,
        z=z if [*map(len, z)] == [*map(len, probabilities)] else (),
    )
