from __future__ import annotations

import hashlib
import json
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from api.client import Client, ClientError, Unreachable
from db import architectures, artifacts, searches
from db.engine import transaction
from nas.catalog import DATASETS, TASKS
from tests.api.running import TINY, Claimed, Running
from tests.api.test_catalog import TABLE


@pytest.fixture
def client(service: Running) -> Any:
    with Client(service.url, patience_s=20) as found:
        yield found


def test_a_search_goes_from_submission_to_deletion(client: Client) -> None:
    search = client.submit(TINY)
    assert client.get(search["id"]) == search
    assert [each["id"] for each in client.list()] == [search["id"]]
    assert client.cancel(search["id"])["state"] == "cancelled"
    assert client.resume(search["id"])["state"] == "queued"
    client.cancel(search["id"])
    client.delete(search["id"])
    assert list(client.list()) == []


def test_every_list_of_a_search_is_read_page_by_page(client: Client, claimed: Claimed) -> None:
    claimed.report(list(range(10)))
    assert [row["step"] for row in client.reports(claimed.id, limit=3)] == list(range(10))
    assert [row["step"] for row in client.probabilities(claimed.id, limit=4, stride=2)] == [0, 2, 4, 6, 8, 9]
    assert [trial["id"] for trial in client.trials(claimed.id)] == [claimed.trial]
    assert client.architectures(claimed.id) == client.rules(claimed.id) == client.artifacts(claimed.id) == []


def test_an_architecture_is_read_by_its_id(client: Client, service: Running, claimed: Claimed) -> None:
    with transaction(service.engine) as connection:
        architectures.put(
            connection, claimed.lease, role="argmax", string="AF", hash="h", body={"labels": ["attention", "ffn"]}
        )
    (listed,) = client.architectures(claimed.id)
    assert client.architecture(listed["id"]) == listed
    assert listed["architecture"] == {"labels": ["attention", "ffn"]}
    with pytest.raises(ClientError, match="no architecture"):
        client.architecture(claimed.id)


def test_what_is_known_is_listed(client: Client) -> None:
    assert {"attention", "ffn", "identity", "sgu", "mgk"} <= {block["name"] for block in client.catalog()["blocks"]}
    assert [each["name"] for each in client.datasets()] == [*DATASETS, *TASKS]
    assert client.latency_tables() == []
    added = client.add_latency_table(TABLE)
    assert client.latency_table(added["id"]) == TABLE
    assert client.latency_tables() == [added]
    assert client.version()["version"]


def test_a_refusal_keeps_code_and_pointers(client: Client) -> None:
    with pytest.raises(ClientError, match="unknown field 'x'") as caught:
        client.submit({"x": 1})
    assert (caught.value.status, caught.value.code) == (422, "invalid-request")
    assert caught.value.errors[0]["pointer"] == "/x"
    with pytest.raises(ClientError, match="no latency table") as caught:
        client.latency_table("f" * 32)
    assert caught.value.code == "not-found"


def test_nobody_at_the_address_is_said_so() -> None:
    with (
        Client("http://127.0.0.1:9") as client,
        pytest.raises(Unreachable, match=r"nothing answers at http://127\.0\.0\.1:9"),
    ):
        client.get("x")


def test_an_answer_that_is_not_ours_is_an_error_with_its_status() -> None:
    transport = httpx.MockTransport(lambda request: httpx.Response(502, text="<html>bad gateway</html>"))
    with Client("http://proxy", transport=transport) as client, pytest.raises(ClientError, match="answer 502 from"):
        client.get("x")


@pytest.mark.parametrize("text", ["<html>hello</html>", "[]", ""])
def test_another_service_at_the_address_is_said_so(text: str) -> None:
    transport = httpx.MockTransport(lambda request: httpx.Response(200, text=text))
    with Client("http://other", transport=transport) as client:
        with pytest.raises(ClientError, match="what answers at http://other/api/v1/catalog is no Blockwright"):
            client.catalog()
        with pytest.raises(ClientError, match="is no Blockwright"):
            list(client.events("x"))


def test_a_redirect_is_not_followed_but_told() -> None:
    transport = httpx.MockTransport(lambda request: httpx.Response(301, headers={"Location": "https://other/"}))
    with Client("http://other", transport=transport) as client, pytest.raises(ClientError, match="answer 301 from"):
        client.get("x")


def test_a_lost_answer_is_asked_for_again_and_queues_one_search(service: Running) -> None:
    """The first POST reaches the service, but its answer is lost on the way back."""
    inner = httpx.HTTPTransport()
    sent: list[str] = []

    class Lossy(httpx.BaseTransport):
        def handle_request(self, request: httpx.Request) -> httpx.Response:
            answer = inner.handle_request(request)
            sent.append(request.headers["idempotency-key"])
            if len(sent) == 1:
                answer.read()
                answer.close()
                raise httpx.ReadError("connection lost")
            return answer

        def close(self) -> None:
            inner.close()

    with Client(service.url, transport=Lossy()) as client:
        search = client.submit(TINY)
    assert len(sent) == 2
    assert sent[0] == sent[1]
    with Client(service.url) as client:
        assert [each["id"] for each in client.list()] == [search["id"]]


