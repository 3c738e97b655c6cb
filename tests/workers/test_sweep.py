"""Left-overs of a crash go, and nothing else."""

from __future__ import annotations

from pathlib import Path

from db import folders, searches
from db.engine import transaction
from tests import tiny
from tests.workers.service import Service
from workers.sweep import sweep


def test_half_done_removals_and_caches_of_dead_runners_go(tmp_path: Path) -> None:
    service = Service(tmp_path, None)
    kept, gone = service.submit(tiny.request()), service.submit(tiny.request())
    for search_id in (kept, gone):
        folders.of_search(tmp_path, search_id).mkdir(parents=True)
        (tmp_path / "tune" / search_id / "attempt-1").mkdir(parents=True)
    cut_off = [folders.removal(tmp_path, search_id) for search_id in (kept, gone)]
    for removal in cut_off:
        removal.__enter__()()  # and never left, as by kill -9
    with transaction(service.engine) as connection:
        searches.cancel(connection, gone)
        searches.delete(connection, gone)
    assert sweep(service.engine, tmp_path, {kept}) == []
    assert sorted(sweep(service.engine, tmp_path, {kept}, older_than_s=0)) == sorted([kept, gone, gone])
    assert [path.name for path in (tmp_path / "searches").iterdir()] == [kept]
    assert [path.name for path in (tmp_path / "tune").iterdir()] == [kept]
    service.engine.dispose()
