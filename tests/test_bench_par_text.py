"""The comparison on text: a tiny set-up is run whole, and what is kept decides what is done next."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from bench import par_show, par_text
from bench.kept import locked
from bench.par_plan import COLUMNS, Kept, Run, Setup, interleaved, par, sandwich
from bench.par_show import Difference, paired
from nas.errors import InvalidInput

TINY = Setup(
    dataset="python-docs", n_slots=6, d_model=8, length=16, batch=2, steps=3, lrs=(1e-3, 2e-3), search_steps=10,
    prune_steps=1, n_searches=1, n_seeds=2, n_long_seeds=2, sandwich=(1, 2), n_equal=2, eval_windows=8, test_windows=8,
    ratio_tolerance=0.5,
)  # fmt: skip


def shown(folder: Path, capsys: pytest.CaptureFixture[str], *arguments: str, setup: Setup = TINY) -> dict[str, Any]:
    par_text.main(["--folder", str(folder), *arguments], setup)
    found: dict[str, Any] = json.loads(capsys.readouterr().out.splitlines()[-1])
    return found


def test_layouts_are_those_of_their_papers() -> None:
    assert interleaved(6) == "AFAFAF"
    assert sandwich(12, 2) == "AA" + "AFAFAFAF" + "FF"
    assert par(12, 5) == "AFFFFFFAFFFF"
    assert par(12, Fraction(3)) == "AFAFAFFAFFFF"
    with pytest.raises(InvalidInput, match="there is room for 8"):
        par(12, 1)


def test_a_search_is_kept_and_its_reason_where_it_has_no_stack(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = shown(tmp_path, capsys, "--limit", "1")
    (search,) = found["searches"]
    assert (not search["stacks"]) == (search["reason"] is not None)
    assert search["seconds"] > 0
    assert found["trainings"] == 0
    assert found["missing"]


def test_all_of_a_tiny_comparison(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    par_text.write_setup(tmp_path, TINY)
    search = {"seed": 0, "stacks": ["AFF.S."], "undecided": [], "reason": None, "seconds": 0.5}
    Kept(tmp_path).search_path(0).write_text(json.dumps(search))
    found = shown(tmp_path, capsys)
    rows = {row["name"]: row for row in found["contenders"]}
    # With one attention block in six, the found ratio has the layout of PAR's own.
    assert list(rows) == ["derived", "interleaved", "par 5", "par found", "sandwich", "random"]
    assert rows["derived"]["stack"] == "AFF.S."
    assert {row["seeds"] for row in rows.values()} == {2}
    assert all(row["n"] == 2 and len(row["latency_ratio"]) == 3 for name, row in rows.items() if name != "derived")
    assert found["equal_latency"]["of"] == 3
    assert found["random_search"]["whole"]
    assert found["random_search"]["seconds"] >= found["random_search"]["of_seconds"]
    assert found["long"]["more"]["n"] == 2
    assert found["missing"] == []
    kept = Kept(tmp_path)
    assert kept.derived is not None
    assert {run.steps for run in kept.rows} == {3, 9}
    written = (tmp_path / "runs.csv").read_text()
    assert shown(tmp_path, capsys) == found
    assert (tmp_path / "runs.csv").read_text() == written

    # A line that was cut off is trained again, and gives the same figures.
    lines = written.splitlines(keepends=True)
    (tmp_path / "runs.csv").write_text("".join(lines[:-1]) + lines[-1][:7])
    again = {run: row.test_bits for run, row in kept.rows.items()}
    shown(tmp_path, capsys)
    assert {run: row.test_bits for run, row in Kept(tmp_path).rows.items()} == again


def test_another_set_up_is_refused(tmp_path: Path) -> None:
    par_text.write_setup(tmp_path, TINY)
    with pytest.raises(SystemExit, match="holds rows of another set-up; choose another folder"):
        par_text.write_setup(tmp_path, replace(TINY, steps=4))


def test_two_at_once_are_refused(tmp_path: Path) -> None:
    held = locked(tmp_path / "runs.csv", COLUMNS)
    with held, pytest.raises(SystemExit, match="filled by another process"):
        par_text.fill(tmp_path, TINY, 1, None)


def test_training_that_diverges_is_the_worst_of_its_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nas.retrain.learning_rate", lambda *_: math.nan)
    row = par_text.train(TINY, Run("AF....", "rotary", 1e-3, 0, 3))
    assert row.val_nats == row.test_bits == math.inf


def test_the_estimate_is_of_a_measured_training() -> None:
    found = par_text.estimate(TINY)
    assert found["trainings"] == Kept.count(TINY)
    assert found["hours"] > 0


@pytest.mark.parametrize(
    ("difference", "verdict"),
    [
        (Difference(-0.05, -0.06, -0.04, 0.01, 6), "better"),
        (Difference(-0.015, -0.016, -0.014, 0.001, 6), "level"),
        (Difference(0.05, 0.04, 0.06, 0.01, 6), "worse"),
        (Difference(-0.03, -0.07, 0.01, 0.05, 6), "cannot tell"),
        (Difference(-0.03, -0.05, -0.01, 0.04, 6), "cannot tell"),
    ],
    ids=["better", "level", "worse", "wide", "below what can be seen"],
)
def test_a_verdict_needs_the_interval_and_the_margin(difference: Difference, verdict: str) -> None:
    assert difference.verdict == verdict


@pytest.mark.parametrize(
    ("verdict", "ratio", "told"),
    [
        ("better", (1.09, 1.08, 1.11), "better, but slower"),
        ("better", (1.01, 0.98, 1.04), "better"),
        ("worse", (0.9, 0.88, 0.92), "worse, but faster"),
        ("worse", (1.03, 1.02, 1.04), "worse"),
        ("cannot tell", (1.2, 1.1, 1.3), "cannot tell"),
    ],
)
def test_a_better_stack_that_is_slower_is_said_to_be(verdict: str, ratio: tuple[float, ...], told: str) -> None:
    assert par_show.at_its_latency(verdict, ratio) == told


def test_a_difference_whose_interval_holds_none_has_no_sign() -> None:
    intervals = ((-0.2, -0.1), (0.1, 0.2), (-0.1, 0.2))
    assert [Difference(0.05, low, high, 0.1, 3).sign for low, high in intervals] == [-1, 1, 0]


def test_paired_differences_by_hand() -> None:
    assert paired([1.0], [2.0]) is None
    found = paired([1.0, 2.0, 3.0], [1.1, 2.3, 3.2])
    assert found is not None
    error = 0.1 / math.sqrt(3)
    assert found.mean == pytest.approx(-0.2)
    assert found.low == pytest.approx(-0.2 - 4.302653 * error)  # t of 2 degrees of freedom at 97.5%
    assert found.detectable == pytest.approx((4.302653 + 1.060660) * error)  # and at 80%
    assert found.margin == pytest.approx(found.detectable)
