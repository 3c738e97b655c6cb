"""Texts over REST on a real service: what is taken is whole and found again, what is not leaves nothing behind."""

from __future__ import annotations

import fcntl
import hashlib
import os
import resource
import signal
import stat
import subprocess
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import Connection, Engine
from sqlalchemy.exc import OperationalError

from api.client import Client, ClientError
from api.settings import Settings
from db import datasets
from db.engine import transaction
from nas.text import MIN_BYTES
from tests.api.raw import connected, exchange, head, read_answer
from tests.api.running import TINY, Running, running

ROOT = "/api/v1/datasets"
TEXT = "Die Größe der Wörter: 😀 €\n".encode() * 100
SHA256 = hashlib.sha256(TEXT).hexdigest()
REPO = Path(__file__).parents[2]


def upload(service: Running, name: str = "novels", text: Any = TEXT, **headers: str) -> httpx.Response:
    return service.http.post(ROOT, params={"name": name}, content=text, headers=headers)


def files(service: Running) -> list[str]:
    folder = service.data_dir / "datasets"
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def names(service: Running) -> list[str]:
    return [each["name"] for each in service.http.get(ROOT).json()["items"] if not each["built_in"]]


def wait_for(condition: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.01)


def request_on(name: str, **task: Any) -> dict[str, Any]:
    return {**TINY, "task": {**TINY["task"], "dataset": name, **task}}


# -- taken --------------------------------------------------------------------------------------------------------


def test_a_text_is_uploaded_listed_shown_and_removed(service: Running) -> None:
    answer = upload(service)
    assert answer.status_code == 201, answer.text
    assert answer.headers["location"] == f"{ROOT}/novels"
    added = answer.json()
    assert (added["name"], added["built_in"], added["n_bytes"], added["n_uses"]) == ("novels", False, len(TEXT), 0)
    assert added["fingerprint"] == SHA256
    assert service.http.get(ROOT).json()["items"][-1] == added
    shown = service.http.get(f"{ROOT}/novels").json()
    assert shown == {**added, "excerpt": TEXT.decode()[:1000], "encodings": [], "in_use_by": []}
    assert service.http.delete(f"{ROOT}/novels").status_code == 204
    assert service.http.get(f"{ROOT}/novels").json()["code"] == "not-found"
    assert (names(service), files(service)) == ([], [])


def test_a_text_is_a_private_file_named_by_its_content(service: Running) -> None:
    upload(service, "..-_.")  # not a name that could be one
    upload(service, "a..")
    path = service.data_dir / "datasets" / f"{SHA256}.txt"
    assert files(service) == [path.name]
    assert path.read_bytes() == TEXT
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


@pytest.mark.parametrize("size", [1, 2, 3, 1000, 65537])
def test_characters_may_be_cut_by_any_border(service: Running, size: int) -> None:
    text = "x" + "😀é€" * (100 if size < 10 else 60_000)
    body = text.encode()
    chunks = (body[start : start + size] for start in range(0, len(body), size))
    answer = upload(service, text=chunks)
    assert answer.status_code == 201, answer.text
    assert answer.json()["fingerprint"] == hashlib.sha256(body).hexdigest()
    assert service.http.get(f"{ROOT}/novels").json()["excerpt"] == text[:1000]


def test_the_same_text_again_changes_nothing(service: Running) -> None:
    first, again = upload(service), upload(service)
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json() == again.json()
    (service.data_dir / "datasets" / f"{SHA256}.txt").unlink()
    assert upload(service).status_code == 200
    assert files(service) == [f"{SHA256}.txt"]  # and puts a lost file right


@pytest.mark.parametrize("text", [TEXT + b"more", TEXT.replace(b"D", b"d")], ids=["longer", "of the same length"])
@pytest.mark.parametrize("chunked", [False, True], ids=["with a length", "in chunks"])
def test_a_name_means_one_text(service: Running, text: bytes, chunked: bool) -> None:
    upload(service)
    answer = upload(service, text=iter([text]) if chunked else text)
    assert (answer.status_code, answer.json()["code"]) == (409, "name-taken")
    assert answer.json()["detail"].startswith("dataset 'novels' holds other content")
    assert files(service) == [f"{SHA256}.txt"]


def test_a_built_in_name_is_neither_taken_nor_removed(service: Running) -> None:
    answer = upload(service, "python-docs")
    assert (answer.status_code, answer.json()["code"]) == (409, "name-taken")
    answer = service.http.delete(f"{ROOT}/python-docs")
    assert (answer.status_code, answer.json()["code"]) == (409, "built-in")
    shown = service.http.get(f"{ROOT}/python-stdlib").json()
    assert (shown["built_in"], shown["excerpt"], shown["n_bytes"], shown["in_use_by"]) == (True, None, None, [])


