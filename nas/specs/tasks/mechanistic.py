"""In-context recall and the other tasks of mechanistic architecture design. No torch."""

from __future__ import annotations

from nas.specs.tasks.base import TaskSpec

SPECS: tuple[TaskSpec, ...] = ()
