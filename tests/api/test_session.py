from __future__ import annotations

import time
from collections.abc import Iterator

import httpx
import pytest
from pydantic import SecretStr

from api import session
from api.settings import Settings
from tests.api.running import TINY, Running, running

TOKEN = "correct-horse-battery-staple"
OURS = TOKEN.encode()
NOW = 1_800_000_000.0
ROOT = "/api/v1/searches"
SESSION = "/api/v1/session"


@pytest.fixture
def guarded(settings: Settings) -> Iterator[Running]:
    with running(settings.model_copy(update={"token": SecretStr(TOKEN)})) as found:
        yield found


def sign_in(service: Running, **headers: str) -> httpx.Response:
    return service.http.post(SESSION, json={"token": TOKEN}, headers={"Origin": service.url, **headers})


def test_a_session_holds_until_it_expires() -> None:
    value = session.issue(OURS, NOW)
    assert session.holds(OURS, value, NOW)
    assert session.holds(OURS, value, NOW + session.LIFETIME_S - 1)
    assert not session.holds(OURS, value, NOW + session.LIFETIME_S)


def test_a_new_token_ends_every_session() -> None:
    assert not session.holds(b"another-token-altogether", session.issue(OURS, NOW), NOW)


def signed(expiry: str) -> str:
    return f"{expiry}.{session._signature(OURS, expiry)}"


@pytest.mark.parametrize(
    "value",
    [
        "",
        ".",
        "1800000001",
        "1800000001.",
        "1800000001." + "0" * 64,
        session.issue(OURS, NOW).replace("18", "19", 1),  # a longer life under the same signature
        session.issue(OURS, NOW) + "0",
        session.issue(OURS, NOW)[:-1],
        session.issue(OURS, NOW).upper(),
        session.issue(OURS, NOW).replace(".", ".\udcff"),
        signed("+1900000000"),
        signed("-1"),
        signed("1e99"),
        signed("١٩٠٠٠٠٠٠٠٠"),
        signed("9" * 13),
    ],
    ids=range(15),
)
def test_a_value_that_we_did_not_issue_is_none(value: str) -> None:
    assert not session.holds(OURS, value, NOW)


def test_the_cookie_opens_what_the_token_opens(guarded: Running) -> None:
    answer = sign_in(guarded)
    assert answer.status_code == 204
    assert answer.content == b""
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith("blockwright_session=")
    assert {"HttpOnly", "SameSite=strict", "Path=/", "Max-Age=43200"} <= set(cookie.split("; "))
    assert "Secure" not in cookie
    assert TOKEN not in cookie
    assert guarded.http.get(ROOT).status_code == 200  # httpx sends the cookie from now on
    created = guarded.http.post(ROOT, json=TINY, headers={"Origin": guarded.url, "Sec-Fetch-Site": "same-origin"})
    assert created.status_code == 201


def test_behind_tls_the_cookie_is_secure(guarded: Running) -> None:
    answer = sign_in(guarded, Origin=guarded.url.replace("http:", "https:"))
    assert "Secure" in answer.headers["set-cookie"].split("; ")


@pytest.mark.parametrize("token", ["wrong", "", TOKEN[:-1], TOKEN + "x", "ü"])
def test_a_wrong_token_opens_nothing(guarded: Running, token: str) -> None:
    answer = guarded.http.post(SESSION, json={"token": token})
    assert (answer.status_code, answer.json()["code"]) == (401, "wrong-token")
    assert answer.json()["detail"] == "this is not the token of the service"
    assert "set-cookie" not in answer.headers
    assert guarded.http.get(ROOT).status_code == 401


def test_a_body_that_is_none_is_refused_without_repeating_it(guarded: Running) -> None:
    for body in ({}, {"token": 1}, {"token": TOKEN, "more": 1}):
        answer = guarded.http.post(SESSION, json=body)
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid-request")
        assert TOKEN not in answer.text


def test_a_sign_in_takes_a_token_and_no_megabytes(guarded: Running) -> None:
    """Whoever sends it has shown nothing yet, and reading 2 MB of JSON holds up everybody else."""
    body = b'{"token":"' + b"x" * session.MAX_BODY_SIZE + b'"}'
    for content in (body, iter([body])):  # the length declared, then in chunks
        answer = guarded.http.post(SESSION, content=content, headers={"Content-Type": "application/json"})
        assert (answer.status_code, answer.json()["code"]) == (413, "body-too-large")


def test_an_expired_or_foreign_cookie_is_refused(guarded: Running) -> None:
    expired = session.issue(OURS, time.time() - session.LIFETIME_S - 1)
    foreign = session.issue(b"another-token-altogether", time.time())
    for value in (expired, foreign, "x", ""):
        answer = guarded.http.get(ROOT, headers={"Cookie": f"{session.COOKIE}={value}"})
        assert (answer.status_code, answer.json()["code"]) == (401, "unauthorized")


def test_a_wrong_token_beside_a_good_cookie_is_refused(guarded: Running) -> None:
    sign_in(guarded)
    assert guarded.http.get(ROOT, headers={"Authorization": "Bearer wrong"}).status_code == 401


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Origin": "null"},
        {"Origin": "http://evil.example"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec-Fetch-Site": "same-origin"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
    ids=str,
)
def test_a_session_changes_nothing_unless_our_page_asks(guarded: Running, headers: dict[str, str]) -> None:
    sign_in(guarded)
    for method, path in (("POST", ROOT), ("DELETE", SESSION)):
        answer = guarded.http.request(method, path, json=TINY, headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (403, "foreign-origin")
    assert guarded.http.get(ROOT).json()["items"] == []


def test_another_site_cannot_sign_a_browser_in(guarded: Running) -> None:
    for headers in ({"Origin": "http://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}):
        answer = guarded.http.post(SESSION, json={"token": TOKEN}, headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (403, "foreign-origin")


def test_signing_out_forgets_the_cookie(guarded: Running) -> None:
    sign_in(guarded)
    answer = guarded.http.delete(SESSION, headers={"Origin": guarded.url})
    assert answer.status_code == 204
    assert 'blockwright_session=""' in answer.headers["set-cookie"]
    assert "Max-Age=0" in answer.headers["set-cookie"]
    assert guarded.http.get(ROOT).status_code == 401


def test_signing_out_takes_a_session(guarded: Running) -> None:
    assert guarded.http.delete(SESSION, headers={"Origin": guarded.url}).status_code == 401


def test_without_a_token_there_is_nothing_to_sign_in_to(service: Running) -> None:
    answer = service.http.post(SESSION, json={"token": "anything"})
    assert answer.status_code == 204
    assert "set-cookie" not in answer.headers
