"""Uploads of every format on a real service: what is taken is one canonical file, what is not leaves nothing behind."""

from __future__ import annotations

import gzip
import json
import os
import random
import signal
import stat
import struct
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pyarrow
import pytest
from pyarrow import parquet
from sqlalchemy import update

from api import reading as reading_module
from api.client import Client
from api.settings import Settings
from db import models
from tests.api.raw import connected, head
from tests.api.running import Running, running
from tests.api.test_datasets import ROOT, api_process, files, is_idle, names, wait_for

_draw = random.Random(0)
ROWS = [
    {"text": " ".join(_draw.choice(("good", "bad", "film", "plot")) for _ in range(5)), "label": _draw.choice("np")}
    for _ in range(400)
]
JSONL = "".join(json.dumps(row) + "\n" for row in ROWS).encode()
CSV = ("text,label\n" + "".join(f"{row['text']},{row['label']}\n" for row in ROWS)).encode()
IDS = b"".join(struct.pack("<H", _draw.randrange(300)) for _ in range(5000))


def packed(data: bytes, codec: str) -> bytes:
    buffer = pyarrow.BufferOutputStream()
    with pyarrow.CompressedOutputStream(buffer, codec) as stream:
        stream.write(data)
    found: bytes = buffer.getvalue().to_pybytes()
    return found


def as_parquet() -> bytes:
    buffer = pyarrow.BufferOutputStream()
    parquet.write_table(pyarrow.Table.from_pylist(ROWS), buffer)
    found: bytes = buffer.getvalue().to_pybytes()
    return found


def tokenizer_json() -> bytes:
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel

    return Tokenizer(WordLevel({"<unk>": 0, "a": 1}, unk_token="<unk>")).to_str().encode()


def post(service: Running, data: bytes, name: str = "mine", **options: Any) -> httpx.Response:
    return service.http.post(ROOT, params={"name": name, **options}, content=data)


# -- taken --------------------------------------------------------------------------------------------------------


FORMATS: dict[str, tuple[bytes, dict[str, str]]] = {
    "by its name": (JSONL, {"file": "rows.jsonl"}),
    "by its format": (JSONL, {"format": "jsonl"}),
    "gzip": (gzip.compress(JSONL), {"file": "rows.jsonl.gz"}),
    "gzip by its first bytes": (gzip.compress(JSONL), {"format": "jsonl"}),
    "zstd": (packed(JSONL, "zstd"), {"file": "rows.jsonl.zst"}),
    "csv": (CSV, {"file": "rows.csv"}),
    "tsv": (CSV.replace(b",", b"\t"), {"file": "rows.tsv"}),
    "parquet": (as_parquet(), {}),
}


@pytest.mark.parametrize("case", FORMATS)
def test_the_same_rows_are_the_same_dataset_in_every_format(service: Running, case: str) -> None:
    data, options = FORMATS[case]
    answer = post(service, data, **options)
    assert answer.status_code == 201, answer.text
    added = answer.json()
    assert (added["kind"], added["description"]) == ("documents", "uploaded documents")
    card = added["card"]
    counts = {label: sum(row["label"] == label for row in ROWS) for label in "np"}
    assert (card["n_rows"], card["label_kind"], card["labels"]) == (400, "sequence", counts)
    assert card["majority"] == max(counts.values()) / 400
    assert sum(card["part_rows"].values()) == 400
    assert card["samples"][0] == ROWS[0]
    assert files(service) == [f"{added['fingerprint']}.jsonl"]
    stored = service.data_dir / "datasets" / files(service)[0]
    assert stat.S_IMODE(stored.stat().st_mode) == 0o600
    again = post(service, JSONL, format="jsonl")
    assert (again.status_code, again.json()) == (200, added)
    assert service.http.get(f"{ROOT}/mine").json() == {**added, "excerpt": None, "encodings": [], "in_use_by": []}


def test_token_ids_and_tokenizers_are_kept_as_they_come(service: Running) -> None:
    ids = post(service, IDS, "ids", file="ids.bin", dtype="uint16", vocab_size=300, eos_id=0).json()
    assert (ids["kind"], ids["n_bytes"], ids["card"]["n_rows"]) == ("tokens", 10_000, 5000)
    assert ids["card"]["settings"] == {
        "kind": "tokens", "ends": None, "corpus": None, "dtype": "uint16", "vocab_size": 300, "eos_id": 0,
    }  # fmt: skip
    own = post(service, tokenizer_json(), "own", format="tokenizer").json()
    assert (own["kind"], own["card"]["n_rows"]) == ("tokenizer", 2)
    assert files(service) == sorted([f"{ids['fingerprint']}.bin", f"{own['fingerprint']}.json"])
    for name in ("ids", "own"):
        assert service.http.delete(f"{ROOT}/{name}").status_code == 204
    assert files(service) == []


def test_the_ends_of_given_parts_belong_to_the_content(service: Running) -> None:
    text = b"a line of text\n" * 1000
    first, other = post(service, text, "one", ends="12000,13500").json(), post(service, text, "two").json()
    assert first["card"]["settings"]["ends"] == [12000, 13500]
    assert first["fingerprint"] != other["fingerprint"]
    assert len(files(service)) == 2


