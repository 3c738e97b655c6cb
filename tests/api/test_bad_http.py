"""Bad HTTP sent to a real service: hosts, origins, tokens, framing, bodies that never end or never come.

Each is refused, is never a 500, stores and loses nothing, and the service answers afterwards. The cases of public
advisories on like services are replayed by name.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import select
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from pydantic import SecretStr

from api import body, protocol
from api.gate import OPEN_PATHS, SIGN_IN
from tests.api.raw import Answer, connected, exchange, head, read_answer
from tests.api.running import TINY
from tests.api.standing import Standing, body_of, filled, refused, routes, settings_for, standing

TOKEN = "correct-horse-battery-staple"
UPLOAD = "/api/v1/datasets?name=new"
WORDS = b"words and words " * 20_000


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory, migrated: Path) -> Iterator[Standing]:
    folder = tmp_path_factory.mktemp("standing")
    with standing(settings_for(folder, migrated, max_dataset_bytes=2**20)) as found:
        yield found


@pytest.fixture(scope="module")
def hurried(tmp_path_factory: pytest.TempPathFactory, migrated: Path) -> Iterator[Standing]:
    folder = tmp_path_factory.mktemp("hurried")
    with standing(settings_for(folder, migrated, upload_patience_s=0.3, max_dataset_bytes=2**20)) as found:
        yield found


@pytest.fixture
def impatient(hurried: Standing) -> Iterator[Standing]:
    """One that waits 0.3 s for the next part of an upload; afterwards as it was before."""
    with hurried.unchanged():
        yield hurried


@pytest.fixture
def there(shared: Standing) -> Iterator[Standing]:
    """The service, which is afterwards as it was before."""
    with shared.unchanged():
        yield shared


# -- hosts and origins --------------------------------------------------------------------------------------------

FOREIGN_HOSTS = [
    *(
        "evil.example",
        "evil.example:8400",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "evil.example.",
        "0.0.0.0",
    ),
    *("169.254.169.254", "localhost.", "127.1", "2130706433", "[::ffff:7f00:1]", "xn--lcalhost-2fb"),
]
NO_HOSTS = ["", "a@127.0.0.1", "127.0.0.1@evil.example", "127.0.0.1/x", "127.0.0.1:port", "127.0.0.1:99999", "[::1"]
NO_HOSTS += ["127.0.0.1\\@evil.example", "http://127.0.0.1", "127.0.0.1#evil.example", "127.0.0.1?x", ":8400"]


@pytest.mark.parametrize("host", FOREIGN_HOSTS)
def test_a_foreign_host_is_refused_on_every_route(there: Standing, host: str) -> None:
    """DNS rebinding (CVE-2025-62593): the name of another site, which leads here, whatever browser it says it is."""
    for method, route in routes(there.service):
        target = filled(route, lambda name: there.ids[name])
        body, headers = body_of(route)
        answer = there.ask(method, target, body, **headers, Host=host, User_Agent="Mozilla/5.0 Firefox/145.0")
        refused(answer, "foreign-host")
        assert answer.status == 421


@pytest.mark.parametrize("host", NO_HOSTS)
def test_a_host_that_is_none_is_refused(there: Standing, host: str) -> None:
    answer = there.ask("GET", "/api/v1/searches", Host=host)
    refused(answer, "invalid-host")
    assert answer.status == 400


@pytest.mark.parametrize(
    "lines",
    [
        "",
        "Host: 127.0.0.1\r\nHost: evil.example\r\n",
        "Host: evil.example\r\nHost: 127.0.0.1\r\n",
        "Host : 127.0.0.1\r\n",
    ],
    ids=["none", "two", "two, ours last", "space before the colon"],
)
def test_a_request_without_one_host_is_refused(there: Standing, lines: str) -> None:
    answer = exchange(there.service.url, f"GET /api/v1/searches HTTP/1.1\r\n{lines}\r\n".encode())
    refused(answer, "invalid-http")
    old = exchange(there.service.url, b"GET /api/v1/searches HTTP/1.0\r\n\r\n")
    refused(old, "invalid-host")


@pytest.mark.parametrize("header", ["X_Forwarded_Host", "X_Host", "Forwarded", "X_Original_URL", "X_Forwarded_Prefix"])
def test_headers_of_proxies_change_nothing(there: Standing, header: str) -> None:
    refused(there.ask("GET", "/api/v1/searches", Host="evil.example", **{header: "127.0.0.1"}), "foreign-host")
    answer = there.ask("GET", f"/api/v1/searches/{there.ids['search_id']}", **{header: "evil.example"})
    assert answer.status == 200
    assert "evil" not in str(answer)


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": ""},
        {"Origin": "http://127.0.0.1.evil.example"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "file://"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
        {"Sec_Fetch_Site": "same-origin", "Origin": "null"},
    ],
    ids=str,
)
def test_another_site_changes_nothing_and_uploads_nothing(there: Standing, headers: dict[str, str]) -> None:
    """CVE-2024-1727: text/plain needs no leave of the browser, so any site can send it to this machine; and CSRF."""
    for method, route in routes(there.service):
        if method in ("GET", "HEAD"):
            continue
        body, more = body_of(route)
        answer = there.ask(method, filled(route, lambda name: there.ids[name]), body, **more, **headers)
        refused(answer, "foreign-origin")
    answer = there.ask("POST", UPLOAD, WORDS, Content_Type="text/plain", **headers)
    refused(answer, "foreign-origin")


def test_no_site_may_read(there: Standing) -> None:
    headers = {"Origin": "http://evil.example", "Access_Control_Request_Method": "POST"}
    for method in ("GET", "OPTIONS"):
        answer = there.ask(method, "/api/v1/searches", **headers)
        assert not [name for name in answer.headers if name.startswith("access-control-")]


# -- tokens -------------------------------------------------------------------------------------------------------


def cookie(token: str, expiry: str) -> str:
    signature = hmac.new(token.encode(), expiry.encode(), hashlib.sha256).hexdigest()
    return f"blockwright_session={expiry}.{signature}"


LATER = str(int(time.time()) + 3600)
CREDENTIALS: dict[str, dict[str, str]] = {
    "none": {},
    "empty": {"Authorization": ""},
    "no token": {"Authorization": "Bearer"},
    "an empty token": {"Authorization": "Bearer "},
    "wrong": {"Authorization": "Bearer correct-horse-battery-stable"},
    "its beginning": {"Authorization": f"Bearer {TOKEN[:-1]}"},
    "with more behind it": {"Authorization": f"Bearer {TOKEN}x"},
    "upper case": {"Authorization": f"Bearer {TOKEN.upper()}"},
    "twice": {"Authorization": f"Bearer {TOKEN}, Bearer {TOKEN}"},
    "no scheme": {"Authorization": TOKEN},
    "another scheme": {"Authorization": f"Basic {TOKEN}"},
    "not ASCII": {"Authorization": "Bearer \xe9\xff"},
    "10,000 characters": {"Authorization": "Bearer " + "x" * 10_000},
    "its hash": {"Authorization": f"Bearer {hashlib.sha256(TOKEN.encode()).hexdigest()}"},
    "admin:password": {"Authorization": "Basic YWRtaW46cGFzc3dvcmQ="},
    "another header": {"X_Token": TOKEN, "X_Api_Key": TOKEN},
    "an unsigned cookie": {"Cookie": f"blockwright_session={LATER}"},
    "a cookie of another token": {"Cookie": cookie("another-token-of-mine", LATER)},
    "a cookie that has ended": {"Cookie": cookie(TOKEN, "1000000000")},
    "a cookie with another end": {"Cookie": cookie(TOKEN, "1000000000").replace("1000000000", LATER)},
    "a cookie that is no number": {"Cookie": cookie(TOKEN, "never")},
    "a cookie that never ends": {"Cookie": cookie(TOKEN, "9" * 300)},
    "the token as a cookie": {"Cookie": f"blockwright_session={TOKEN}"},
}


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory, migrated: Path) -> Iterator[Standing]:
    """As `shared`, but it asks for a token, which its own client sends."""
    folder = tmp_path_factory.mktemp("guarded")
    with standing(settings_for(folder, migrated, token=SecretStr(TOKEN))) as found:
        yield found


@pytest.mark.parametrize("case", CREDENTIALS)
def test_without_the_token_no_route_answers(guarded: Standing, case: str) -> None:
    """Every route of the API (CVE-2023-48022, CVE-2026-0545, GHSA-8c7q-86fq-vvmh: some had been left out)."""
    with guarded.unchanged():
        for method, route in routes(guarded.service):
            if (method, route.path) == SIGN_IN or route.path in OPEN_PATHS:
                continue
            body, headers = body_of(route)
            target = filled(route, lambda name: guarded.ids[name])
            answer = guarded.ask(method, target, body, **headers, **CREDENTIALS[case])
            refused(answer, "unauthorized")
            assert (answer.status, answer.headers["www-authenticate"]) == (401, "Bearer")
            assert TOKEN not in str(answer)
        refused(guarded.ask("POST", UPLOAD, WORDS, Content_Type="text/plain", **CREDENTIALS[case]), "unauthorized")
        refused(guarded.ask("GET", f"/api/v1/searches?token={TOKEN}&access_token={TOKEN}"), "unauthorized")


def test_two_credentials_are_none(guarded: Standing) -> None:
    lines = (
        f"GET /api/v1/searches HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer x\r\nAuthorization: Bearer {TOKEN}"
    )
    assert exchange(guarded.service.url, f"{lines}\r\n\r\n".encode()).status == 401


@pytest.mark.parametrize("token", ["", "x", TOKEN[:-1], TOKEN + "x", "\0", "é" * 20, "x" * 4000])
def test_a_wrong_token_opens_no_session(guarded: Standing, token: str) -> None:
    body = json.dumps({"token": token}).encode()
    answer = guarded.ask("POST", SIGN_IN[1], body, Content_Type="application/json")
    refused(answer, "wrong-token")
    assert "set-cookie" not in answer.headers


# -- framing ------------------------------------------------------------------------------------------------------

GARBAGE: dict[str, bytes] = {
    "a greeting of TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"x" * 100,
    "no request": b"hello\r\n\r\n",
    "zeros": b"\0" * 1000,
    "a space in the path": b"GET /api/v1/searches/a b HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    "NUL in the path": b"GET /api/v1/searches/\0 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    "bytes beyond ASCII in the path": b"GET /api/v1/searches/\xff HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    "NUL in a header": b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: a\0b\r\n\r\n",
    "a header cut by a line end": b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: a\rb\r\n\r\n",
    "a header without a colon": b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX\r\n\r\n",
    "two lengths": head("POST", UPLOAD, Host="127.0.0.1", Content_Length="3\r\nContent-Length: 4") + b"abcd",
    "a negative length": head("POST", UPLOAD, Host="127.0.0.1", Content_Length="-1"),
    "a length that is none": head("POST", UPLOAD, Host="127.0.0.1", Content_Length="3e9"),
    "a length of 100 digits": head("POST", UPLOAD, Host="127.0.0.1", Content_Length="9" * 100),
    "an unknown encoding": head("POST", UPLOAD, Host="127.0.0.1", Transfer_Encoding="gzip"),
}


@pytest.mark.parametrize("case", GARBAGE)
def test_what_is_no_http_is_refused(there: Standing, case: str) -> None:
    with connected(there.service.url) as connection:
        with suppress(BrokenPipeError, ConnectionResetError):  # it has seen enough
            connection.sendall(GARBAGE[case])
        answer = read_answer(connection)
    refused(answer, "invalid-http")
    assert answer.headers["connection"] == "close"


LONG_HEADS = {
    "a path of 2 MB": b"GET /" + b"a" * 2**21 + b" HTTP/1.1\r\n",
    "a header of 2 MB": b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + b"a" * 2**21 + b"\r\n",
    "400,000 headers": b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n" + b"X: a\r\n" * 400_000,
}


@pytest.mark.parametrize("case", LONG_HEADS)
def test_a_head_without_end_is_cut_off(there: Standing, case: str) -> None:
    with connected(there.service.url) as connection:
        with suppress(BrokenPipeError, ConnectionResetError):
            connection.sendall(LONG_HEADS[case])
        answer = read_answer(connection)
    assert answer.status in (0, 400)  # closed while we are still sending, which may lose the answer
    if answer.status:
        refused(answer, "invalid-http")


@pytest.mark.parametrize("path", ["a" * 5000, "%1b[31m", "x%0aX-Injected:%20yes", "%e2%80%ae", "%ff", "..%2f" * 100])
def test_an_unknown_address_is_told_in_one_short_line(there: Standing, path: str) -> None:
    answer = there.ask("GET", f"/api/v1/{path}")
    refused(answer, "not-found")
    assert "x-injected" not in answer.headers


# -- bodies that are too long, or never come ----------------------------------------------------------------------


def test_3_gigabytes_that_are_declared_are_refused_at_once_on_every_route(there: Standing) -> None:
    """Nothing of the body is sent: the answer does not wait for it, nor for one that asks for leave first."""
    for method, route in routes(there.service):
        target = filled(route, lambda name: there.ids[name])
        if route.name == "add_dataset":
            target = UPLOAD
        for more in ({}, {"Expect": "100-continue"}):
            with connected(there.service.url) as connection:
                declared = head(method, target, Host="127.0.0.1", Content_Length=str(3 * 2**30), **more)
                connection.sendall(declared)
                answer = read_answer(connection, has_body=method != "HEAD")
            refused(answer, "too-large" if route.name == "add_dataset" else "body-too-large")
            assert (answer.status, answer.headers["connection"]) == (413, "close")


@pytest.mark.parametrize("sent", [b"", b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n"], ids=["nothing", "no end"])
@pytest.mark.parametrize("before", [0, 1], ids=["first", "second"])
def test_a_request_that_never_comes_is_not_waited_for(
    there: Standing, monkeypatch: pytest.MonkeyPatch, sent: bytes, before: int
) -> None:
    monkeypatch.setattr(protocol, "PATIENCE_S", 0.5)
    with connected(there.service.url) as connection:
        for _ in range(before):
            connection.sendall(head("GET", "/healthz", Host="127.0.0.1"))
            assert read_answer(connection).status == 200
        connection.sendall(sent)
        assert read_answer(connection).status == 0


def test_a_body_that_never_comes_is_not_waited_for(
    guarded: Standing, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Signing in reads one without a token."""
    monkeypatch.setattr(body, "PATIENCE_S", 0.5)
    begun = head("POST", SIGN_IN[1], Host="127.0.0.1", Content_Type="application/json", Content_Length="90") + b"{"
    with connected(guarded.service.url) as connection:
        connection.sendall(begun)
        answer = read_answer(connection)
    refused(answer, "body-incomplete")
    assert answer.status == 408
    with connected(guarded.service.url) as connection:
        connection.sendall(begun)
        connection.shutdown(socket.SHUT_WR)
        read_answer(connection)
    assert guarded.ask("GET", "/healthz").status == 200  # and by now whatever it makes of that is in the log
    assert caplog.records == []


