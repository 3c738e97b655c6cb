"""The reports that a search leaves: written before its result, of the same bytes as whoever asks later gets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from db.engine import reading
from db.left import Left
from nas.data.corpora import text_file
from nas.ingest.card import Dataset
from nas.report.markdown import markdown
from nas.report.page import html
from nas.report.rows import report_data as of_rows
from tests import tiny
from tests.api.test_show import RESULT
from tests.parsed_html import Parsed
from tests.workers.test_recorder import Claimed, claimed, url
from workers.folder import FolderStore
from workers.inline import run_local
from workers.left_in_folder import report_data
from workers.stages.report import report
from workers.trainable import file_sha256

__all__ = ["claimed", "url"]  # fixtures
Events = list[tuple[str, dict[str, Any]]]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any], Events]:
    """A small search of two seeds with a parsimony pass, and a serve length that is new to it."""
    request = tiny.request(
        task={"dataset": "letters", "train_length": 16, "serve_lengths": [8, 16],
              "serve": [{"batch": 2, "query_length": 16}, {"mode": "decode", "batch": 1, "query_length": 8}]},
        method={"n_steps": 80, "lr": 8e-3, "warmup_share": 0.2, "alpha_share": 0.5, "alpha_lr": 0.15, "prune_steps": 4},
        trials={"n_seeds": 2},
        retrain={"n_seeds": 2},
    )  # fmt: skip
    folder = tmp_path_factory.mktemp("searches") / "one"
    files: dict[str, Dataset] = {"letters": text_file(tiny.text(), tmp_path_factory.mktemp("data"))}
    events: Events = []
    result = run_local(
        request, folder, files, lambda kind, data: events.append((kind, data)), tiny.table(request.space)
    )
    return folder, result, events


def test_both_reports_are_kept_for_download_before_the_result(finished: tuple[Path, dict[str, Any], Events]) -> None:
    folder, _, events = finished
    kept = [data for kind, data in events if kind == "artifact"]
    assert [each["kind"] for each in kept] == ["export", "report", "markdown", "result"]
    for each in kept[1:3]:
        assert file_sha256(folder / each["name"]) == each["sha256"]


def test_a_report_made_later_of_the_folder_has_the_same_bytes(finished: tuple[Path, dict[str, Any], Events]) -> None:
    folder, _, _ = finished
    assert html(report_data(folder)) == (folder / "report.html").read_text()
    assert markdown(report_data(folder)) == (folder / "report.md").read_text()


def test_architectures_have_the_ids_that_the_result_names(finished: tuple[Path, dict[str, Any], Events]) -> None:
    folder, result, _ = finished
    named = {each["architecture"] for each in result["retrained"]}
    assert "parent" in named
    assert named <= {each.id for each in report_data(folder).architectures}


def test_the_report_of_a_real_search_tells_its_figures(finished: tuple[Path, dict[str, Any], Events]) -> None:
    folder, result, _ = finished
    text = (folder / "report.html").read_text()
    page = Parsed(text)
    quality = result["quality"]
    (row,) = page.table("the first minus the second").rows[1:]
    assert float(row[1]) == pytest.approx(quality["derived_bits_per_byte"], abs=0.51e-4)
    assert float(row[2]) == pytest.approx(quality["parent_bits_per_byte"], abs=0.51e-4)
    assert float(row[3]) == pytest.approx(quality["difference"], abs=0.51e-4)
    assert (row[5], row[7]) == (quality["verdict"], "2")
    for each in result["probabilities"]:
        rows = page.table(f"seed {each['seed']}, probability").rows[1:]
        shown = [[float(cell.split()[0]) for cell in cells[1:6]] for cells in rows]
        assert shown == [[pytest.approx(value, abs=0.51e-3) for value in row] for row in each["probabilities"]]
    lengths = page.table("in windows of each length").rows[1:]
    assert [row[0] for row in lengths] == ["8", "16"]
    places = {row[3] for row in page.table("every id in this report").rows[1:]}
    for place in places - {"table.json, tables/"}:
        assert (folder / place).exists(), place
    assert result["search"]["software"]["torch"] in text
    assert f"<td>{result['search']['latency_table'][:8]}</td>" in text


def test_a_warning_is_kept_once(tmp_path: Path) -> None:
    for _ in range(2):  # a restart says it again
        store = FolderStore(tmp_path, {}, lambda kind, data: None)
        store.warn("seed 0: it has not learnt")
    (tmp_path / "request.json").write_text('{"name": "x"}')
    assert report_data(tmp_path).warnings == ("seed 0: it has not learnt",)


def test_what_the_service_answers_later_has_the_bytes_of_the_file(claimed: Claimed) -> None:
    claimed.report(0)
    claimed.report(10, saved=True, last=True)
    result = json.loads(json.dumps(RESULT))
    for _ in range(2):  # cut off before the result was kept, it is written again
        report(result, claimed.recorder)
    path = claimed.recorder.folder / "result.json"
    path.write_text(json.dumps(result))
    claimed.recorder.result(result, path, file_sha256(path))
    with reading(claimed.service.engine) as connection:
        data = of_rows(Left(connection, claimed.claim.lease.search_id))
    assert html(data) == (claimed.recorder.folder / "report.html").read_text()
    assert markdown(data) == (claimed.recorder.folder / "report.md").read_text()
    assert claimed.kinds().count("artifact") == 3
    (trial,) = data.trials
    assert [(each.step, each.train_loss, each.probabilities) for each in trial.steps] == [
        (0, 1.0, ((0.25, 0.75),)),
        (10, 1.0, ((0.25, 0.75),)),
    ]
