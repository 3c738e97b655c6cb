"""The enumerated table is read with care, ranks stacks and knows what is missing; its bench fills it, and goes on."""

from __future__ import annotations

import math
import sys
from itertools import product
from pathlib import Path

import pytest

from bench import enumerate as bench
from bench.kept import locked
from nas.data.enumerated import (
    COST_COLUMNS,
    COSTS,
    LENGTH,
    LONGER,
    N_BEST,
    OTHER_RATES,
    RATE,
    RUN_COLUMNS,
    RUNS,
    SAMPLE,
    SEEDS,
    SETTINGS,
    STACKS,
    TASKS,
    TEXT,
    Row,
    Run,
    Table,
    canonical,
    load,
    print_table,
    to_values,
)
from nas.errors import DataError, InvalidInput

HEADER = ",".join(RUN_COLUMNS)
GOOD = "offset,64,SA,3,1,0.002,150,0.99500,0.02000,3.1,1"


def row(task: str, stack: str, seed: int, steps: int, accuracy: float, nats: float, lr: float = RATE) -> Row:
    return Row(Run(task, LENGTH, stack, seed, lr), steps, accuracy, nats, 1.0)


def table(*rows: Row) -> Table:
    return Table({each.run: each for each in rows})


def test_stacks_are_all_that_three_slots_can_hold_each_once() -> None:
    words = {"".join(word).replace(".", "") for word in product("AFSM.", repeat=3)}
    assert len(STACKS) == len(set(STACKS)) == len(words) == 85
    assert set(STACKS) == {word or "." for word in words}


def test_the_sample_is_of_different_stacks_of_four_blocks() -> None:
    assert len(set(SAMPLE)) == len(SAMPLE) == 24
    assert all(len(each) == 4 and set(each) <= set("AFSM") for each in SAMPLE)
    assert SAMPLE[:4] == ("AFAF", "SSSS", "MFSS", "FSAM")  # the draw is the same in every process


@pytest.mark.parametrize(
    ("written", "stack"), [("A.S", "AS"), ("...", "."), (".", "."), ("", "."), ("SSA", "SSA"), (".M..", "M")]
)
def test_identity_is_left_out_of_a_stack(written: str, stack: str) -> None:
    assert canonical(written) == stack


def test_an_entry_is_the_mean_over_seeds_at_one_rate() -> None:
    made = table(
        row("offset", "SA", 0, 100, 0.992, 0.02),
        row("offset", "SA", 1, 200, 1.0, 0.04),
        row("offset", "SA", 0, 1000, 0.5, 2.0, lr=OTHER_RATES[0]),
    )
    entry = made.entry("offset", LENGTH, "S.A")
    assert entry is not None
    assert (entry.stack, entry.n_seeds, entry.steps, entry.cost) == ("SA", 2, 150, None)
    assert (entry.accuracy, entry.nats) == (pytest.approx(0.996), pytest.approx(0.03))
    other = made.entry("offset", LENGTH, "SA", OTHER_RATES[0])
    assert other is not None
    assert other.accuracy == 0.5
    assert made.entry("lookup", LENGTH, "SA") is None


def test_the_best_stack_is_solved_soonest_and_among_equals_has_the_lowest_loss() -> None:
    made = table(
        row("offset", "A", 0, 1000, 0.12, 3.0),
        row("offset", "S", 0, 150, 1.0, 0.05),
        row("offset", "F", 0, 1000, 0.03, 3.4),
        row("offset", "SS", 0, 100, 1.0, 0.06),
        row("offset", "SSSS", 0, 50, 1.0, 0.01),  # of four slots: not among the stacks of three
    )
    assert [each.stack for each in made.stacks("offset")] == ["SS", "S", "A", "F"]


def test_what_is_missing_is_told_in_the_order_of_work() -> None:
    first, further, rates, longer, sampled = Table().missing()
    assert [len(each) for each in (first, further, rates, longer, sampled)] == [425, 850, 0, 255, 120]
    assert first[:5] == [Run(task, LENGTH, ".") for task in TASKS]
    assert {run.seed for run in first} == {0}
    assert {(run.task, run.length) for run in longer} == {(TEXT, LONGER)}
    made = table(row("token-wise", ".", 0, 50, 1.0, 0.1))
    assert made.missing()[0] == first[1:]


def test_other_rates_are_for_the_best_of_a_task_that_has_all_its_seeds() -> None:
    rows = [row("offset", stack, seed, 50 * (at + 1), 1.0, 0.0) for at, stack in enumerate(STACKS) for seed in SEEDS]
    made = table(*rows)
    assert made.is_complete("offset")
    assert not made.is_complete("lookup")
    assert made.n_seeded("offset") == 255
    missing = made.missing()[2]
    assert len(missing) == N_BEST * len(OTHER_RATES) * len(SEEDS)
    assert {run.stack for run in missing} == set(STACKS[:N_BEST])
    assert not table(*rows[1:]).is_complete("offset")
    assert table(*rows[1:]).missing()[2] == []