@pytest.mark.parametrize("target", [UPLOAD, "/api/v1/searches", "/api/v1/latency-tables"])
def test_3_gigabytes_that_are_sent_are_refused_early_and_not_taken(there: Standing, target: str) -> None:
    """In chunks, so that nobody knows the length before: the answer comes after the first megabytes."""
    media_type = "text/plain" if target == UPLOAD else "application/json"
    megabyte = b"100000\r\n" + b"words is" * 2**17 + b"\r\n"
    with connected(there.service.url) as connection:
        headers = {"Host": "127.0.0.1", "Transfer_Encoding": "chunked", "Content_Type": media_type}
        connection.sendall(head("POST", target, **headers))
        sent = 0
        try:
            for _ in range(3):
                connection.sendall(megabyte)
            answer = read_answer(connection)
            while sent < 3 * 2**30:
                connection.sendall(megabyte)
                sent += len(megabyte)
        except (BrokenPipeError, ConnectionResetError):
            pass
    refused(answer, "too-large", "body-too-large")
    assert (answer.status, answer.headers["connection"]) == (413, "close")
    assert sent < 2**30  # by then the connection was closed


def wait_for_part(there: Standing) -> None:
    folder = there.service.data_dir / "datasets"
    deadline = time.monotonic() + 30
    while not [path for path in folder.iterdir() if path.suffix == ".part"]:
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize("how", ["closed", "half closed", "reset"])
@pytest.mark.parametrize("chunked", [False, True], ids=["with a length", "in chunks"])
def test_an_upload_that_breaks_off_leaves_nothing(there: Standing, how: str, chunked: bool) -> None:
    framing = {"Transfer_Encoding": "chunked"} if chunked else {"Content_Length": "1000000"}
    with connected(there.service.url) as connection:
        body = b"4e200\r\n" + WORDS + b"\r\n" if chunked else WORDS
        connection.sendall(head("POST", UPLOAD, Host="127.0.0.1", **framing) + body)
        wait_for_part(there)
        if how == "half closed":
            connection.shutdown(socket.SHUT_WR)
            answer = read_answer(connection)
            assert answer.status in (0, 400, 408), answer
        elif how == "reset":
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