def test_a_text_of_two_names_is_one_file_until_both_are_gone(service: Running) -> None:
    upload(service, "one")
    upload(service, "two")
    assert files(service) == [f"{SHA256}.txt"]
    service.http.delete(f"{ROOT}/one")
    assert files(service) == [f"{SHA256}.txt"]
    service.http.delete(f"{ROOT}/two")
    assert files(service) == []


@pytest.mark.parametrize(
    "media_type",
    ["text/plain", "text/plain; charset=UTF-8", 'text/plain;charset="utf-8"', "application/octet-stream", "TEXT/PLAIN"],
)
def test_media_types_of_a_text(service: Running, media_type: str) -> None:
    assert upload(service, **{"Content-Type": media_type}).status_code == 201


def test_the_memory_of_an_upload_does_not_grow_with_it(service: Running) -> None:
    block = b"0123456789abcde\n" * 4096
    tracemalloc.start()
    answer = upload(service, text=(block for _ in range(512)))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert answer.json()["n_bytes"] == 32 * 2**20
    assert peak < 8 * 2**20  # client and service together


# -- not taken ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "detail"),
    [
        (
            {"Content-Type": "application/json"},
            "the body must be text/plain or application/octet-stream, not application/",
        ),
        (
            {"Content-Type": "multipart/form-data; boundary=x"},
            "the body must be text/plain or application/octet-stream, not multipart/form-data; send the file itself as "
            "the body, as `curl -T FILE -X POST` does",
        ),
        ({"Content-Type": "text/plain; charset=utf-16"}, "the text must be UTF-8, not utf-16"),
        ({"Content-Encoding": "gzip"}, "the file must be sent as it is, not gzip"),
    ],
    ids=str,
)
def test_other_media_types_are_refused(service: Running, headers: dict[str, str], detail: str) -> None:
    answer = upload(service, **headers)
    assert (answer.status_code, answer.json()["code"]) == (415, "unsupported-media-type")
    assert answer.json()["detail"].startswith(detail)


def test_a_misspelt_parameter_is_refused(service: Running) -> None:
    answer = service.http.post(ROOT, params={"name": "rows", "lable": "stars"}, content=b"")
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid-request")
    assert answer.json()["detail"].startswith("unknown parameter 'lable'; known: name, file, format, ")


def test_a_text_that_goes_on_beyond_the_limit_is_refused_while_it_is_read(settings: Settings) -> None:
    with running(settings.model_copy(update={"max_dataset_bytes": 300_000})) as service:
        assert upload(service, "fits", text=iter([b"x" * 300_000])).status_code == 201
        answer = upload(service, text=(b"x" * 65536 for _ in range(50)))
        assert (answer.status_code, answer.json()["code"]) == (413, "too-large")
        assert answer.json()["detail"] == (
            "the file is longer; at most 300000 are taken, which BLOCKWRIGHT_MAX_DATASET_BYTES sets"
        )
        assert len(files(service)) == 1


def test_a_text_that_is_declared_too_long_is_refused_before_it_is_sent(service: Running) -> None:
    declared = head("POST", f"{ROOT}?name=x", Host="127.0.0.1", Content_Length=str(2**33))
    answer = exchange(service.url, declared)
    assert (answer.status, answer.body["code"]) == (413, "too-large")
    assert "the file has 8589934592 bytes; at most 4294967296" in answer.body["detail"]
    assert answer.headers["connection"] == "close"
    assert files(service) == []


def test_the_limit_is_that_of_this_route_alone(service: Running) -> None:
    """The 2 MB of every other body hold here neither, nor does this limit hold there."""
    assert upload(service, text=b"x" * (3 * 2**20)).status_code == 201
    for method, path in [("POST", "/api/v1/searches"), ("PUT", ROOT), ("POST", f"{ROOT}/novels")]:
        answer = service.http.request(method, path, content=b"x" * (3 * 2**20))
        assert (answer.status_code, answer.json()["code"]) == (413, "body-too-large"), (method, path)


@contextmanager
def begun(service: Running, name: str = "broken", sent: bytes = TEXT) -> Iterator[Any]:
    """An upload that has sent a part of its text."""
    with connected(service.url) as connection:
        connection.sendall(head("POST", f"{ROOT}?name={name}", Host="127.0.0.1", Content_Length="1000000") + sent)
        yield connection


