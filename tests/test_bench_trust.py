"""Shared weights against trainings apart: a tiny set-up is run whole, goes on where it was, and tables say what is."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bench import planted
from bench import trust as bench
from bench.par_plan import COLUMNS as RUN_COLUMNS
from bench.par_plan import Kept, to_line
from bench.par_plan import Row as LargerRow
from bench.par_text import measure
from bench.trust_plan import (
    COLUMNS,
    LARGER,
    METHOD,
    Folders,
    Score,
    Sizes,
    larger_stacks,
    request_of,
    score_line,
    scores_in,
)
from bench.trust_plan import (
    compared as compared_in,
)
from bench.trust_show import Compared, pooled, show
from nas.data.enumerated import LENGTH, STACKS, canonical, load
from tests.test_bench_par_text import TINY

SIZES = Sizes(
    text=TINY,
    method={**METHOD, "n_steps": 6, "checkpoint_every": 4, "eval_windows": 2, "prune_windows": 4},
    n_larger=8,
)


def run(folder: Path, capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    bench.main(["--folder", str(folder / "own"), "--text-folder", str(folder / "text"), *arguments], SIZES)
    found: dict[str, Any] = json.loads(capsys.readouterr().out.splitlines()[-1])
    return found


def test_all_stacks_of_a_task_are_scored_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, capsys, "--parts", "lookup", "--show")["missing"] == ["125 scores of lookup by supernet 0"]
    found = run(tmp_path, capsys, "--parts", "lookup")
    (row,) = found["rows"]
    assert found["missing"] == []
    assert (row["part"], row["seed"]) == ("lookup", 0)
    assert (row["overall"]["n"], row["overall"]["n_pairs"]) == (85, 85 * 84 // 2)
    assert row["top"]["n"] >= 17
    assert row["within_bands"]["n_pairs"] < row["overall"]["n_pairs"]
    assert row["regret"]["loss"] >= 0
    assert row["regret"]["standard_errors"] is None or row["regret"]["standard_errors"] > 0
    assert row["same_network"] > 0
    assert row["by_order"]["n"] == 85
    table = load()
    both = sum((entry := table.entry("lookup", LENGTH, stack)) is not None and entry.n_seeds > 1 for stack in STACKS)
    assert row["ceiling"]["overall"]["n"] == both
    scores = scores_in(tmp_path / "own")
    assert len(scores) == 125
    assert {canonical(each.path) for each in scores} == set(STACKS)
    assert {each.windows for each in scores} == {4}

    # What was cut off is scored again by the supernet that is kept, and gives the same figures.
    path = tmp_path / "own" / "scores.csv"
    written = path.read_text()
    lines = written.splitlines(keepends=True)
    path.write_text("".join(lines[:-2]) + lines[-2][:9])
    assert run(tmp_path, capsys, "--parts", "lookup")["rows"] == found["rows"]
    assert sorted(path.read_text().splitlines()) == sorted(written.splitlines())


def test_the_larger_stacks_are_scored_then_trained_where_no_one_has(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, capsys, "--parts", LARGER, "--show")["missing"] == [f"all of {LARGER}"]
    measure(tmp_path / "text", TINY)
    folders = Folders(tmp_path / "own", tmp_path / "text")
    stacks = larger_stacks(folders, SIZES)
    assert len(set(stacks)) == 8
    kept = Kept(folders.text)
    with (folders.text / "runs.csv").open("w") as file:
        file.write(",".join(RUN_COLUMNS) + "\n" + to_line(LargerRow(kept.run(stacks[0]), 2.0, 3.0, 0.1, "")))
    found = run(tmp_path, capsys, "--parts", LARGER, "--limit", "2")
    assert found["missing"] == [f"6 of 8 trainings of {LARGER}"]
    assert found["rows"][0]["overall"]["reason"] == "1 pairs; at least 6 are needed"
    found = run(tmp_path, capsys, "--parts", LARGER)
    (row,) = found["rows"]
    assert found["missing"] == []
    assert row["overall"]["n"] == 8
    assert (row["ceiling"], row["by_order"], row["same_network"]) == (None, None, None)
    alone = Kept(folders.text).rows
    assert alone[kept.run(stacks[0])].test_bits == 3.0  # not trained again
    assert len(alone) == 8


def test_named_stacks_are_scored_beside_their_trainings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    measure(tmp_path / "text", TINY)
    kept = Kept(tmp_path / "text")
    one, other = larger_stacks(Folders(tmp_path / "own", tmp_path / "text"), SIZES)[:2]
    with (tmp_path / "text" / "runs.csv").open("w") as file:
        file.write(",".join(RUN_COLUMNS) + "\n" + to_line(LargerRow(kept.run(one), 2.0, 3.0, 0.1, "")))
    found = run(tmp_path, capsys, "--stacks", one, other)
    assert found["scores"].keys() == {one, other}
    assert found["alone"] == {one: 2.0}


def test_supernets_of_another_share_of_uniform_paths_stand_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(tmp_path, capsys, "--parts", "lookup")
    fair = ("--parts", "lookup", "--uniform-share", "1")
    assert run(tmp_path, capsys, *fair, "--show")["rows"] == []
    (row,) = run(tmp_path, capsys, *fair)["rows"]
    assert row["overall"]["n"] == 85
    assert len({each.setup for each in scores_in(tmp_path / "own")}) == 2


def test_scores_of_another_set_up_are_left_aside(tmp_path: Path) -> None:
    folders = Folders(tmp_path, tmp_path)
    other = replace(SIZES, method={**SIZES.method, "lr": 1e-3})
    setups = {
        planted.setup_of(request_of("offset", seed, folders, sizes)) for seed in (0, 7) for sizes in (SIZES, other)
    }
    assert len(setups) == 2
    (tmp_path / "scores.csv").write_text(
        ",".join(COLUMNS) + "\n" + score_line(Score("offset", 0, "00000000", "...", 1.0, 4, ""))
    )
    assert compared_in("offset", 0, folders, SIZES) is None


def test_a_supernet_is_that_of_a_search_with_the_defaults() -> None:
    request = request_of("shift-then-match", 3, Folders(Path(), Path()), Sizes())
    reference = planted.request_of("shift-then-match", 3)
    told = {"prune_steps", "report_every", "checkpoint_every", "max_minutes"}
    assert request.method.model_dump(exclude=told) == reference.method.model_dump(exclude=told)
    assert request.method.prune_steps == 0
    assert (request.space, request.task, request.trials) == (reference.space, reference.task, reference.trials)
    assert request_of("python-docs", 0, Folders(Path(), Path()), Sizes()).method.lr_schedule == "cosine"


def compared(**changes: Any) -> Compared:
    stacks = "ABCDEFGHIJ"
    given: dict[str, Any] = {
        "part": "made up",
        "seed": 0,
        "scores": {stack: [number - 0.1, number + 0.1] for number, stack in enumerate(stacks)},
        "losses": {stack: [float(number), number + 0.3] for number, stack in enumerate(stacks)},
        "costs": dict.fromkeys(stacks, 1.0),
        "steps": {stack: [100.0 + number] for number, stack in enumerate(stacks)},
        "repeats": [[1.0, 1.2], [2.0, 2.2], [5.0]],
    }
    return Compared(**{**given, **changes})


def test_a_score_is_the_mean_of_its_places_and_a_loss_of_its_seeds() -> None:
    found = compared()
    assert found.score("B") == pytest.approx(1)
    assert found.loss("B") == pytest.approx(1.15)
    assert found.behind == pytest.approx(-0.15)
    assert found.trust.overall.tau == pytest.approx(1)
    assert found.against_first().overall.n == 10
    assert found.ceiling is not None
    assert found.ceiling.overall.tau == pytest.approx(1)
    assert found.by_order is not None
    assert found.by_order.tau == pytest.approx(1)
    solved = compared(steps={key: [1000.0] for key in "ABCDEFGHI"} | {"J": [50.0]}).by_order
    assert solved is not None
    assert solved.tau == pytest.approx(1 - 2 * 9 / 45)  # the last one is first there
    assert found.same_network == pytest.approx(0.02**0.5 / (10 * 11 / 12) ** 0.5)  # variance of 0 to 9, n - 1 below


def test_orders_of_the_same_blocks_are_compared_among_each_other() -> None:
    stacks = ["AFS", "ASF", "FAS", "FSA", "AAF", "AFA", "FAA"]
    given = {stack: [float(number)] for number, stack in enumerate(stacks)}
    turned = given | {"AAF": [6.0], "FAA": [4.0]}
    found = compared(scores=turned, losses=given, costs=dict.fromkeys(stacks, 1.0), steps=None).same_blocks
    assert (found.n, found.n_pairs) == (7, 6 + 3)
    assert found.tau == pytest.approx((6 - 3) / 9)


def test_regret_is_told_in_errors_of_the_spread_over_seeds() -> None:
    assert pooled([[1.0, 1.2], [2.0, 2.2]]) == pytest.approx(0.02**0.5)
    assert pooled([]) is None
    turned = {stack: [-score for score in scores] for stack, scores in compared().scores.items()}
    regret = compared(scores=turned).trust.regret
    assert regret.loss == pytest.approx(5)
    assert regret.standard_errors == pytest.approx(5 / 0.02**0.5)  # two seeds each: the root of 2 cancels
    assert compared(scores=turned, repeats=[[5.0]]).trust.regret.standard_errors is None


def test_the_table_says_whether_goals_are_met_and_why_a_figure_is_not_there(
    capsys: pytest.CaptureFixture[str],
) -> None:
    turned = {stack: [-score for score in scores] for stack, scores in compared().scores.items()}
    few = {stack: [1.0] for stack in "ABC"}
    rows = [compared(), compared(seed=1, scores=turned), compared(part="few", scores=few, losses=few, steps=None)]
    show(rows, ["this and that"])
    *lines, missing, last = capsys.readouterr().out.splitlines()
    assert missing == "missing: this and that"
    assert sum("another seed alone" in line for line in lines) == 1  # of each part once, where there is another seed
    assert sum("supernet 0, these" in line for line in lines) == 1
    assert any("supernet 0" in line and "1.00 (1.00 to 1.00), met" in line for line in lines)
    assert any("supernet 1" in line and "-1.00 (-1.00 to -1.00), **missed**" in line for line in lines)
    assert "few, supernet 0, overall: 3 pairs; at least 6 are needed" in lines
    told = json.loads(last)
    assert [row["met"]["overall"] for row in told["rows"]] == [True, False, None]
    assert told["goals"] == {"overall": 0.8, "within_bands": 0.5}
