"""Settings of all tests: one thread, and no deadline for hypothesis, since a busy machine is not a failure."""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

from hypothesis import settings

settings.register_profile("blockwright", deadline=None, max_examples=50, derandomize=True)
settings.load_profile("blockwright")