def is_idle(service: Running) -> bool:
    return files(service) == [] and service.app.state.uploads.free == service.app.state.settings.max_uploads


def test_an_upload_whose_connection_breaks_leaves_nothing(service: Running) -> None:
    with begun(service):
        wait_for(lambda: files(service), "the part is there")
    wait_for(lambda: is_idle(service), "the part and the place are given back")
    assert names(service) == []
    assert upload(service, "broken").status_code == 201


def test_an_upload_that_does_not_go_on_is_refused_and_leaves_nothing(settings: Settings) -> None:
    with running(settings.model_copy(update={"upload_patience_s": 0.2})) as service, begun(service) as connection:
        answer = read_answer(connection)
        assert (answer.status, answer.body["code"]) == (408, "upload-incomplete")
        assert answer.body["detail"] == "less than 262144 bytes came in 0.2 s, after 0 bytes; send the file again"
        wait_for(lambda: is_idle(service), "the part and the place are given back")


def test_more_uploads_at_once_than_allowed_are_told_to_come_again(settings: Settings) -> None:
    with running(settings.model_copy(update={"max_uploads": 1})) as service:
        with begun(service):
            wait_for(lambda: files(service), "the first one is on its way")
            answer = upload(service)
            assert (answer.status_code, answer.json()["code"]) == (503, "too-many-uploads")
            assert answer.headers["retry-after"] == "5"
        wait_for(lambda: is_idle(service), "the place is given back")
        assert upload(service).status_code == 201


@pytest.mark.parametrize(
    ("texts", "statuses"),
    [((TEXT, TEXT), [200, 201]), ((TEXT, TEXT.replace(b"D", b"d")), [201, 409])],
    ids=["the same", "different"],
)
def test_two_uploads_of_one_name_at_once(service: Running, texts: tuple[bytes, bytes], statuses: list[int]) -> None:
    both = threading.Barrier(2)

    def blocks(text: bytes) -> Iterator[bytes]:
        yield text[:1000]
        both.wait(timeout=20)  # each is on its way before either ends
        yield text[1000:]

    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(lambda text: upload(service, text=blocks(text)), texts))
    assert sorted(answer.status_code for answer in answers) == statuses
    (won,) = [text for text, answer in zip(texts, answers, strict=True) if answer.status_code == 201]
    assert service.http.get(f"{ROOT}/novels").json()["fingerprint"] == hashlib.sha256(won).hexdigest()
    assert files(service) == [f"{hashlib.sha256(won).hexdigest()}.txt"]


# -- killed, full -------------------------------------------------------------------------------------------------


