"""Which of a trial's reports a report reads, and what it takes of each; the same of files and of rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nas.report import read
from nas.report.data import Step, evenly

CURVE = 97  # reports of a trial that are read, first and last among them
MATRICES = 17  # of these, with their probabilities


def chosen(steps: Sequence[int]) -> tuple[int, ...]:
    """Steps of a trial that are read."""
    return evenly(sorted(steps), CURVE)


def with_matrices(steps: Sequence[int]) -> tuple[int, ...]:
    """Of the steps that are read, those whose probabilities are read too."""
    return evenly(steps, MATRICES)


def step_of(record: Mapping[str, Any], *, matrices: bool) -> Step:
    """Of a step record, as JSON or as the columns of a row."""
    return Step(
        step=read.whole(record.get("step")) or 0,
        train_loss=read.number(record.get("train_loss")),
        val_loss=read.number(record.get("val_loss")),
        val_loss_soft=read.number(record.get("val_loss_soft")),
        val_loss_argmax=read.number(record.get("val_loss_argmax")),
        tau=read.number(record.get("tau")),
        expected_ms=read.number(record.get("expected_ms")),
        probabilities=read.matrix(record.get("probabilities")) if matrices else (),
    )
