"""The benches run, and ListOps is what its rules say. Figures are not tested: they are printed where they are made."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
import torch

from bench import blocks, kept, listops, replay_mgk, replay_sgu
from nas.blocks.base import Context
from nas.blocks.mgk import MixtureOfGaussianKeys

# [MAX 2 9 [MIN 4 7 ] 0 ] and others, by hand; ids: digit + 1, operators by name.
EXPRESSIONS = [
    ("a digit", [8], 7),
    ("max over a nested min", [listops.MAX, 3, 10, listops.MIN, 5, 8, listops.CLOSE, 1, listops.CLOSE], 9),
    ("min", [listops.MIN, 5, 8, 4, listops.CLOSE], 3),
    ("sum modulo 10", [listops.SM, 10, 8, 3, listops.CLOSE], 8),
    ("median of an odd number", [listops.MED, 10, 2, 4, listops.CLOSE], 3),
    ("median of an even number, truncated", [listops.MED, 2, 5, 10, 3, listops.CLOSE], 3),
]


@pytest.mark.parametrize(("tokens", "value"), [each[1:] for each in EXPRESSIONS], ids=[each[0] for each in EXPRESSIONS])
def test_an_expression_has_the_value_that_its_operators_give(tokens: list[int], value: int) -> None:
    assert listops.evaluate(tokens) == value


@pytest.mark.parametrize(
    ("tokens", "message"),
    [([1, listops.CLOSE], "ends nothing"), ([listops.SM, listops.CLOSE], "ends nothing"), ([1, 2], "not one whole")],
)
def test_what_is_no_expression_is_refused(tokens: list[int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        listops.evaluate(tokens)


def test_drawn_expressions_differ_and_keep_the_rules() -> None:
    rules = listops.Rules(max_depth=4, max_args=3, longer_than=5, shorter_than=20)
    found = listops.expressions(200, 0, rules)
    assert len(set(found)) == 200
    assert found[:50] == listops.expressions(50, 0, rules)
    for tokens in found:
        assert 5 < len(tokens) < 20
        depth = deepest = 0
        for token in tokens:
            depth += (token in listops.OPERATORS) - (token == listops.CLOSE)
            deepest = max(deepest, depth)
        assert deepest <= 3
        assert 0 <= listops.evaluate(tokens) <= 9


def test_leaves_are_three_of_four_nodes() -> None:
    rng, drawn = random.Random(0), 4000
    digits = sum(len(listops.draw(rng, listops.Rules())) == 1 for _ in range(drawn))
    assert abs(digits / drawn - 0.75) < 0.03  # more than four standard errors


def test_readers_that_see_more_score_more() -> None:
    found = listops.expressions(3000, 0)
    lines = listops.reference_lines(found[:2000], found[2000:])
    assert 0.08 < lines["majority"] < lines["root operator"] < lines["root operator and its direct digits"] < 0.5


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