def test_events_go_on_after_a_lost_connection_without_gap_or_repeat(service: Running, claimed: Claimed) -> None:
    """Every connection breaks after a few hundred bytes; the numbers still come once each and in order."""
    inner = httpx.HTTPTransport()
    connections: list[str] = []

    class Cut(httpx.SyncByteStream):
        def __init__(self, stream: Any) -> None:
            self.stream = stream

        def __iter__(self) -> Any:
            left = 1500
            for part in self.stream:
                yield part[:left]
                left -= len(part)
                if left <= 0:
                    raise httpx.ReadError("connection lost")

        def close(self) -> None:
            self.stream.close()

    class Breaking(httpx.BaseTransport):
        def handle_request(self, request: httpx.Request) -> httpx.Response:
            answer = inner.handle_request(request)
            if request.url.path.endswith("/events"):
                connections.append(request.headers["last-event-id"])
                return httpx.Response(answer.status_code, headers=answer.headers, stream=Cut(answer.stream))
            return answer

        def close(self) -> None:
            inner.close()

    def work() -> None:
        for step in range(6):
            claimed.report([step])
            time.sleep(0.02)
        with transaction(service.engine) as connection:
            searches.finish(connection, claimed.lease, "succeeded")

    thread = threading.Thread(target=work)
    with Client(service.url, transport=Breaking(), patience_s=30) as client:
        thread.start()
        events = list(client.events(claimed.id))
    thread.join()
    assert [event["number"] for event in events] == list(range(1, len(events) + 1))
    assert events[-1]["type"] == "succeeded"
    assert len(connections) > 1


def test_events_of_an_ended_search_end_at_once(client: Client, submitted: dict[str, Any]) -> None:
    client.cancel(submitted["id"])
    assert [event["type"] for event in client.events(submitted["id"])] == ["queued", "cancelled"]
    assert list(client.events(submitted["id"], after=2)) == []


def test_a_search_that_tells_nothing_for_long_is_followed_over_a_broken_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 0.0
    monkeypatch.setattr("api.client.time.monotonic", lambda: now)
    monkeypatch.setattr("api.client.time.sleep", lambda seconds: None)
    n_connections = 0

    class Quiet(httpx.SyncByteStream):
        """Pings for ten minutes, then nothing."""

        def __iter__(self) -> Any:
            nonlocal now
            for _ in range(40):
                now += 15
                yield b": ping\n\n"
            raise httpx.ReadError("connection lost")

    def answer(request: httpx.Request) -> httpx.Response:
        nonlocal n_connections
        n_connections += 1
        if n_connections == 2:
            raise httpx.ConnectError("nobody there for a moment")
        if n_connections == 3:
            return httpx.Response(204)
        return httpx.Response(200, headers={"content-type": "text/event-stream"}, stream=Quiet())

    with Client("http://127.0.0.1:9", transport=httpx.MockTransport(answer), patience_s=60) as client:
        assert list(client.events("x")) == []
    assert n_connections == 3


def test_events_give_up_when_nobody_answers_for_long() -> None:
    with (
        Client("http://127.0.0.1:9", patience_s=0.1) as client,
        pytest.raises(Unreachable, match=r"no connection for 0 s"),
    ):
        list(client.events("x"))


@pytest.fixture
def exported(service: Running, claimed: Claimed) -> Claimed:
    store(service, claimed, b"zip" * 1000)
    return claimed


def store(service: Running, claimed: Claimed, content: bytes) -> None:
    path = service.data_dir / "export.zip"
    path.write_bytes(content)
    with transaction(service.engine) as connection:
        artifacts.put(
            connection,
            claimed.lease,
            kind="export",
            name="export.zip",
            path="export.zip",
            sha256=hashlib.sha256(content).hexdigest(),
            n_bytes=len(content),
        )


def test_a_download_lands_whole_in_file_or_folder(client: Client, exported: Claimed, tmp_path: Path) -> None:
    target = tmp_path / "downloads"
    target.mkdir()
    assert client.download(exported.id, target) == target / "export.zip"
    assert client.download(exported.id, target / "mine.zip").read_bytes() == b"zip" * 1000
    assert sorted(path.name for path in target.iterdir()) == ["export.zip", "mine.zip"]


def test_a_download_stays_in_the_folder_whatever_the_service_calls_it(tmp_path: Path) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        if "artifacts/" in request.url.path:
            return httpx.Response(200, content=b"zip")
        sha256 = hashlib.sha256(b"zip").hexdigest()
        return httpx.Response(200, json={"items": [{"id": "a", "kind": "export", "name": "../x", "sha256": sha256}]})

    target = tmp_path / "downloads"
    target.mkdir()
    with Client("http://other", transport=httpx.MockTransport(answer)) as client:
        assert client.download("s", target) == target / "x"


def test_a_kind_that_is_not_there_names_those_that_are(client: Client, exported: Claimed, tmp_path: Path) -> None:
    with pytest.raises(ClientError, match=r"has no onnx; it has: export"):
        client.download(exported.id, tmp_path, kind="onnx")


def test_a_download_that_differs_from_its_sha256_leaves_nothing(
    client: Client, service: Running, exported: Claimed, tmp_path: Path
) -> None:
    (service.data_dir / "export.zip").write_bytes(b"zap" * 1000)
    target = tmp_path / "downloads"
    target.mkdir()
    with pytest.raises(ClientError, match=r"sha256 of export.zip differs; download it again"):
        client.download(exported.id, target)
    assert list(target.iterdir()) == []


def test_a_search_without_an_export_says_when_it_comes(
    client: Client, submitted: dict[str, Any], tmp_path: Path
) -> None:
    with pytest.raises(ClientError, match="has no export yet; it comes when the search has succeeded"):
        client.download(submitted["id"], tmp_path)


def test_the_token_is_sent(service: Running) -> None:
    seen: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request.headers["authorization"])
        return httpx.Response(200, text=json.dumps({"items": [], "next": None}))

    with Client(service.url, "secret-token-of-mine", transport=httpx.MockTransport(answer)) as client:
        list(client.list())
    assert seen == ["Bearer secret-token-of-mine"]
