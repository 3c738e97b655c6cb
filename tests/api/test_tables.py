"""Latency tables on their way: measured by a command, brought to a service, listed, shown, and used by a request."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch

from api import cli
from nas.config.request import SearchRequest
from nas.cost import LatencyTable
from tests import tiny
from tests.api.running import Running
from tests.api.standing import TABLE


class Done(NamedTuple):
    status: int
    out: str
    err: str


Run = Callable[..., Done]
SERVE = [
    {"batch": 2, "query_length": 16},
    {"mode": "decode", "batch": 1, "query_length": 15},
]  # fmt: skip


ENTRY: dict[str, Any] = {"block": "ffn", "options": {}, "median_ms": 1, "iqr_ms": 0, "n_runs": 1}


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    """The command line in this process, with the data folder of the test."""
    monkeypatch.setenv("BLOCKWRIGHT_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "200")

    def command(*arguments: str) -> Done:
        monkeypatch.setattr(sys, "argv", ["blockwright", *arguments])
        capfd.readouterr()
        try:
            cli.main()
            status = 0
        except SystemExit as end:
            status = int(end.code or 0)
        return Done(status, *capfd.readouterr())

    return command


@pytest.fixture
def request_file(tmp_path: Path) -> Path:
    request = tiny.request(
        space={"candidates": ["attention", "ffn", "identity"]}, task={"train_length": 16, "serve": SERVE}
    )
    file = tmp_path / "request.json"
    file.write_text(request.model_dump_json())
    return file


def test_a_table_is_measured_carried_to_a_service_and_named_in_a_request(
    run: Run, service: Running, request_file: Path, tmp_path: Path
) -> None:
    found = run("measure", str(request_file), "--mode", "decode", "-o", str(tmp_path / "table.json"))
    assert found.status == 0, found.err
    table = LatencyTable.model_validate_json((tmp_path / "table.json").read_text())
    assert (table.serve.mode, table.serve.query_length) == ("decode", 15)
    assert found.out.startswith(f"{tmp_path / 'table.json'}: decode 1 x 1 behind 15, error ")
    assert found.out.endswith(f"id {table.id}\n")

    here = ("--url", str(service.http.base_url))
    added = run("tables", "add", str(tmp_path / "table.json"), *here)
    assert added.out == f"{table.id}: decode 1 x 1 behind 15, 3 entries\n"
    assert run("tables", "add", str(tmp_path / "table.json"), *here) == added, "the same table twice is one"
    listed = run("tables", *here)
    assert f"{table.id}  decode 1 x 1 behind 15" in listed.out
    assert run("tables", "list", *here) == listed
    (row,) = json.loads(run("tables", "--json", *here).out)
    assert row["serve"]["mode"] == "decode"
    assert row["error_median"] == table.error_median
    shown = run("tables", "show", table.id, *here)
    assert "serves decode 1 x 1 behind 15\n" in shown.out
    assert f"error on 10 networks: median {table.error_median:.1%}" in shown.out
    assert all(block in shown.out for block in ("attention", "ffn", "identity"))
    assert LatencyTable.model_validate_json(run("tables", "show", table.id, "--json", *here).out) == table

    body = json.loads(request_file.read_text())
    body["task"]["serve"] = SERVE[1:]
    assert service.http.post("/api/v1/searches", json={**body, "latency_table": table.id}).status_code == 201

    wider = {**body, "space": {**body["space"], "d_model": 32}}
    for other, said in (
        (
            json.loads(request_file.read_text()),
            "holds for decode of 1 x 15 tokens; the request serves prefill of 2 x 16",
        ),
        (wider, "the latency table has no entry for candidate 'attention' at this shape"),
    ):
        for url in ("/api/v1/searches", "/api/v1/searches:estimate"):
            refused = service.http.post(url, json={**other, "latency_table": table.id})
            assert (refused.status_code, refused.json()["code"]) == (422, "invalid-input")
            assert said in refused.json()["detail"]


def test_without_a_file_to_write_the_table_is_printed_and_of_the_first_mode(run: Run, request_file: Path) -> None:
    found = run("measure", str(request_file))
    request = SearchRequest.model_validate_json(request_file.read_text())
    table = LatencyTable.model_validate_json(found.out)
    assert table.serve == request.task.serve[0]
    assert len(table.slot_ms(request.space)) == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("measure",), "give a FILE with the request, or --preset NAME; `blockwright presets` lists the names"),
        (
            ("measure", "FILE", "--mode", "training"),
            "the request serves prefill, decode and has no mode 'training'; name it in task.serve",
        ),
        (("measure", "FILE", "-o", "nowhere/table.json"), "no folder 'nowhere' to write table.json in"),
        (("measure", "FILE", "-o", "."), ". cannot be written; give a file of yours"),
        (("tables", "show", "FILE"), " is no id of a latency table; `blockwright tables` lists them"),
        (("tables", "add", "FILE"), "/device: field required (and 18 more)"),
    ],
    ids=["no request", "another mode", "no folder", "a folder", "no id", "no table"],
)
def test_what_cannot_be_measured_or_brought_is_one_line(
    run: Run, request_file: Path, arguments: tuple[str, ...], message: str
) -> None:
    found = run(*(str(request_file) if each == "FILE" else each for each in arguments))
    assert (found.status, found.out) == (2, "")
    assert message.lower() in found.err.lower()
    assert found.err.count("\n") == 1


def test_more_threads_than_the_machine_has_are_not_measured(run: Run, request_file: Path) -> None:
    body = json.loads(request_file.read_text())
    request_file.write_text(json.dumps({**body, "resources": {"cpus": 1000}}))
    found = run("measure", str(request_file))
    assert (found.status, found.out) == (2, "")
    assert re.fullmatch(r"blockwright: resources.cpus is 1000 and this machine has \d+ CPUs; .+\n", found.err)


@pytest.mark.skipif(torch.cuda.is_available(), reason="here is a GPU to measure on")
@pytest.mark.parametrize("asked", ["by option", "by the request"])
def test_a_gpu_that_is_not_there_is_not_measured(run: Run, request_file: Path, asked: str) -> None:
    option = ["--device", "cuda"] if asked == "by option" else []
    if not option:
        body = json.loads(request_file.read_text())
        request_file.write_text(json.dumps({**body, "resources": {"cpus": 1, "gpus": 1}}))
    found = run("measure", str(request_file), *option)
    assert (found.status, found.out) == (2, "")
    assert found.err == "blockwright: torch finds no GPU on this machine; --device cpu measures on its processors\n"


def test_memory_that_runs_out_while_measuring_is_one_line(
    run: Run, request_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def out_of_memory(*_: Any, **__: Any) -> Any:
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 17179869184 bytes.")

    monkeypatch.setattr("nas.measure.measure_table", out_of_memory)
    found = run("measure", str(request_file))
    assert (found.status, found.out) == (1, "")
    assert found.err.startswith("blockwright: memory ran out; ")
    assert "batch and query_length of task.serve" in found.err
    assert found.err.count("\n") == 1


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"format_version": 2}, "/format_version"),
        ({"device": {"processor": "a\x1b[2J"}}, "/device/processor"),
        ({"device": {"processor": "a" * 201}}, "/device/processor"),
        ({"device": {str(n): "a" for n in range(33)}}, "/device"),
        ({"offset_ms": -1}, "/offset_ms"),
        ({"offset_ms": 1e10}, "/offset_ms"),
        ({"error_median": 1e7}, "/error_median"),
        ({"error_p95": 1e308}, "/error_p95"),
        ({"serve": {"mode": "sleep"}}, "/serve/mode"),
        ({"entries": {"a\x1b[2J": ENTRY}}, "/entries/a\x1b[2J/[key]"),
        ({"entries": {"a": {**ENTRY, "block": "a\nb"}}}, "/entries/a/block"),
        ({"entries": {"a": {**ENTRY, "options": {"a\x9b": 1}}}}, "/entries/a/options"),
        ({"entries": {"a": {**ENTRY, "options": {"a": [{"b": "\x1b]0;title"}]}}}}, "/entries/a/options"),
        ({"entries": {str(n): ENTRY for n in range(257)}}, "/entries"),
    ],
    ids=[
        "version", "control characters", "long text", "many texts", "negative", "endless", "endless error",
        "endless p95", "mode", "control characters in a key", "in a block", "in an option's name", "in an option",
        "many entries",
    ],
)  # fmt: skip
def test_a_table_that_could_do_harm_is_refused(service: Running, change: dict[str, Any], pointer: str) -> None:
    answer = service.http.post("/api/v1/latency-tables", json={**TABLE, **change})
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, pointer)
    assert service.http.get("/api/v1/latency-tables").json()["items"] == []