@pytest.mark.parametrize("sent", [0, 1, 100_000], ids=["nothing", "1 byte", "100,000 bytes"])
@pytest.mark.parametrize("chunked", [False, True], ids=["with a length", "in chunks"])
def test_an_upload_that_stops_is_refused_and_leaves_nothing(impatient: Standing, sent: int, chunked: bool) -> None:
    framing = {"Transfer_Encoding": "chunked"} if chunked else {"Content_Length": "1000000"}
    with connected(impatient.service.url) as connection:
        body = f"{sent:x}\r\n".encode() + WORDS[:sent] + b"\r\n" if chunked and sent else WORDS[:sent]
        connection.sendall(head("POST", UPLOAD, Host="127.0.0.1", **framing) + body)
        answer = read_answer(connection)
    refused(answer, "upload-incomplete")
    assert (answer.status, answer.headers["connection"]) == (408, "close")


def test_an_upload_that_trickles_is_refused_and_leaves_nothing(impatient: Standing) -> None:
    """A byte at a time keeps no place for ever: within the patience, a whole block must arrive."""
    with connected(impatient.service.url) as connection:
        connection.sendall(head("POST", UPLOAD, Host="127.0.0.1", Content_Length="1000000"))
        answer = Answer(0, {}, "")
        for _ in range(4000):
            connection.sendall(b"a")
            if select.select([connection], [], [], 0.05)[0]:
                answer = read_answer(connection)
                break
    refused(answer, "upload-incomplete")