def test_an_answer_tells_what_arrived(service: Running, tmp_path: Path) -> None:
    """Not the fingerprint, which is that of the canonical content."""
    (tmp_path / "rows.csv").write_bytes(CSV)
    with Client(service.url) as client:
        added = client.add_dataset("mine", tmp_path / "rows.csv", label="label")
    assert added["card"]["n_rows"] == 400


def test_a_row_from_before_cards_gets_its_card_when_the_file_comes_again(service: Running) -> None:
    added = post(service, JSONL, format="jsonl").json()
    with service.engine.begin() as connection:
        connection.execute(update(models.datasets).values(card=None))
    seen = service.http.get(f"{ROOT}/mine").json()
    assert (seen["kind"], seen["card"]) == ("documents", None)
    assert post(service, JSONL, format="jsonl").json() == added
    assert service.http.get(f"{ROOT}/mine").json()["card"] == added["card"]


def test_two_uploads_of_the_same_content_at_once(service: Running) -> None:
    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(lambda data: post(service, data[0], **data[1]), (FORMATS["csv"], FORMATS["gzip"])))
    assert sorted(answer.status_code for answer in answers) == [200, 201]
    assert len(files(service)) == 1
    assert is_quiet(service)


# -- not taken ----------------------------------------------------------------------------------------------------


def rows_without(number: int, field: str) -> bytes:
    rows = [dict(row) for row in ROWS * 40]
    del rows[number - 1][field]
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


