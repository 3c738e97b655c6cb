"""Settings of the dispatcher and the runners: resources of this host, Ray's address, lease times.

Read once by the process that starts, from variables prefixed BLOCKWRIGHT_.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Self

from pydantic import Field, model_validator

from db import settings as db_settings

HEARTBEAT_TIMEOUT_S = 2  # how long a heartbeat waits for the database


def _usable_cpus() -> float:
    """What this process may run on, which a container or taskset may have cut."""
    return float(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)


class Settings(db_settings.Settings):
    """Where the data lies (from db) and how work is run."""

    ray_address: str | None = Field(None, description="host:port of an existing Ray cluster; None: one of our own")
    ray_token_file: Path | None = Field(None, description="token of that cluster; ours makes its own")
    ray_node_host: str | None = Field(
        None, description="by which the cluster's other nodes reach this machine; None: its address on the way there"
    )
    ray_temp_dir: Path = Field(Path("/tmp"), description="where Ray's session folder goes; a short path")
    object_store_mb: int = Field(128, ge=80, description="shared memory of the local Ray, MiB")
    cpus: float = Field(default_factory=_usable_cpus, gt=0, description="CPUs that trials may take")
    gpus: int = Field(0, ge=0, description="GPUs that trials may take")
    lease_s: float = Field(9, gt=0, description="a runner unheard of for so long has lost its search")
    start_lease_s: float = Field(
        30, gt=0, description="the same until it has imported what takes seconds, which can hold its heartbeat up"
    )
    heartbeat_s: float = Field(3, gt=0, description="seconds between a runner's heartbeats")
    poll_s: float = Field(0.5, gt=0, description="seconds between two looks of the dispatcher")
    stop_patience_s: float = Field(10, gt=0, description="from the request to stop a runner to its end by force")

    @model_validator(mode="after")
    def _check(self) -> Self:
        least = self.heartbeat_s + HEARTBEAT_TIMEOUT_S
        if self.lease_s <= least:
            raise ValueError(
                f"lease_s {self.lease_s:g} is too short for heartbeat_s {self.heartbeat_s:g}; "
                f"it must be more than {least:g}"
            )
        return self

    @property
    def first_lease_s(self) -> float:
        """Of a search that is claimed, until its runner runs."""
        return max(self.lease_s, self.start_lease_s)

    @property
    def whole_cpus(self) -> int:
        """CPUs of the local Ray."""
        return max(1, int(self.cpus))