@contextmanager
def api_process(data_dir: Path, max_file_bytes: int = resource.RLIM_INFINITY) -> Iterator[tuple[int, str]]:
    """`blockwright api` as a process; its pid and address. Its files may not grow beyond a limit, as on a full disk."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("BLOCKWRIGHT_")}
    process = subprocess.Popen(
        [sys.executable, "-m", "api.cli", "api", "--port", "0", "--data-dir", str(data_dir)],
        cwd=REPO,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (max_file_bytes, max_file_bytes)),
    )
    address = data_dir / "address"
    try:
        wait_for(lambda: address.exists() or process.poll() is not None, "the api answers")
        yield process.pid, address.read_text().strip()
    finally:
        process.kill()
        process.wait()
        address.unlink(missing_ok=True)


def test_a_full_disk_is_said_so_and_leaves_nothing(settings: Settings) -> None:
    with (
        api_process(settings.data_dir, 2**20) as (_, url),
        httpx.Client(base_url=url, trust_env=False, timeout=60) as http,
    ):
        answer = http.post(ROOT, params={"name": "novels"}, content=b"x" * 2**21)
        assert (answer.status_code, answer.json()["code"]) == (507, "disk-full")
        assert answer.json()["detail"] == "the file cannot be stored: file too large; nothing of it was kept"
        assert list((settings.data_dir / "datasets").iterdir()) == []
        assert http.post(ROOT, params={"name": "novels"}, content=TEXT).status_code == 201


def test_what_a_killed_api_has_left_goes_at_the_next_start(settings: Settings) -> None:
    folder = settings.data_dir / "datasets"
    with api_process(settings.data_dir) as (pid, url), connected(url) as connection:
        connection.sendall(head("POST", f"{ROOT}?name=x", Host="127.0.0.1", Content_Length="1000000") + TEXT)
        wait_for(lambda: folder.exists() and list(folder.iterdir()), "the part is there")
        os.kill(pid, 9)
    (left,) = folder.iterdir()
    mine = folder / ".mine.part"  # another api's, which is at it
    mine.touch()
    strange = folder / f"{'0' * 64}.txt"  # no row names it: it may be another database's
    strange.write_bytes(TEXT)
    for path in (left, mine):
        os.utime(path, (0, 0))
    with mine.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with running(settings) as service:
            assert files(service) == [".mine.part", strange.name]
            young = folder / ".young.part"  # not locked yet
            young.touch()
    with running(settings) as service:
        assert files(service) == [".young.part", strange.name]


def test_a_removal_that_was_cut_off_is_finished_or_undone_at_the_next_start(settings: Settings) -> None:
    with running(settings) as service:
        upload(service)
    folder = settings.data_dir / "datasets"
    (folder / f"{SHA256}.txt").rename(folder / f".{SHA256}.removed")  # killed before its row had gone for good
    (folder / f".{'0' * 64}.removed").touch()  # killed after
    with running(settings) as service:
        assert files(service) == [f"{SHA256}.txt"]
        assert service.http.get(f"{ROOT}/novels").json()["excerpt"] == TEXT.decode()[:1000]


def test_a_start_on_a_database_without_tables_keeps_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "datasets").mkdir()
    (tmp_path / "datasets" / ".text.removed").touch()
    with running(Settings(data_dir=tmp_path, port=0)) as service:
        assert files(service) == [".text.removed"]
        answer = upload(service)
        assert (answer.status_code, answer.json()["code"]) == (503, "database-unavailable")
        assert files(service) == [".text.removed"]


@pytest.mark.parametrize("known", [False, True], ids=["new", "known before"])
def test_a_row_that_cannot_be_written_leaves_the_files_as_they_were(service: Running, known: bool) -> None:
    """The database refuses it after the file is in place."""
    if known:
        upload(service, "before")
    before = files(service)
    with service.engine.begin() as connection:
        connection.exec_driver_sql(
            "CREATE TRIGGER no BEFORE INSERT ON datasets BEGIN SELECT RAISE(ABORT, 'refused'); END"
        )
    assert upload(service).status_code >= 500
    assert files(service) == before
    with service.engine.begin() as connection:
        connection.exec_driver_sql("DROP TRIGGER no")
    assert upload(service).status_code == 201


def test_a_row_that_was_written_though_nobody_said_so_keeps_its_file(
    service: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection to the database breaks between its commit and the answer to it."""

    @contextmanager
    def unanswered(engine: Engine) -> Iterator[Connection]:
        monkeypatch.undo()
        with transaction(engine) as connection:
            yield connection
        raise OperationalError("COMMIT", None, Exception("the connection was lost"))

    monkeypatch.setattr("api.routes.uploads.transaction", unanswered)
    assert upload(service).status_code == 503
    assert (names(service), files(service)) == (["novels"], [f"{SHA256}.txt"])
    assert upload(service).status_code == 200


def test_an_upload_that_an_api_cannot_wait_for_when_it_stops_leaves_nothing(settings: Settings) -> None:
    folder = settings.data_dir / "datasets"
    with api_process(settings.data_dir) as (pid, url), connected(url) as connection:
        connection.sendall(head("POST", f"{ROOT}?name=x", Host="127.0.0.1", Content_Length="1000000") + TEXT)
        wait_for(lambda: folder.exists() and list(folder.iterdir()), "the part is there")
        os.kill(pid, signal.SIGTERM)
        wait_for(lambda: not list(folder.iterdir()), "the part is put away")


def test_links_are_not_followed(service: Running, submitted: dict[str, Any], tmp_path: Path) -> None:
    upload(service)
    secret = tmp_path / "secret"
    secret.write_text("secret")
    stored = service.data_dir / "datasets" / f"{SHA256}.txt"
    stored.unlink()
    stored.symlink_to(secret)
    assert service.http.get(f"{ROOT}/novels").json()["excerpt"] is None
    folder = service.data_dir / "searches" / submitted["id"]
    folder.mkdir(parents=True)
    (folder / "runner.log").symlink_to(secret)
    assert service.http.get(f"/api/v1/searches/{submitted['id']}/log").text == ""


# -- in use -------------------------------------------------------------------------------------------------------