LATIN = b"word " * 100 + b"\xff"
BAD: dict[str, tuple[str, bytes, dict[str, Any], str, str]] = {
    "truncated gzip": ("a.txt.gz", gzip.compress(JSONL)[:-20], {}, "damaged", "a.txt.gz: the gzip stream is truncated"),
    "not UTF-8": ("a.txt", LATIN, {}, "not-utf8", "a.txt: the file is not UTF-8 text: invalid byte at offset 500"),
    "not UTF-8 in gzip": ("a.txt.gz", gzip.compress(LATIN), {}, "not-utf8", "at offset 500"),
    "ragged csv": ("a.csv", CSV + b"a,b,c\n", {}, "bad-row", "a.csv: row 401 (line 402) has 3 cells, the header has 2"),
    "label missing": ("a.jsonl", rows_without(12_345, "label"), {}, "bad-row", "a.jsonl: label missing in row 12,345"),
    "one class": ("a.jsonl", JSONL.replace(b'"p"', b'"n"'), {}, "bad-labels", "all 400 documents have one label, 'n'"),
    "no such field": ("a.csv", CSV, {"text": "body"}, "bad-row", "body"),
    "ids too large": ("a.bin", IDS, {"dtype": "uint16", "vocab_size": 10}, "bad-row", "a.bin:"),
    "no tokenizer": ("tokenizer.json", b'{"model": 1}' * 20, {}, "wrong-format", "the file is no tokenizer"),
    "empty": ("a.jsonl", b"", {}, "too-short", "a.jsonl:"),
    "zip": ("a.zip", b"PK\x03\x04" + bytes(1000), {}, "wrong-format", "a.zip:"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_file_is_told_by_name_and_row_and_leaves_nothing(service: Running, case: str) -> None:
    file, data, options, code, detail = BAD[case]
    answer = post(service, data, file=file, **options)
    assert (answer.status_code, answer.json()["code"]) == (422, code), answer.text
    assert detail in answer.json()["detail"]
    assert "\n" not in answer.json()["detail"]
    assert (names(service), is_quiet(service)) == ([], True)


def test_a_files_name_gives_no_orders_to_a_terminal(service: Running) -> None:
    answer = post(service, LATIN, file="../a\x1b[31m\nb.txt")
    assert answer.json()["detail"].startswith("a?[31m?b.txt: the file is not UTF-8")


def is_quiet(service: Running) -> bool:
    """Nothing on its way; what is kept may be there."""
    return not [name for name in files(service) if name.startswith(".")]


@pytest.mark.parametrize(
    ("options", "detail"),
    [
        ({"file": "a.bin"}, "tokens need a dtype (uint16 or uint32) and a vocab_size; give both"),
        ({"format": "text", "label": "x"}, "label is for rows, the format is text"),
        ({"format": "text", "ends": "900,100"}, "ends are (900, 100); give two growing byte offsets"),
        ({"corpus": "enwik9", "format": "text"}, "unknown corpus 'enwik9'; known: enwik8, text8"),
    ],
    ids=["tokens of unknown type", "labels of a text", "ends that fall", "unknown corpus"],
)
def test_options_that_do_not_go_together_are_refused(service: Running, options: dict[str, str], detail: str) -> None:
    answer = post(service, JSONL, **options)
    assert (answer.status_code, answer.json()["code"]) == (422, "wrong-options")
    assert answer.json()["detail"].startswith(detail)
    assert files(service) == []


@pytest.mark.parametrize("options", [{"format": "xml"}, {"ends": "1;2"}, {"vocab_size": 1}, {"dtype": "int8"}], ids=str)
def test_an_option_that_is_none_is_refused_by_its_name(service: Running, options: dict[str, Any]) -> None:
    answer = post(service, JSONL, **options)
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, f"?{next(iter(options))}")


@pytest.mark.parametrize("codec", ["gzip", "zstd"])
def test_a_bomb_is_refused_while_it_is_unpacked(settings: Settings, codec: str) -> None:
    bomb = packed(b"a line of text\n" * 2_000_000, codec)
    with running(settings.model_copy(update={"max_dataset_bytes": 2**20})) as service:
        assert len(bomb) < 2**20
        answer = post(service, bomb)
        assert (answer.status_code, answer.json()["code"]) == (413, "too-large"), answer.text
        assert "1,048,576" in answer.json()["detail"]
        assert files(service) == []


def test_a_full_disk_under_the_reader_leaves_nothing(settings: Settings) -> None:
    """What is sent has room, what it holds has not."""
    data = gzip.compress(JSONL * 100)
    with (
        api_process(settings.data_dir, 2**20) as (_, url),
        httpx.Client(base_url=url, trust_env=False, timeout=60) as http,
    ):
        answer = http.post(ROOT, params={"name": "mine", "format": "jsonl"}, content=data, timeout=60)
        assert (answer.status_code, answer.json()["code"]) == (507, "storage"), answer.text
        assert list((settings.data_dir / "datasets").iterdir()) == []


def test_a_file_that_takes_too_long_is_given_up(settings: Settings) -> None:
    with running(settings.model_copy(update={"read_timeout_s": 0.01})) as service:
        answer = post(service, JSONL, format="jsonl")
        assert (answer.status_code, answer.json()["code"]) == (422, "too-slow")
        assert answer.json()["detail"] == (
            "the file was not read within 0.01 s, which BLOCKWRIGHT_READ_TIMEOUT_S sets; cut it"
        )
        assert is_idle(service)


def test_a_reader_that_ends_without_an_answer_is_told(service: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading_module, "MAX_DATA_BYTES", 2**20)  # too little for Python to run in
    answer = post(service, JSONL, format="jsonl", file="rows")
    assert (answer.status_code, answer.json()["code"]) == (422, "unreadable")
    assert answer.json()["detail"].startswith("rows: the file cannot be read: its reader ended")
    assert is_idle(service)


# -- broken off, killed -------------------------------------------------------------------------------------------

LONG = JSONL * 2000  # some seconds of reading


@contextmanager
def being_read(url: str, folder: Path) -> Iterator[Any]:
    """An upload that was sent whole, and is read now."""
    with connected(url) as connection:
        target = f"{ROOT}?name=long&format=jsonl"
        connection.sendall(head("POST", target, Host="127.0.0.1", Content_Length=str(len(LONG))) + LONG)
        wait_for(lambda: list(folder.glob(".*.part/.ingest-*")), "it is being read")
        yield connection


def test_a_client_that_goes_away_while_its_file_is_read_ends_the_reading(service: Running) -> None:
    with being_read(service.url, service.data_dir / "datasets"):
        reader = held(os.getpid())
    wait_for(lambda: is_idle(service), "the part and the place are given back")
    assert not Path(f"/proc/{reader}").exists()
    assert names(service) == []


def held(pid: int) -> int:
    """The reader of a process, stopped in the middle of its work, so that it does not end by itself."""
    (reader,) = readers(pid)
    os.kill(reader, signal.SIGSTOP)
    return reader


def readers(pid: int) -> list[int]:
    """Pids of the readers that a process has."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((path / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == pid and b"api.reader" in (path / "cmdline").read_bytes():
                found.append(int(path.name))
        except OSError:
            continue
    return found


def test_a_reader_ends_with_its_api_and_the_next_start_removes_what_it_left(settings: Settings) -> None:
    folder = settings.data_dir / "datasets"
    with api_process(settings.data_dir) as (pid, url), being_read(url, folder):
        reader = held(pid)
        os.kill(pid, signal.SIGKILL)
        os.kill(reader, signal.SIGCONT)  # it ends of itself, and must be able to
        wait_for(lambda: not Path(f"/proc/{reader}").exists(), "the reader ends")
    (part,) = folder.iterdir()
    with running(settings) as service:
        assert files(service) == [part.name]  # young: another api may just be making it
    os.utime(part, (0, 0))
    with running(settings) as service:
        assert files(service) == []
        assert post(service, JSONL, format="jsonl").status_code == 201


def test_an_api_that_stops_ends_its_readers(settings: Settings) -> None:
    folder = settings.data_dir / "datasets"
    with api_process(settings.data_dir) as (pid, url), being_read(url, folder):
        reader = held(pid)
        os.kill(pid, signal.SIGTERM)
        wait_for(lambda: not Path(f"/proc/{reader}").exists(), "the reader ends")
        wait_for(lambda: not list(folder.iterdir()), "the part is put away")
