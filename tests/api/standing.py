"""A service with one of everything in it, to send bad inputs to: each is refused in one way and changes nothing."""

from __future__ import annotations

import base64
import json
import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fastapi.routing import APIRoute
from starlette.routing import BaseRoute

from api.settings import Settings
from db import architectures, artifacts, latency_tables, queue, rules, trials
from db.engine import transaction
from db.reports import NewReport
from db.reports import insert as insert_reports
from tests.api.raw import Answer, exchange, head
from tests.api.running import TINY, Running, record, running
from tests.db.rows import counts

SECRET = "nobody may read this"
TEXT = b"A man walked on the beach. " * 100
UNKNOWN = "0190a5c0-0000-7000-8000-000000000000"
# By the name of the parameter: a well-formed id that nothing has.
UNKNOWN_IDS = {
    **dict.fromkeys(("search_id", "artifact_id", "architecture_id", "rule_id"), UNKNOWN),
    "table_id": "f" * 32,
    "name": "absent",
}
# By the name of the route: a body that would be taken.
BODIES: dict[str, Any] = {
    "submit_search": TINY,
    "estimate_search": TINY,
    "add_table": {},
    "apply_stored_rule": {"n_slots": 32},
    "apply_par": {"n_slots": 32},
    "apply_sandwich": {"n_slots": 32},
    "derive_again": {},
    "open_session": {"token": "correct-horse-battery-staple"},
}


@dataclass(frozen=True)
class Standing:
    """The service, the ids of what it holds, and the files of its data folder that are none of the database's."""

    service: Running
    ids: dict[str, str]

    def state(self) -> tuple[dict[str, int], list[tuple[str, int]]]:
        """Rows of each table and sizes of all files: what no bad input changes."""
        root = self.service.data_dir
        sizes: list[tuple[str, int]] = []
        for folder, _, names in os.walk(root):  # which, unlike rglob, bears a folder's being put away meanwhile
            for name in names:
                with suppress(FileNotFoundError):  # a part that is just put away
                    if not name.startswith("blockwright.db"):
                        path = Path(folder, name)
                        sizes.append((str(path.relative_to(root)), path.stat().st_size))
        return counts(self.service.engine), sorted(sizes)

    def ask(self, method: str, target: str, body: bytes = b"", **headers: str) -> Answer:
        """One request, its target and headers exactly as given."""
        headers = {"Host": "127.0.0.1", **headers}
        if body or method in ("POST", "PUT", "PATCH"):
            headers.setdefault("Content_Length", str(len(body)))
        return exchange(self.service.url, head(method, target, **headers) + body)

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        """Nothing is stored or lost meanwhile, and the service answers afterwards."""
        before = self.state()
        yield
        deadline = time.monotonic() + 30
        while self.state() != before:  # an interrupted upload is put away a moment later
            assert time.monotonic() < deadline, (before, self.state())
            time.sleep(0.01)
        assert self.service.http.get("/readyz").json() == {"status": "ok"}
        assert self.service.http.get(f"/api/v1/searches/{self.ids['search_id']}").status_code == 200


