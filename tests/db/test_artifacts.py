from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import Engine

from db import artifacts, events
from db.engine import reading, transaction
from db.errors import NotFound
from tests.db.rows import Started, started


def put(engine: Engine, run: Started, **changes: Any) -> artifacts.Artifact:
    fields: dict[str, Any] = {
        "kind": "export",
        "name": "model.zip",
        "path": f"searches/{run.search_id}/export.zip",
        "sha256": "s",
        "n_bytes": 10,
        "media_type": "application/zip",
    }
    with transaction(engine) as connection:
        return artifacts.put(connection, run.lease, **{**fields, **changes})


def test_file_written_again_keeps_its_id(engine: Engine) -> None:
    run = started(engine)
    first = put(engine, run)
    assert put(engine, run) == first
    changed = put(engine, run, sha256="t", n_bytes=11)
    other = put(engine, run, path="searches/x/result.json", kind="result", name="result.json")
    assert (changed.id, changed.sha256, changed.n_bytes) == (first.id, "t", 11)
    with reading(engine) as connection:
        assert artifacts.of_search(connection, run.search_id) == [changed, other]
        assert artifacts.get(connection, other.id) == other
        told = [event.data for event in events.after(connection, run.search_id) if event.type == "artifact"]
        with pytest.raises(NotFound, match="no artifact 'nobody'"):
            artifacts.get(connection, "nobody")
    assert [(data["artifact"], data["sha256"]) for data in told] == [(first.id, "s"), (first.id, "t"), (other.id, "s")]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"path": "/etc/passwd"}, "must be relative to the data folder"),
        ({"path": "searches/../../x"}, "must be relative to the data folder"),
        ({"name": "a/b"}, "must be a file name without folders"),
        ({"name": "..\\b"}, "must be a file name without folders"),
        ({"name": ""}, "must be a file name without folders"),
    ],
)
def test_names_and_paths_stay_inside(engine: Engine, changes: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        put(engine, started(engine), **changes)
