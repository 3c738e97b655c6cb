"""The planted bench tells right stacks from wrong ones, and engines that are broken from the real one."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch

from bench import planted
from bench.broken import ENGINES, SOUND
from nas.config.request import SearchRequest
from nas.data.enumerated import PLANTED
from nas.steps import StepRecord

# Every phase of a search in a second; too short to find anything.
SHORT: dict[str, Any] = {
    **planted.METHOD,
    **{"n_steps": 60, "batch_size": 2, "report_every": 5, "eval_windows": 4, "prune_steps": 1, "prune_windows": 4},
    **{"alpha_lr": 0.1, "settle_share": 0.2},
}


@pytest.fixture(scope="module")
def trainings(tmp_path_factory: pytest.TempPathFactory) -> planted.Trainings:
    return planted.Trainings(tmp_path_factory.mktemp("trainings"))


# Each of these stacks, and what is left of it without one mixer, stands in the enumerated table with seed 0.
@pytest.mark.parametrize(
    ("part", "stack", "wrong"),
    [
        ("token-wise", "...", []),
        ("token-wise", "F..", []),
        ("token-wise", "A..", [". does as well", "mixers A are left"]),
        ("offset", "..S", []),
        ("offset", ".F.", ["F does not reach 0.99"]),
        ("offset", "S.S", ["S does as well", "costs 2.55 ms, 1.28 would do"]),
        ("lookup", ".A.", []),
        ("lookup", "M..", ["M does not reach 0.99"]),
        ("lookup", "MA.", ["A does as well", "costs 2.33 ms, 0.75 would do"]),
        ("shift-then-match", "SA.", []),
        ("shift-then-match", "A.A", []),
        ("shift-then-match", "A.M", []),
        ("shift-then-match", "AS.", ["AS does not reach 0.99", "no mixer before a content mixer"]),
        ("shift-then-match", ".A.", ["A does not reach 0.99", "no mixer before a content mixer"]),
        ("shift-then-match", "AAA", ["AA does as well", "costs 2.72 ms"]),
    ],
    ids=lambda value: value if isinstance(value, str) else "wrong" if value else "right",
)
def test_a_stack_is_judged_by_the_enumerated_table(
    trainings: planted.Trainings, part: str, stack: str, wrong: list[str]
) -> None:
    found = planted.wrong_stack(part, stack, 0, trainings)
    assert len(found) == len(wrong)
    assert all(told.startswith(start) for told, start in zip(found, wrong, strict=True)), found
    assert not trainings.made  # the table has them all


def test_a_part_whose_slots_differ_is_held_against_what_they_may_hold(trainings: planted.Trainings) -> None:
    held = planted.held_by("layout")
    # S or F, then A, M or F, then F; each may be left out, and none may change places.
    assert {".", "A", "M", "SA", "FM", "AF", "SMF", "FFF"} <= held
    assert not {"AA", "AS", "AM", "SS", "FS", "SFA", "SAA"} & held
    assert planted.held_by("lookup") == set(planted.STACKS)
    task = "shift-then-match"
    assert trainings.cheapest(task) == pytest.approx(planted.cost_of(task, "AA"))
    assert trainings.cheapest("layout") == pytest.approx(planted.cost_of(task, "SA"))
    # Within an FFN of the cheapest that these slots can hold, though not of the cheapest of all.
    assert planted.wrong_stack("layout", "SAF", 0, trainings) == []
    assert planted.wrong_stack(task, "SAF", 0, trainings) == ["costs 2.87 ms, 1.81 would do"]


@pytest.mark.parametrize("engine", ["always-AAA", "always-SSS"])
def test_an_engine_with_one_answer_fails_all_planted_tasks(engine: str, tmp_path: Path) -> None:
    results = [planted.judged(engine, task, 0, tmp_path)[0] for task in PLANTED]
    assert not any(each.passed for each in results)
    assert all(each.wrong for each in results)


def run(engine: str, part: str, method: dict[str, Any] = SHORT) -> tuple[SearchRequest, list[StepRecord], str]:
    request = planted.request_of(part, 0, method)
    _, _, records, reason = planted.searched(engine, part, request)
    return request, records, reason


def test_a_sound_engines_records_are_as_asked() -> None:
    request, records, _ = run(SOUND, "offset")
    assert planted.wrong_records(request, records) == []
    assert [each.phase for each in records if each.last] == ["prune"]


@pytest.mark.parametrize(
    ("engine", "told"),
    [
        ("constant-tau", "tau goes from 5 to 5, not 5 to 0.2"),
        ("no-warm-up", "warm-up is not fair, or alpha not frozen"),
    ],
)
def test_a_broken_schedule_is_seen_in_the_records(engine: str, told: str) -> None:
    request, records, _ = run(engine, "token-wise")
    assert planted.wrong_records(request, records) == [told]


def test_a_frozen_alpha_has_no_answer() -> None:
    _, records, reason = run("frozen", "offset")
    assert records[-1].path is None
    assert reason.startswith("no slot's alpha moved beyond chance")


def probabilities(engine: str, part: str) -> torch.Tensor:
    _, records, _ = run(engine, part)
    assert records[-1].probabilities is not None
    return torch.tensor(records[-1].probabilities)


def first_alpha(engine: str, part: str) -> torch.Tensor:
    """(L, K) alpha behind its first update, from equal weights and the same batch in every engine."""
    request = planted.request_of(part, 0, SHORT)
    search = ENGINES[engine](request, planted.parts_of(part, request.task), planted.table_of(request))
    assert not isinstance(search, str)
    while not search.alphas.n_updates:
        search.advance()
    return search.alphas.values.detach()


def test_flipped_and_shuffled_evidence_is_that_of_the_sound_engine_but_for_sign_and_slot() -> None:
    sound = first_alpha(SOUND, "offset")
    assert torch.equal(first_alpha("sign-flipped", "offset"), -sound)
    assert torch.equal(first_alpha("shuffled", "offset"), sound.roll(1, dims=0))
    assert not torch.equal(sound.roll(1, dims=0), sound)


def expected_ms(engine: str) -> float:
    request = planted.request_of("budget", 0, {**SHORT, "n_steps": 200})
    _, _, records, _ = planted.searched(engine, "budget", request)
    found = [each.expected_ms for each in records if each.phase == "search"][-1]
    assert found is not None
    return found


def test_a_detached_penalty_leaves_the_expected_cost_over_its_bound() -> None:
    """Equal probabilities cost 3.2 ms of the 2.0 that are allowed."""
    assert expected_ms(SOUND) < planted.OVER * planted.BUDGET_MS < expected_ms("detached")


def test_the_few_windows_are_partly_wrong_and_alpha_reads_others() -> None:
    request = planted.request_of("few", 0)
    parts = planted.parts_of("few", request.task)
    few = parts.weights.held_out(request.task, 1000)
    assert len(few.tokens) == planted.FEW_WINDOWS
    clean = parts.alpha.held_out(request.task, 64)
    answers = {
        int(token): int(target) for token, target in zip(clean.tokens.ravel(), clean.targets.ravel(), strict=True)
    }
    right = sum(
        answers[int(token)] == int(target)
        for token, target in zip(few.tokens.ravel(), few.targets.ravel(), strict=True)
    )
    share = right / few.tokens.numel()
    assert share == pytest.approx(1 - planted.WRONG + planted.WRONG / 32, abs=0.04)  # 4,096 draws: five errors of 0.008
    search = ENGINES["same-data"](request, parts, planted.table_of(request))
    assert not isinstance(search, str)
    assert search.streams["alpha_data"].part is parts.weights


def test_the_interval_of_a_rate_is_wilsons() -> None:
    assert planted.wilson(9, 10) == pytest.approx((0.5958, 0.9821), abs=1e-4)  # Agresti & Coull 1998 have the formula
    low, high = planted.wilson(10, 10)
    assert low == pytest.approx(0.7225, abs=1e-4)
    assert high == pytest.approx(1)
    assert planted.wilson(0, 10)[0] == pytest.approx(0)


def test_what_is_kept_is_not_run_again_and_the_last_line_is_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    planted.fill(tmp_path, "always-SSS", ["offset", "lookup"], 1, 1)
    kept = planted.results_in(tmp_path)
    assert [(each.part, each.stack, each.passed) for each in kept] == [
        ("offset", "SSS", False),
        ("lookup", "SSS", False),
    ]
    planted.fill(tmp_path, "always-SSS", ["offset", "lookup"], 1, 1)
    assert planted.results_in(tmp_path) == kept
    capsys.readouterr()
    planted.show(tmp_path, "always-SSS", ["offset", "lookup"], 1)
    *_, last = capsys.readouterr().out.splitlines()
    summary = json.loads(last)
    assert summary["engine"] == "always-SSS"
    assert summary["parts"]["offset"]["passed"] == 0
    assert summary["parts"]["offset"]["n"] == 1


def test_results_of_another_setup_are_left_aside(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    request = planted.request_of("offset", 0)
    other = planted.request_of("offset", 0, {**planted.METHOD, "n_steps": 1000})
    assert planted.setup_of(request) != planted.setup_of(other)
    assert planted.setup_of(request) == planted.setup_of(planted.request_of("offset", 7))
    planted.fill(tmp_path, "always-SSS", ["offset"], 1, 1)
    (kept,) = planted.results_in(tmp_path)
    row = dataclasses.replace(kept, setup="00000000")
    (tmp_path / planted.RESULTS).write_text(
        "\n".join([",".join(planted.COLUMNS), ",".join(str(value) for value in dataclasses.astuple(row)), ""])
    )
    capsys.readouterr()
    planted.show(tmp_path, "always-SSS", ["offset"], 1)
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["parts"] == {}
    assert math.isclose(row.seconds, kept.seconds)