@pytest.mark.parametrize(
    ("task", "length", "stack", "message"),
    [
        (
            "sorting",
            64,
            "A",
            "task 'sorting' is not in the table; known: token-wise, offset, lookup, shift-then-match, ",
        ),
        ("offset", 256, "A", "length 256 of offset is not in the table; known: 64$"),
        (TEXT, 128, "A", "length 128 of python-docs is not in the table; known: 64, 256$"),
        ("offset", 64, "AX", "stack 'AX' has letter 'X'; the table knows A, F, S, M and .$"),
        ("offset", 64, "AAAAA", "stack 'AAAAA' is not in the table; it has all up to 3 blocks, and a sample of 4"),
    ],
)
def test_questions_beyond_the_table_are_refused(task: str, length: int, stack: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        Table().entry(task, length, stack)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (GOOD.replace("offset", "sorting"), "runs.csv, row 2: task 'sorting' is not in the table"),
        (GOOD.replace(",64,", ",65,"), "row 2: length 65 of offset is not in the table; known: 64"),
        (GOOD.replace("SA", "AS.A"), "row 2: stack is 'AS.A', which the table does not have"),
        (GOOD.replace(",3,1,", ",3,7,"), "row 2: seed is 7, which the table does not have"),
        (GOOD.replace("0.002", "0.003"), "row 2: lr is 0.003, which the table does not have"),
        (GOOD.replace(",3,1,", ",4,1,"), "row 2: n_slots is 4 for stack 'SA'; it must be 3"),
        (GOOD.replace(",150,", ",1050,"), "row 2: steps is 1050; it must be between 1 and 1000"),
        (GOOD.replace("0.99500", "1.5"), "row 2: accuracy is 1.5; it must be between 0 and 1"),
        (GOOD.replace("0.02000", "nan"), "row 2: nats is nan; it must not be negative"),
        (GOOD.replace("0.02000", "-1"), "row 2: nats is -1.0; it must not be negative"),
        (GOOD[:-1] + "2", "row 2: version is 2; this code reads 1"),
        (GOOD.replace("150", "many"), "row 2: steps is 'many'; it must be a number"),
        (GOOD + ",1", "row 2: it has other than 11 values"),
        (GOOD[:-2], "row 2: it has other than 11 values"),
        (GOOD.replace("SA", "SS").replace(",1,0", ",0,0"), "row 2: the training stands there before"),
    ],
)
def test_a_row_that_is_not_one_of_the_table_is_refused(tmp_path: Path, line: str, message: str) -> None:
    first = GOOD.replace("SA", "SS").replace(",1,0", ",0,0")
    (tmp_path / RUNS).write_text(f"{HEADER}\n{first}\n{line}\n")
    with pytest.raises(DataError, match=message):
        load(tmp_path)


def test_other_columns_are_refused(tmp_path: Path) -> None:
    (tmp_path / RUNS).write_text("task,stack\noffset,A\n")
    with pytest.raises(DataError, match=r"^runs\.csv has columns task,stack; it must have task,length,stack,n_slots,"):
        load(tmp_path)
    (tmp_path / RUNS).unlink()
    (tmp_path / COSTS).write_text(",".join(COST_COLUMNS) + "\noffset,64,XX,1,1,1\n")
    with pytest.raises(DataError, match=r"^costs\.csv, row 1: stack is 'XX', which the table does not have"):
        load(tmp_path)


def test_rows_are_read_as_they_were_written(tmp_path: Path) -> None:
    rows = [row("offset", ".", 2, 1000, 0.03125, 3.46574, lr=OTHER_RATES[1]), row(TEXT, "SAM", 0, 1000, 0.5, math.inf)]
    lines = [",".join(to_values(each)) for each in rows]
    (tmp_path / RUNS).write_text("\n".join([HEADER, *lines]) + "\n")
    assert list(load(tmp_path).rows.values()) == rows
    assert load(tmp_path / "nothing there") == Table()


def test_the_table_in_the_package_holds_what_the_planted_tasks_are_for(capsys: pytest.CaptureFixture[str]) -> None:
    kept = load()

    def accuracy(task: str, stack: str) -> float:
        entry = kept.entry(task, LENGTH, stack)
        assert entry is not None, f"{task} {stack}"
        return entry.accuracy

    assert accuracy("token-wise", ".") > 0.99
    assert accuracy("offset", "S") > 0.98
    assert accuracy("offset", "A") < 0.13
    assert accuracy("lookup", "A") > 0.98
    assert accuracy("lookup", "S") < accuracy("lookup", "M") < accuracy("lookup", "A")
    assert accuracy("shift-then-match", "A") < 0.25 < 0.98 < accuracy("shift-then-match", "AA")
    cost = kept.costs["offset", LENGTH, "SSS"]
    assert 0 < kept.costs["offset", LENGTH, "."].latency_ms < cost.latency_ms
    print_table(kept, n=3)
    out = capsys.readouterr().out
    assert all(f"\n{task}, {length} tokens: " in out for task, length in SETTINGS)


