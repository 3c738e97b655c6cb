"""ListOps of the Long Range Arena, and a short variant. No torch."""

from __future__ import annotations

from nas.specs.tasks.base import TaskSpec

SPECS: tuple[TaskSpec, ...] = ()