@pytest.mark.parametrize(
    "chunk", [b"zz\r\nab\r\n", b"-1\r\nab\r\n", b"5\r\nab\r\n0\r\n\r\n", b"f" * 20 + b"\r\n"], ids=ascii
)
def test_chunks_that_are_none_leave_nothing(impatient: Standing, chunk: bytes) -> None:
    with connected(impatient.service.url) as connection:
        begin = head("POST", UPLOAD, Host="127.0.0.1", Transfer_Encoding="chunked")
        connection.sendall(begin + b"4e200\r\n" + WORDS + b"\r\n" + chunk)
        answer = read_answer(connection)
    refused(answer, "invalid-http", "upload-incomplete", "too-large")


def test_a_second_request_hidden_in_a_body_is_none(there: Standing) -> None:
    """Smuggling: both lengths. What the chunks leave over is read as the next request, by us as by any proxy."""
    hidden = head("DELETE", f"/api/v1/datasets/{there.ids['name']}", Host="127.0.0.1")
    with connected(there.service.url) as connection:
        both = head("POST", UPLOAD, Host="127.0.0.1", Content_Length="5", Transfer_Encoding="chunked")
        connection.sendall(both + b"3\r\nabc\r\n0\r\n\r\n")
        first = read_answer(connection)
        refused(first, "too-short", "invalid-http")
    with connected(there.service.url) as connection:
        connection.sendall(head("POST", UPLOAD, Host="127.0.0.1", Content_Length=str(len(hidden))) + hidden)
        refused(read_answer(connection), "too-short")


def test_a_request_in_two_parts_is_one(there: Standing) -> None:
    """The counterpart: slow is not wrong as long as it goes on."""
    request = head("GET", "/readyz", Host="127.0.0.1")
    with connected(there.service.url) as connection:
        for byte in request:
            connection.sendall(bytes([byte]))
        assert read_answer(connection).body == {"status": "ok"}


def test_after_a_refusal_a_kept_connection_goes_on(there: Standing) -> None:
    with connected(there.service.url) as connection:
        body = json.dumps({**TINY, "name": ""}).encode()
        request = head("POST", "/api/v1/searches", Host="127.0.0.1", Content_Type="application/json",
                       Content_Length=str(len(body))) + body  # fmt: skip
        for _ in range(3):
            connection.sendall(request)
            refused(read_answer(connection), "invalid-request")