@contextmanager
def standing(settings: Settings) -> Iterator[Standing]:
    """A running service over a migrated database, with a search that has one of everything."""
    (settings.data_dir.parent / "secret.txt").write_text(SECRET)
    with running(settings) as service:
        if settings.token is not None:
            service.http.headers["Authorization"] = f"Bearer {settings.token.get_secret_value()}"
        search_id = service.http.post("/api/v1/searches", json=TINY).json()["id"]
        service.http.post("/api/v1/datasets", params={"name": "mine"}, content=TEXT)
        folder = settings.data_dir / "searches" / search_id
        folder.mkdir(parents=True)
        (folder / "export.zip").write_bytes(b"zip" * 100)
        with transaction(service.engine) as connection:
            claim = queue.claim_next(connection, "test", free_cpus=4, free_gpus=0, lease_s=6000)
            assert claim is not None
            lease = claim.lease
            (trial,) = trials.ensure(connection, lease, [trials.NewTrial("search", 0, 0, n_steps=20, params={})])
            trials.start(connection, lease, trial.id, attempt=1)
            insert_reports(connection, lease, [NewReport(trial.id, record(step)) for step in range(5)])
            table = latency_tables.put(connection, lease, table_id="a" * 32, key="k", body=TABLE)
            architecture = architectures.put(connection, lease, role="argmax", string="AF", hash="h", body={})
            rule = rules.put(connection, lease, statement="s", verdict="suggested", body={})
            artifact = artifacts.put(
                connection,
                lease,
                kind="export",
                name="export.zip",
                path=f"searches/{search_id}/export.zip",
                sha256="0" * 64,
                n_bytes=300,
            )
        yield Standing(
            service,
            {
                "search_id": search_id,
                "artifact_id": artifact.id,
                "architecture_id": architecture.id,
                "rule_id": rule.id,
                "table_id": table.id,
                "name": "mine",
                "trial": trial.id,
            },
        )


TABLE: dict[str, Any] = {
    "format_version": 1,
    "device": {"processor": "test"},
    "serve": {"mode": "prefill", "batch": 1, "query_length": 16, "memory_length": 0},
    "entries": {},
    "offset_ms": 0.5,
    "scale": 1.0,
    "error_median": 0.01,
    "error_p95": 0.02,
    "n_networks": 10,
}


def routes(service: Running) -> list[tuple[str, APIRoute]]:
    """(method, route) of the whole API, so that no new one is forgotten."""
    return [(method, route) for route in _api_routes(service.app.routes) for method in sorted(route.methods)]


def _api_routes(found: Sequence[BaseRoute]) -> Iterator[APIRoute]:
    for route in found:
        included = getattr(route, "original_router", None)  # how FastAPI keeps what include_router was given
        if included is not None:
            yield from _api_routes(included.routes)
        elif isinstance(route, APIRoute) and route.path.startswith("/api/"):
            yield route


def parameters(route: APIRoute) -> list[str]:
    return re.findall(r"{(\w+)}", route.path)


def filled(route: APIRoute, value_of: Callable[[str], str]) -> str:
    """The route's path with a value for each parameter."""
    return re.sub(r"{(\w+)}", lambda found: value_of(found[1]), route.path)


def body_of(route: APIRoute) -> tuple[bytes, dict[str, str]]:
    """A body that the route takes, and its header; a new route with a body must be named in BODIES."""
    if route.body_field is None:
        return b"", {}
    return json.dumps(BODIES[route.name]).encode(), {"Content_Type": "application/json"}


def refused(answer: Answer, *codes: str) -> None:
    """One problem with one of these codes (any, if none is given), one clear line, and nothing of what is secret."""
    assert 400 <= answer.status < 500, answer
    assert SECRET not in str(answer)
    assert "root:" not in str(answer)
    if not answer.body:  # to HEAD
        return
    assert answer.headers["content-type"] == "application/problem+json", answer
    problem = answer.body
    assert problem["status"] == answer.status
    assert re.fullmatch(r"[a-z]+(-[a-z0-9]+)*", problem["code"]), problem
    assert not codes or problem["code"] in codes, problem
    assert problem["type"] == f"urn:blockwright:problem:{problem['code']}"
    assert 10 < len(problem["detail"]) < 400, problem
    assert problem["detail"].isprintable(), problem
    assert re.fullmatch(r"[0-9a-f]{32}", problem["request_id"])
    assert "Traceback" not in str(problem)


def cursor(value: Any) -> str:
    """A cursor made by hand."""
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


def settings_for(folder: Path, migrated: Path, url: str = "", **more: Any) -> Settings:
    """Settings of a data folder of its own; without a URL on a copy of a migrated SQLite file."""
    data_dir = folder / "data"
    data_dir.mkdir()
    if not url:
        (data_dir / "blockwright.db").write_bytes(migrated.read_bytes())
    return Settings(data_dir=data_dir, port=0, database_url=url, **more)
