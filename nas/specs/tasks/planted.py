"""Tasks whose right stack of blocks is known. No torch."""

from __future__ import annotations

from nas.specs.tasks.base import TaskSpec

SPECS: tuple[TaskSpec, ...] = ()
