"""The folder of a search, removed with its row in such an order that a crash leaves neither one for good.

A folder is first set aside under a name that says what is going on, then the row's deletion is committed, then the
folder goes. Whoever finds one set aside later (`finish`) can tell from the row how far it came. Nothing else is ever
swept: a folder that the database does not know may belong to another database.
"""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

_ASIDE = ".deleted"
OLD_S = 300.0  # far longer than any transaction: what was set aside before is nobody's work in progress


def of_search(data_dir: Path, search_id: str) -> Path:
    """Where everything of a search lies; it may not be there yet."""
    return data_dir / "searches" / search_id


@contextmanager
def removal(data_dir: Path, search_id: str) -> Iterator[Callable[[], None]]:
    """Remove the folder if the block ends well, and put it back if not; around the transaction that deletes the row.

    Yields:
        What to call inside the transaction once the row is deleted, just before the commit.
    """
    folder = of_search(data_dir, search_id)
    aside = folder.with_name(search_id + _ASIDE)

    def set_aside() -> None:
        with contextlib.suppress(FileNotFoundError):  # it never started
            folder.rename(aside)

    try:
        yield set_aside
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            aside.rename(folder)
        raise
    shutil.rmtree(aside, ignore_errors=True)


def finish(data_dir: Path, exists: Callable[[str], bool], *, older_than_s: float = OLD_S) -> list[str]:
    """End removals that a crash has cut off; returns the ids of the searches they were of.

    Args:
        exists: whether the row of a search is still there.
        older_than_s: what was set aside within these seconds is left to whoever did it.
    """
    finished = []
    for aside in (data_dir / "searches").glob(f"*{_ASIDE}"):
        try:
            age_s = time.time() - aside.stat().st_ctime  # of the renaming
        except FileNotFoundError:
            continue
        if age_s < older_than_s:
            continue
        search_id = aside.name.removesuffix(_ASIDE)
        if exists(search_id):
            aside.rename(of_search(data_dir, search_id))
        else:
            shutil.rmtree(aside, ignore_errors=True)
        finished.append(search_id)
    return finished
