"""Reports over REST, by the client and on the command line: of searches under way, ended, or of older versions."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from api.client import Client, ClientError
from api.routes.report import accepted
from db import architectures, events, latency_tables, rules, searches
from db.engine import transaction
from tests.api.running import Claimed, Running
from tests.api.standing import TABLE
from tests.api.test_cli import Run, run, served
from tests.api.test_older_searches import stored
from tests.api.test_show import RESULT
from tests.parsed_html import Parsed

__all__ = ["run", "served"]  # fixtures
DATABASES = ("sqlite", "postgresql")
ROOT = "/api/v1/searches"
UNKNOWN = "0190a000-0000-7000-8000-000000000000"


def get(service: Running, search_id: str, **more: Any) -> Any:
    return service.http.get(f"{ROOT}/{search_id}/report", **more)


def test_a_search_under_way_is_reported_as_far_as_it_came(service: Running, claimed: Claimed) -> None:
    claimed.report([0, 10, 20])
    with transaction(service.engine) as connection:
        events.append(connection, claimed.lease, [("warning", {"message": "alpha does not move"})])
        table = latency_tables.put(connection, claimed.lease, table_id="a" * 32, key="k", body=TABLE)
        request = searches.get(connection, claimed.id).request
        searches.set_inputs(connection, claimed.lease, request=request, latency_table_id=table.id, slot_ms=[])
        kept = architectures.put(
            connection, claimed.lease, role="budget", string="AF", hash="h", trial_id=claimed.trial, predicted_ms=1.5,
            body={"slots": ["attention", "ffn"], "undecided": [1]},
        )  # fmt: skip
        rules.put(connection, claimed.lease, statement="s", verdict="suggested", body={})
    text = get(service, claimed.id, params={"format": "html"}).text
    page = Parsed(text)
    assert "This report is partial: the search is running" in "".join(page.words)
    assert "alpha does not move" in text
    origins = {row[2]: row[3] for row in page.table("every id in this report").rows[1:]}
    assert origins == {
        claimed.id: f"GET {ROOT}/{claimed.id}/report",
        claimed.trial: f"GET {ROOT}/{claimed.id}/reports?trial={claimed.trial}",
        kept.id: f"GET /api/v1/architectures/{kept.id}",
        "a" * 32: f"GET /api/v1/latency-tables/{'a' * 32}",
    }
    rows = page.table("seed 0, probability").rows[1:]
    assert [row[1:4] for row in rows] == [
        ["0.750 (z -4.5)", "0.125 (z +0.5)", "0.125 (z +2.0)"],
        ["0.250 (z +0.0)", "0.375 (z +0.0)", "0.375 (z +0.0)"],
    ]
    assert [row[-1] for row in rows] == ["", "undecided"]
    over_time = page.table("seed 0, most probable candidate, its probability and z").rows[1:]
    assert over_time[0][1:] == ["A 0.75 (z -4.5)"] * 3
    assert "75" in page.words
    assert "-4.5" in page.words  # in the picture, below its number
    for place in origins.values():
        if not place.endswith("/report"):
            assert service.http.get(place.removeprefix("GET ")).status_code == 200, place


def test_an_older_search_is_reported_of_its_rows(service: Running) -> None:
    search_id = stored(service, RESULT)
    text = get(service, search_id, params={"format": "markdown"}).text
    assert "| derived against interleaved | 1.8750 | 1.9000 | -0.0250 | -0.0500 to +0.0100 | **cannot tell** |" in text
    assert json.loads(text.partition("```json\n")[2].partition("\n```")[0])["method"]["n_steps"] == 20


@pytest.mark.parametrize(
    ("header", "chosen"),
    [
        ("", "json"),
        ("*/*", "json"),
        ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", "html"),
        ("text/markdown", "markdown"),
        ("text/*", "html"),
        ("application/json, text/html;q=0.9", "json"),
        ("text/html;q=0.1, text/markdown;q=0.2", "markdown"),
        ("image/png", "json"),
        ("text/html;q=x", "json"),
        ("text/html;level=1;q=0.5", "html"),
    ],
)
def test_accept_chooses_by_its_weights(header: str, chosen: str) -> None:
    assert accepted(header) == chosen


def test_one_address_answers_in_three_formats(service: Running) -> None:
    search_id = stored(service, RESULT)
    for header, media_type in (
        ("*/*", "application/json"),
        ("text/html", "text/html"),
        ("text/markdown", "text/markdown"),
    ):
        answer = get(service, search_id, headers={"Accept": header})
        assert answer.headers["content-type"].partition(";")[0] == media_type
        assert answer.headers["vary"] == "Accept"
    assert get(service, search_id).json() == RESULT
    answer = get(service, search_id, params={"format": "json"}, headers={"Accept": "text/html"})
    assert answer.json() == RESULT
    wrong = get(service, search_id, params={"format": "pdf"})
    assert (wrong.status_code, wrong.json()["errors"][0]["pointer"]) == (422, "?format")


def test_the_page_may_do_nothing_and_is_shown_in_place(service: Running) -> None:
    search_id = stored(service, RESULT)
    answer = get(service, search_id, params={"format": "html"})
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert policy.endswith("; frame-ancestors 'none'; sandbox")
    assert "unsafe" not in policy
    assert answer.headers["content-disposition"] == f'inline; filename="report-{search_id}.html"'
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_an_etag_is_of_the_bytes(service: Running) -> None:
    search_id = stored(service, RESULT)
    first = get(service, search_id, params={"format": "html"})
    assert first.headers["etag"] == f'"{hashlib.sha256(first.content).hexdigest()[:32]}"'
    again = get(service, search_id, params={"format": "html"}, headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    other = get(service, search_id, params={"format": "markdown"}, headers={"If-None-Match": first.headers["etag"]})
    assert other.status_code == 200


def test_nothing_is_reported_of_a_search_that_there_is_not(service: Running) -> None:
    for format_ in ("json", "html", "markdown"):
        answer = get(service, UNKNOWN, params={"format": format_})
        assert (answer.status_code, answer.json()["code"]) == (404, "not-found")


def test_the_client_takes_both(service: Running) -> None:
    search_id = stored(service, RESULT)
    with Client(service.url) as client:
        assert client.report(search_id).startswith("<!doctype html>")
        assert client.report(search_id, format="markdown").startswith("# Search old")
        with pytest.raises(ClientError, match="no search"):
            client.report(UNKNOWN)


def test_the_command_prints_markdown_and_writes_by_the_name_of_the_file(
    service: Running, served: Run, tmp_path: Path
) -> None:
    search_id = stored(service, RESULT)
    assert served("report").out.startswith("# Search old\n")
    assert served("report", search_id, "--format", "html").out.startswith("<!doctype html>")
    page, text = tmp_path / "a.html", tmp_path / "a.txt"
    assert served("report", search_id, "--output", str(page)).out == f"{page}\n"
    assert page.read_text().startswith("<!doctype html>")
    served("report", search_id, "--output", str(text))
    assert text.read_text().startswith("# Search old\n")


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["report", ".", "--format", "pdf"], "format is 'pdf'; it must be html or markdown"),
        (["report", "a.json"], "'a.json' is no id of a search; `blockwright list` shows them"),
        (["report", "{tmp}"], "{tmp} holds no search; the folder of one has a request.json"),
        (["report", UNKNOWN, "--output", "{tmp}"], None),
    ],
    ids=["format", "no id", "no search", "no file"],
)
def test_the_command_says_what_is_wrong(served: Run, tmp_path: Path, arguments: list[str], line: str | None) -> None:
    done = served(*(each.format(tmp=tmp_path) for each in arguments))
    assert done.status == 2
    if line is not None:
        assert done.err == f"blockwright: {line.format(tmp=tmp_path)}\n"


def test_a_file_that_cannot_be_written_is_refused(service: Running, served: Run, tmp_path: Path) -> None:
    search_id = stored(service, RESULT)
    done = served("report", search_id, "--output", str(tmp_path))
    assert (done.status, done.err) == (2, f"blockwright: cannot write {tmp_path}: is a directory\n")


def test_a_folder_is_reported_without_torch(tmp_path: Path) -> None:
    folder = tmp_path / "local"
    (folder / "trials" / "search-0-0").mkdir(parents=True)
    (folder / "request.json").write_text(json.dumps({"name": "mine", "space": {"n_slots": 2}}))
    record = {"step": 4, "train_loss": 2.5, "probabilities": [[0.5, 0.5], [0.75, 0.25]], "warning": "one\ntwo"}
    lines = [json.dumps({"device": "x", "record": record}), '{"device": "x", "rec']
    (folder / "trials" / "search-0-0" / "reports.jsonl").write_text("\n".join(lines))
    code = (
        "import sys; sys.argv = ['blockwright', 'report', sys.argv[1]]\n"
        "from api.cli import app\ntry: app()\nexcept SystemExit: pass\nassert 'torch' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code, str(folder)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "**This report is partial: the search is unfinished**" in done.stdout
    assert "- search 0, seed 0: one\n- search 0, seed 0: two" in done.stdout


def test_a_broken_file_of_a_folder_is_named(run: Run, tmp_path: Path) -> None:
    (tmp_path / "request.json").write_text("{")
    done = run("report", str(tmp_path))
    assert done.status == 2
    assert done.err.startswith(f"blockwright: {tmp_path}/request.json cannot be read: ")
