from __future__ import annotations

from collections.abc import Iterator, Sequence

import httpx
import pytest
from fastapi.routing import APIRoute
from pydantic import SecretStr
from starlette.routing import BaseRoute, Route

from api.gate import OPEN_PATHS, SIGN_IN
from api.settings import Settings
from tests.api.running import TINY, Running, running

TOKEN = "correct-horse-battery-staple"
ROOT = "/api/v1/searches"
UNKNOWN = "0190a5c0-0000-7000-8000-000000000000"


@pytest.fixture
def guarded(settings: Settings) -> Iterator[Running]:
    with running(settings.model_copy(update={"token": SecretStr(TOKEN)})) as found:
        yield found


def routes(routes_: Sequence[BaseRoute]) -> list[tuple[str, str]]:
    """(method, path) of every route, ids filled in."""
    found = []
    for route in routes_:
        included = getattr(route, "original_router", None)  # how FastAPI keeps what include_router was given
        if included is not None:
            found.extend(routes(included.routes))
            continue
        assert isinstance(route, Route | APIRoute), f"{route} is nothing that this test can walk"
        path = route.path
        for name in ("search_id", "artifact_id", "architecture_id", "table_id"):
            path = path.replace(f"{{{name}}}", UNKNOWN)
        found.extend((method, path) for method in route.methods or ())
    return found


def test_every_route_asks_for_the_token(guarded: Running) -> None:
    found = [each for each in routes(guarded.app.routes) if each[1] not in OPEN_PATHS and each != SIGN_IN]
    assert len(found) > 20
    for method, path in [*found, ("GET", "/nothing"), ("OPTIONS", ROOT), ("POST", "/"), ("GET", "/assets/../api")]:
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": f"Basic {TOKEN}"}):
            answer = guarded.http.request(method, path, headers=headers)
            assert answer.status_code == 401, (method, path)
            assert answer.headers["www-authenticate"] == "Bearer"
            if method != "HEAD":
                assert answer.json()["code"] == "unauthorized"


def test_the_token_opens_every_route(guarded: Running) -> None:
    for method, path in routes(guarded.app.routes):
        answer = guarded.http.request(method, path, headers={"Authorization": f"Bearer {TOKEN}"})
        assert answer.status_code != 401, (method, path)


def test_probes_need_no_token_and_tell_nothing(guarded: Running) -> None:
    for path in OPEN_PATHS:
        assert guarded.http.get(path).json() == {"status": "ok"}


def test_loopback_needs_no_token(service: Running) -> None:
    assert service.http.get(ROOT).status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8400", "127.0.0.1.evil.example", "localhost.evil.example"]
)
def test_a_foreign_host_is_refused_on_loopback(service: Running, host: str) -> None:
    answer = service.http.post(ROOT, json=TINY, headers={"Host": host})
    assert (answer.status_code, answer.json()["code"]) == (421, "foreign-host")
    assert service.http.get(ROOT).json()["items"] == []


@pytest.mark.parametrize("host", ["a@127.0.0.1", "127.0.0.1/x", "127.0.0.1:port", "http://127.0.0.1#@evil", "[::1"])
def test_a_host_that_is_none_is_refused(service: Running, host: str) -> None:
    answer = service.http.get(ROOT, headers={"Host": host})
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid-host")


@pytest.mark.parametrize("host", ["localhost", "localhost:1", "127.0.0.1", "[::1]:8400", "LOCALHOST"])
def test_names_of_loopback_are_known(service: Running, host: str) -> None:
    assert service.http.get(ROOT, headers={"Host": host}).status_code == 200


def test_further_names_come_from_the_settings(settings: Settings) -> None:
    with running(settings.model_copy(update={"allowed_hosts": ("search.lab",)})) as service:
        assert service.http.get(ROOT, headers={"Host": "search.lab"}).status_code == 200
        assert service.http.get(ROOT, headers={"Host": "evil.example"}).status_code == 421


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://["},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
    ids=str,
)
def test_a_page_of_another_site_changes_nothing(service: Running, headers: dict[str, str]) -> None:
    answer = service.http.post(ROOT, json=TINY, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (403, "foreign-origin")
    assert service.http.get(ROOT, headers=headers).json()["items"] == []


def test_our_own_page_may_change_things(service: Running) -> None:
    headers = {"Origin": service.url, "Sec-Fetch-Site": "same-origin"}
    assert service.http.post(ROOT, json=TINY, headers=headers).status_code == 201


def test_a_large_body_is_refused_before_it_is_read(settings: Settings) -> None:
    with running(settings.model_copy(update={"max_body_size": 2000})) as service:
        answer = service.http.post(ROOT, content=b"x" * 2001, headers={"Content-Type": "application/json"})
        assert (answer.status_code, answer.json()["code"]) == (413, "body-too-large")
        assert answer.json()["detail"] == "the body has 2001 bytes; at most 2000"


def test_a_large_body_without_a_length_is_refused_while_it_is_read(settings: Settings) -> None:
    def chunks() -> Iterator[bytes]:
        for _ in range(100):
            yield b" " * 100

    with running(settings.model_copy(update={"max_body_size": 2000})) as service:
        answer = service.http.post(ROOT, content=chunks(), headers={"Content-Type": "application/json"})
        assert (answer.status_code, answer.json()["code"]) == (413, "body-too-large")


def test_every_answer_carries_its_number_and_the_security_headers(service: Running) -> None:
    answers = [service.http.get(ROOT), service.http.get("/nothing"), service.http.get(ROOT, headers={"Host": "x"})]
    assert len({answer.headers["x-request-id"] for answer in answers}) == 3
    for answer in answers:
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert "access-control-allow-origin" not in answer.headers
        assert "server" not in answer.headers or answer.headers["server"] == "uvicorn"


def test_a_bug_is_a_problem_with_the_number_of_the_request(service: Running) -> None:
    def broken() -> None:
        raise ZeroDivisionError("secret")

    service.app.add_api_route("/broken", broken)
    answer = httpx.get(f"{service.url}/broken", trust_env=False, timeout=60)
    assert answer.status_code == 500
    assert answer.headers["x-request-id"] in answer.json()["detail"]
    assert "secret" not in answer.text
