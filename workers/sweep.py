"""What a crash may leave in the data folder and nobody would remove: half-done removals, and Tune's files."""

from __future__ import annotations

import shutil
import time
from collections.abc import Collection
from pathlib import Path

from sqlalchemy import Engine

from db import folders, searches
from db.engine import reading
from db.errors import NotFound

EVERY_S = 60.0


def sweep(
    engine: Engine, data_dir: Path, running: Collection[str], *, older_than_s: float = folders.OLD_S
) -> list[str]:
    """Remove it; returns the ids of the searches whose left-overs went.

    Args:
        running: ids of searches whose runner is alive: their files are left alone.
        older_than_s: what changed within these seconds is left to whoever did it.
    """

    def exists(search_id: str) -> bool:
        try:
            with reading(engine) as connection:
                searches.get(connection, search_id)
        except NotFound:
            return False
        return True

    found = folders.finish(data_dir, exists, older_than_s=older_than_s)
    # Tune's files are a cache that nobody reads back; a runner killed in the middle leaves them.
    for cache in (data_dir / "tune").glob("*"):
        if cache.name not in running and time.time() - cache.stat().st_mtime >= older_than_s:
            shutil.rmtree(cache, ignore_errors=True)
            found.append(cache.name)
    return found
