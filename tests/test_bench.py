"""The benches run, and ListOps is what its rules say. Figures are not tested: they are printed where they are made."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from bench import blocks, faster, kept, listops, replay_mgk, replay_sgu
from nas.blocks.base import Context
from nas.blocks.mgk import MixtureOfGaussianKeys
from nas.config.task import Task
from nas.data.synthetic.generated import Generated
from nas.data.synthetic.listops import ListOps
from nas.specs.tasks.listops import ListOpsOptions, ShortListOpsOptions


def test_expressions_to_read_differ_and_stay_in_order() -> None:
    found = listops.expressions(200, 0)
    assert len(dict(found)) == 200
    assert found[:50] == listops.expressions(50, 0)
    assert found[:50] != listops.expressions(50, 1)


# [MAX 2 [MIN 4 9 ] 0 ]: ids are digit + 1, operators from 11 in the order MIN, MAX, MED, SM, and 15 closes.
@pytest.mark.parametrize(
    ("tokens", "near"),
    [
        ([12, 3, 11, 5, 10, 15, 1, 15], 2),
        ([13, 3, 6, 11, 5, 10, 15, 15], 3),
        ([13, 3, 6, 10, 15], 5),
        ([14, 9, 9, 9, 15], 4),
        ([11, 14, 9, 9, 15, 14, 9, 9, 15, 15], None),
    ],
    ids=["max", "median of two", "median of three", "sum", "no digit"],
)
def test_direct_digits_are_those_of_the_root_alone(tokens: list[int], near: int | None) -> None:
    assert listops.near_value(tokens) == near


# Of docs/tasks.md; tolerances are four standard errors of 10,000 and of 600 expressions.
@pytest.mark.parametrize(
    ("options", "n_train", "n_test", "stated", "tolerance"),
    [
        (ShortListOpsOptions(), 20_000, 10_000, (0.114, 0.238, 0.433), 0.02),
        (ListOpsOptions(), 1_500, 600, (0.163, 0.36, 0.482), 0.08),
    ],
    ids=["short", "full"],
)
def test_readers_that_see_more_score_more(
    options: ListOpsOptions, n_train: int, n_test: int, stated: tuple[float, ...], tolerance: float
) -> None:
    found = listops.expressions(n_train + n_test, 0, options)
    lines = listops.reference_lines(found[:n_train], found[n_train:])
    assert list(lines.values()) == pytest.approx(stated, abs=tolerance)
    assert lines["majority"] < lines["root operator"] < lines["root operator and its direct digits"]


def test_expressions_that_come_again_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    few = ListOpsOptions(max_depth=2, max_args=2, longer_than=1, shorter_than=6)  # 4 operators of two digits: 400
    assert listops.repeats(10_000, 200, 0, few) == len(
        {tuple(row) for row in Generated(ListOps(few, 5), 3).held_out(Task(), 200).tokens.tolist()}
    )
    assert listops.repeats(1_000, 100, 0) == 0
    listops.main(["--repeats", "1000", "--test", "100"])
    assert capsys.readouterr().out == "0 of 100 test expressions are among 1,000 drawn\n"


def test_the_bench_of_listops_runs(capsys: pytest.CaptureFixture[str]) -> None:
    listops.main(["--train", "300", "--test", "100"])
    assert [line.rsplit(maxsplit=1)[0] for line in capsys.readouterr().out.splitlines()[:-1]] == list(listops.READERS)


def test_an_interrupted_replay_goes_on_where_it_stopped(tmp_path: Path) -> None:
    ran = []

    def run(*, seed: int) -> dict[str, float]:
        ran.append(seed)
        return {"loss": seed / 2}

    kept.fill(tmp_path / "rows.json", [{"seed": 1}], run, ("loss",))
    rows = kept.fill(tmp_path / "rows.json", [{"seed": 2}, {"seed": 1}], run, ("loss",))
    assert ran == [1, 2]
    assert [row["loss"] for row in rows] == [1.0, 0.5]


def test_paired_differences_have_the_standard_error_of_their_mean() -> None:
    assert kept.paired([1.0, 2.0, 3.0]) == (2.0, pytest.approx(3**-0.5))
    assert kept.paired([1.0])[1] == float("inf")


def test_the_bench_of_the_blocks_runs(capsys: pytest.CaptureFixture[str]) -> None:
    blocks.main(["--quick"])
    last = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert last["bench"] == "blocks"
    for table in ("causal", "both_sides", "toeplitz", "linear", "incremental"):
        assert all(row["median"] > 0 for row in last[table])


def test_optimisers_are_timed_against_the_plain_one() -> None:
    rows = faster.optimiser_table(blocks.QUICK)
    assert [(row.first, row.second) for row in rows] == [("fused", "one by one"), ("grouped", "one by one")]


def test_a_block_that_is_timed_in_bfloat16_has_the_gradients_of_the_plain_one() -> None:
    """To what eight bits tell. What is compiled is left out: it takes half a minute a block."""
    block = blocks.make("ffn", blocks.QUICK.shape(blocks.QUICK.tokens))
    torch.manual_seed(0)
    plain = faster.training(block, block, blocks.QUICK)()
    torch.manual_seed(0)
    low = faster.training(block, faster.in_bfloat16(block), blocks.QUICK)()
    for one, other in zip(plain, low, strict=True):
        assert torch.allclose(one, other, atol=0.05 * float(one.abs().max()))
    assert not all(torch.equal(one, other) for one, other in zip(plain, low, strict=True))


def test_the_replay_of_the_gating_ablation_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replay_sgu, "TEST_BATCHES", 1)
    monkeypatch.setattr(replay_sgu, "TUNING_BATCHES", 1)
    replay_sgu.main(["--steps", "2", "--seeds", "1", "--lr", "4e-3", "--results", str(tmp_path / "rows.json")])
    last = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert len(last["mean_nats"]) == len(replay_sgu.VARIANTS)


def test_variants_that_are_matched_weigh_the_same() -> None:
    weights = {
        name: sum(each.numel() for each in replay_sgu.build(variant, 0).parameters())
        for name, variant in replay_sgu.VARIANTS.items()
    }
    assert weights["per-token FFN"] == 42_048  # spec: sgu, section 7.3
    assert weights["linear"] == weights["additive"] == weights["multiplicative"]
    assert abs(weights["split, equal weights"] / weights["multiplicative"] - 1) < 0.01
    assert weights["split, paper's ratio"] > weights["multiplicative"]


def test_the_replay_of_gaussian_keys_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"PROBE_STEPS": 2, "WINDOWS": 4, "TRAIN": 300, "TEST": 200}.items():
        monkeypatch.setattr(replay_mgk, name, value)
    monkeypatch.setattr(replay_mgk, "STEPS", {"text": 2, "listops": 2})
    replay_mgk.expressions.cache_clear()
    replay_mgk.main(["--probes", *replay_mgk.PROBES, "--seeds", "1", "--results", str(tmp_path / "rows.json")])
    replay_mgk.expressions.cache_clear()
    last = json.loads(capsys.readouterr().out.splitlines()[-1])
    for probe in ("text", "listops"):
        assert set(last[probe]["quality"]) == set(replay_mgk.ARMS)


@pytest.mark.parametrize("arm", ["GK", "sMGK", "MGK"])
def test_the_probe_s_attention_is_the_block_s(arm: str) -> None:
    torch.manual_seed(0)
    head = replay_mgk.Probe(arm, 4).double()
    assert isinstance(head.block, MixtureOfGaussianKeys)
    x = torch.randn(2, 5, replay_mgk.EMBEDDING, dtype=torch.float64)
    positions = torch.arange(5)
    q, keys, v = head.block.project(x, x, positions, positions)
    mixed = head.scores(q, keys).softmax(dim=-1) @ v
    # 1e-10: float64, and the fused kernel sums in another order.
    expected = head.block(x, Context(False, positions))
    torch.testing.assert_close(head.block.merge(mixed), expected, rtol=1e-10, atol=1e-10)