def test_the_reference_setup_is_what_the_card_says() -> None:
    for task, length in SETTINGS:
        request = bench.request_of(Run(task, length, "ASM", 1, OTHER_RATES[0]))
        network = bench.network_of(Run(task, length, "ASM"), request)
        shape = network.config.shape
        assert (shape.d_model, shape.n_heads, shape.max_len, shape.causal) == (64, 4, length, True)
        assert request.method.batch_size * length == 2048
        assert (request.method.lr, request.trials.seed) == (OTHER_RATES[0], 1)
        assert shape.positions == ("rotary" if task in ("shift-then-match", TEXT) else "none")
        assert network.config.backbone.position_embedding == "none"
        assert network.config.backbone.n_classes == (0 if task == TEXT else request.task.synthetic_options().n_classes)
        widths = {name: tuple(each.shape) for name, each in network.named_parameters()}
        assert widths["slots.1.block.proj_in.weight"] == (256, 64)
        assert widths["slots.1.block.weight"] == (1, length, length)
        assert widths["slots.2.block.proj_k.weight"] == (2 * 2 * 16, 64)  # 2 keys of 2 heads


def test_the_networks_are_those_of_the_text_that_the_rows_are_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "TEXT_SHA256", "0" * 64)
    bench.text.cache_clear()
    with pytest.raises(
        SystemExit, match=r"^python-docs has sha256 [0-9a-f]{64} in this Python; the table's rows are of"
    ):
        bench.text()


def small(made: Table) -> list[list[Run]]:
    """Two quick trainings in two stages, where they are missing."""
    stages = [[Run("token-wise", LENGTH, ".")], [Run("token-wise", LENGTH, "F"), Run("token-wise", LENGTH, ".", 1)]]
    return [[run for run in stage if run not in made.rows] for stage in stages]


def test_the_bench_trains_what_is_missing_and_nothing_twice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bench.fill(tmp_path, 1, 1, small)
    assert [each.run.stack for each in load(tmp_path).rows.values()] == ["."]
    with (tmp_path / RUNS).open("a") as file:
        file.write("token-wise,64,F,3,0,0.0")  # as a full disk leaves it
    first = (tmp_path / RUNS).read_text().splitlines()[1]
    bench.fill(tmp_path, 1, None, small)
    written = (tmp_path / RUNS).read_text()
    assert written.splitlines()[1] == first
    rows = list(load(tmp_path).rows.values())
    assert [(each.run.stack, each.run.seed) for each in rows] == [(".", 0), ("F", 0), (".", 1)]
    assert all(each.accuracy > 0.99 and each.nats < 0.5 and each.steps <= 100 for each in rows)
    assert len(capsys.readouterr().out.splitlines()) == 3
    bench.fill(tmp_path, 1, None, small)
    assert (tmp_path / RUNS).read_text() == written


def test_a_training_repeats_to_the_bit() -> None:
    run = Run("token-wise", LENGTH, ".", 2)
    first, again = bench.train(run), bench.train(run)
    assert (first.steps, first.accuracy, first.nats) == (again.steps, again.accuracy, again.nats)


def test_one_process_fills_a_table_at_a_time(tmp_path: Path) -> None:
    held = locked(tmp_path / RUNS, RUN_COLUMNS)
    with held, pytest.raises(SystemExit, match="is being filled by another process; one at a"):
        bench.fill(tmp_path, 1, None, small)


def test_workers_share_the_trainings(tmp_path: Path) -> None:
    bench.fill(tmp_path, 2, None, lambda made: small(made)[1:])
    assert [len(each) for each in small(load(tmp_path))] == [1, 0]


def test_costs_are_those_of_the_networks(tmp_path: Path) -> None:
    bench.measure_costs(tmp_path, [("token-wise", LENGTH)], [".", "SAM"], 3)
    costs = load(tmp_path).costs
    for stack in (".", "SAM"):
        run = Run("token-wise", LENGTH, stack)
        network = bench.network_of(run, bench.request_of(run))
        assert costs["token-wise", LENGTH, stack].parameters == sum(each.numel() for each in network.parameters())
    assert 0 < costs["token-wise", LENGTH, "."].latency_ms < costs["token-wise", LENGTH, "SAM"].latency_ms


def test_the_table_is_shown_by_the_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "argv", ["enumerate", "--show", "--folder", str(tmp_path)])
    bench.main()
    assert "shift-then-match, 64 tokens: 0 of 255 trainings" in capsys.readouterr().out