def test_a_text_in_use_stays(service: Running) -> None:
    upload(service)
    search = service.http.post("/api/v1/searches", json=request_on("novels")).json()
    shown = service.http.get(f"{ROOT}/novels").json()
    assert (shown["n_uses"], shown["in_use_by"]) == (1, [search["id"]])
    assert service.http.get(ROOT).json()["items"][-1]["n_uses"] == 1
    answer = service.http.delete(f"{ROOT}/novels")
    assert (answer.status_code, answer.json()["code"]) == (409, "dataset-in-use")
    assert search["id"] in answer.json()["detail"]
    service.http.post(f"/api/v1/searches/{search['id']}/cancel")
    assert service.http.delete(f"{ROOT}/novels").status_code == 204


def test_a_search_is_pinned_to_the_text_it_was_submitted_with(service: Running) -> None:
    upload(service)
    search = service.http.post("/api/v1/searches", json=request_on("novels")).json()
    assert search["request"]["task"]["dataset_fingerprint"] == SHA256
    answer = service.http.post("/api/v1/searches", json=request_on("novels", dataset_fingerprint="a" * 64))
    assert (answer.status_code, answer.json()["code"]) == (422, "unknown-dataset")
    assert answer.json()["errors"] == [
        {
            "pointer": "/task/dataset_fingerprint",
            "code": "unknown-dataset",
            "detail": f"dataset 'novels' has fingerprint {SHA256[:12]}; the request names aaaaaaaaaaaa",
        }
    ]


def test_a_search_goes_on_after_its_text_was_removed_if_it_has_read_it(service: Running) -> None:
    upload(service)
    search_id = service.http.post("/api/v1/searches", json=request_on("novels")).json()["id"]
    service.http.post(f"/api/v1/searches/{search_id}/cancel")
    service.http.delete(f"{ROOT}/novels")
    resume = f"/api/v1/searches/{search_id}/resume"
    answer = service.http.post(resume)
    assert (answer.status_code, answer.json()["code"]) == (409, "dataset-removed")
    assert answer.json()["detail"] == (
        f"dataset 'novels' was removed before search {search_id} had read it; upload the same text again under this "
        "name, then resume"
    )
    assert service.http.get(f"/api/v1/searches/{search_id}").json()["state"] == "cancelled"
    upload(service, text=TEXT + b"another text")
    assert service.http.post(resume).json()["code"] == "dataset-removed"  # the name alone is not enough
    copy = service.data_dir / "searches" / search_id / "dataset.txt"
    copy.parent.mkdir(parents=True)
    copy.write_bytes(TEXT)
    assert service.http.post(resume).json()["state"] == "queued"
    assert service.http.post(resume).status_code == 200


def test_the_same_text_uploaded_again_lets_a_search_go_on(service: Running) -> None:
    upload(service)
    search_id = service.http.post("/api/v1/searches", json=request_on("novels")).json()["id"]
    service.http.post(f"/api/v1/searches/{search_id}/cancel")
    service.http.delete(f"{ROOT}/novels")
    upload(service)
    assert service.http.post(f"/api/v1/searches/{search_id}/resume").json()["state"] == "queued"


# -- long enough --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "detail"),
    [
        ({}, None),
        ({"method": {"batch_size": 64}}, "batches of 64 windows of 16 tokens need at least 5695"),
        (
            {"ranges": [{"pointer": "/method/batch_size", "low": 4, "high": 64.0}]},
            "batches of 64 windows of 16 tokens need at least 5695",
        ),
        (
            {"space": {**TINY["space"], "max_len": 128}, "task": request_on("novels", train_length=128)["task"]},
            "batches of 8 windows of 128 tokens need at least 5695",
        ),
    ],
    ids=["fits", "large batches", "a range that reaches large batches", "long windows"],
)
def test_a_text_must_be_long_enough_for_the_request(
    service: Running, changes: dict[str, Any], detail: str | None
) -> None:
    upload(service)
    answer = service.http.post("/api/v1/searches", json={**request_on("novels"), **changes})
    if detail is None:
        assert answer.status_code == 201
        return
    text = f"dataset 'novels': the text has {len(TEXT)} bytes; {detail}"
    assert (answer.status_code, answer.json()["code"], answer.json()["detail"]) == (422, "too-short", text)
    assert answer.json()["errors"] == [{"pointer": "/task/dataset", "detail": text, "code": "too-short"}]
    assert service.http.get("/api/v1/searches").json()["items"] == []


def test_a_built_in_text_is_long_enough_or_refused_once_its_length_is_known(service: Running) -> None:
    request = request_on("python-docs")
    with transaction(service.engine) as connection:
        datasets.register(connection, name="python-docs", fingerprint="a" * 64, n_bytes=500)
    answer = service.http.post("/api/v1/searches", json=request)
    assert answer.json()["code"] == "too-short"
    with transaction(service.engine) as connection:
        datasets.register(connection, name="python-docs", fingerprint="b" * 64, n_bytes=500_000)
    found = service.http.post("/api/v1/searches", json=request)
    assert found.status_code == 201
    assert found.json()["request"]["task"]["dataset_fingerprint"] is None  # another Python may read it


def test_the_shortest_text_of_any_use_is_taken(service: Running) -> None:
    assert upload(service, text=b"x" * MIN_BYTES).status_code == 201
    assert service.http.get("/api/v1/catalog").json()["min_dataset_bytes"] == MIN_BYTES
    assert service.http.get("/api/v1/catalog").json()["max_dataset_bytes"] == 4 * 2**30


# -- the log of a search ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tail", "seen"),
    [
        (None, "first line\nzweite Größe\nthird red\n"),
        (10, "third red\n"),
        (12, "third red\n"),
        (9, "hird red\n"),
        (0, ""),
        (1_000_000, "first line\nzweite Größe\nthird red\n"),
    ],
)
def test_the_end_of_a_log_is_whole_lines(
    service: Running, submitted: dict[str, Any], tail: int | None, seen: str
) -> None:
    path = f"/api/v1/searches/{submitted['id']}/log"
    assert service.http.get(path).text == ""
    folder = service.data_dir / "searches" / submitted["id"]
    folder.mkdir(parents=True)
    (folder / "runner.log").write_text("first line\nzweite Größe\nthird red\n")
    answer = service.http.get(path, params={} if tail is None else {"tail": tail})
    assert answer.text == seen
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"


def test_a_log_gives_no_orders_to_a_terminal(service: Running, submitted: dict[str, Any]) -> None:
    folder = service.data_dir / "searches" / submitted["id"]
    folder.mkdir(parents=True)
    (folder / "runner.log").write_bytes(b"\x1b[36m(pid=1)\x1b[0m\t50%\r\x1b]0;title\x07 \xff\n\x00\xc2\x9b31m")
    assert service.http.get(f"/api/v1/searches/{submitted['id']}/log").text == "(pid=1)\t50%]0;title �\n31m"


# -- client -------------------------------------------------------------------------------------------------------


def test_the_client_uploads_files_and_blocks(service: Running, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_bytes(TEXT * 300)
    told: list[tuple[int, int | None]] = []
    with Client(service.url) as client:
        added = client.add_dataset("a", tmp_path / "text.txt", progress=lambda *values: told.append(values))
        assert added["n_bytes"] == 300 * len(TEXT)
        assert told[-1] == (300 * len(TEXT), 300 * len(TEXT))
        assert [sent for sent, _ in told] == sorted({sent for sent, _ in told})
        assert client.add_dataset("b", [TEXT[:11], TEXT[11:]])["fingerprint"] == SHA256
        assert client.dataset("b")["excerpt"] == TEXT.decode()[:1000]
        assert [each["name"] for each in client.datasets() if not each["built_in"]] == ["a", "b"]
        client.remove_dataset("b")
        with pytest.raises(ClientError, match="no dataset 'b'"):
            client.dataset("b")


def test_the_client_reads_why_a_long_text_is_refused(settings: Settings, tmp_path: Path) -> None:
    """The service answers and closes while the client is still sending."""
    with (tmp_path / "long.txt").open("wb") as file:
        file.truncate(2**31)  # takes no disk
    with running(settings.model_copy(update={"max_dataset_bytes": 2**20})) as service, Client(service.url) as client:
        with pytest.raises(ClientError, match="the file has 2147483648 bytes; at most 1048576 are taken") as caught:
            client.add_dataset("long", tmp_path / "long.txt")
        assert (caught.value.status, caught.value.code) == (413, "too-large")


def test_the_client_notices_another_text(tmp_path: Path) -> None:
    transport = httpx.MockTransport(lambda request: httpx.Response(201, json={"fingerprint": "a" * 64, "n_bytes": 1}))
    with Client("http://other", transport=transport) as client, pytest.raises(ClientError, match="sha256 of x differs"):
        client.add_dataset("x", [TEXT])


def test_the_client_reads_a_log(service: Running, submitted: dict[str, Any]) -> None:
    with Client(service.url) as client:
        assert client.log(submitted["id"], tail=5) == ""
