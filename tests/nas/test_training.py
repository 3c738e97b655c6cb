"""The optimiser set-up, the learning-rate schedule and evaluation."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nas.blocks import block_classes
from nas.config.method import Method
from nas.config.space import SearchSpace
from nas.data.objectives import Batch, next_tokens
from nas.data.streams import HeldOut
from nas.heads import IGNORE
from nas.network import Memory
from nas.steps import StepRecord
from nas.supernet import Supernet
from nas.training import (
    dropout_from,
    evaluate,
    generator,
    learning_rate,
    loss_of,
    reports,
    weight_step,
    weights_optimiser,
)


def test_learning_rate_rises_then_falls_to_a_tenth() -> None:
    method = Method(lr=1e-2, lr_warmup_steps=10)
    rates = [learning_rate(step, 100, method) for step in range(100)]
    assert rates[0] == pytest.approx(1e-3)
    assert max(rates) == pytest.approx(1e-2)
    assert rates.index(max(rates)) in (9, 10)
    assert rates[-1] == pytest.approx(1e-3, rel=0.01)
    assert rates[10:] == sorted(rates[10:], reverse=True)


def test_a_constant_rate_stays_at_its_peak_behind_the_rise() -> None:
    method = Method(lr=1e-2, lr_warmup_steps=10, lr_schedule="constant")
    rates = [learning_rate(step, 100, method) for step in range(100)]
    assert rates[:10] == pytest.approx([1e-3 * (step + 1) for step in range(10)])
    assert rates[10:] == [1e-2] * 90


def test_short_runs_rise_for_at_most_a_quarter() -> None:
    method = Method(lr=1e-2, lr_warmup_steps=100)
    assert learning_rate(2, 8, method) == pytest.approx(1e-2)


def test_decay_is_on_matrices_only() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4))
    optimiser = weights_optimiser(dict(model.named_parameters()), Method(weight_decay=0.1))
    decayed = {id(p) for group in optimiser.param_groups if group["weight_decay"] for p in group["params"]}
    assert decayed == {id(model[0].weight)}


def test_decay_leaves_biases_and_mixtures_of_several_axes_alone() -> None:
    blocks = [
        ("attention", {}),
        ("attention", {"positions": "relative_bias", "bias": True}),
        ("mgk", {"n_keys": 2, "variance": "learned"}),
        ("mgk", {"n_keys": 2, "keys": "shifted"}),
        ("sgu", {"attention_width": 4}),
        ("ffn", {}),
    ]
    space = SearchSpace.model_validate({
        "n_slots": 1, "d_model": 8, "n_heads": 2, "max_len": 8, "positions": "transformer_xl", "memory_length": 8,
        "backbone": {"tied_head": True, "cutoffs": [5, 9], "div_value": 2},
        "candidates": [
            {"label": f"c{at}", "block": block, "options": options} for at, (block, options) in enumerate(blocks)
        ],
    })  # fmt: skip
    named = dict(Supernet(space, 12, block_classes(block for block, _ in blocks)).named_parameters())
    decay, free = weights_optimiser(named, Method()).param_groups
    assert (decay["weight_decay"], free["weight_decay"]) == (Method().weight_decay, 0.0)
    assert len(decay["params"]) + len(free["params"]) == len(named)
    found = {id(each) for each in decay["params"]}
    left = {name.split(".")[-1] for name, each in named.items() if each.ndim >= 2 and id(each) not in found}
    assert left == {"u", "v", "table", "shifts", "logits", "log_variance"}
    assert all(id(each) not in found for each in named.values() if each.ndim < 2)


def test_a_step_touches_only_what_ran_moments_included() -> None:
    ran, idle = nn.Linear(3, 5), nn.Linear(3, 5)
    parameters = {f"{name}.{k}": p for name, m in (("ran", ran), ("idle", idle)) for k, p in m.named_parameters()}
    optimiser = weights_optimiser(parameters, Method(weight_decay=0.1))
    before = {name: parameter.detach().clone() for name, parameter in parameters.items()}
    embed = torch.randn(5, 3, generator=torch.Generator().manual_seed(0))
    windows = torch.randint(0, 5, (2, 4), generator=torch.Generator().manual_seed(1))
    loss = F.cross_entropy(ran(embed[windows[:, :-1]]).flatten(0, 1), windows[:, 1:].flatten())
    weight_step([loss], optimiser, lr=0.1, grad_clip=1.0)
    for name, parameter in parameters.items():
        assert torch.equal(parameter, before[name]) == name.startswith("idle")
        assert (parameter in optimiser.state) == name.startswith("ran")
        assert parameter.grad is None


def by_table(batch: Batch, memory: Memory | None) -> tuple[Tensor, None]:
    """Loss of a model that only looks at the present token; any targets may be left out."""
    table = torch.randn(7, 7, generator=torch.Generator().manual_seed(0))
    logits = table[batch.tokens].transpose(1, 2)
    return F.cross_entropy(logits, batch.targets, reduction="none", ignore_index=IGNORE), None


def test_evaluate_gives_each_windows_mean_whatever_the_batch() -> None:
    batch = next_tokens(torch.randint(0, 7, (5, 9), generator=torch.Generator().manual_seed(1)))
    found = evaluate(by_table, HeldOut(batch, 1), batch_size=2)
    per_window = found.windows
    assert per_window.shape == (5,)
    other = evaluate(by_table, HeldOut(batch, 1), batch_size=5)
    torch.testing.assert_close(per_window, other.windows)
    torch.testing.assert_close(found.positions, by_table(batch, None)[0].mean(dim=0))
    torch.testing.assert_close(found.positions, other.positions)
    torch.testing.assert_close(per_window.mean(), loss_of(by_table(batch, None)[0], batch))


def test_losses_are_means_over_what_is_scored() -> None:
    tokens = torch.randint(0, 7, (2, 6), generator=torch.Generator().manual_seed(1))
    targets = torch.full((2, 6), IGNORE)
    targets[:, 2], targets[:, 5] = tokens[:, 0], tokens[:, 1]
    batch = Batch(tokens, targets)
    nats, _ = by_table(batch, None)
    scored = nats[:, [2, 5]]
    torch.testing.assert_close(loss_of(nats, batch), scored.mean())
    found = evaluate(by_table, HeldOut(batch, 1), 2)
    torch.testing.assert_close(found.windows, scored.mean(dim=1))
    torch.testing.assert_close(found.positions[[2, 5]], scored.mean(dim=0))
    assert found.positions.isnan().tolist() == [True, True, False, True, True, False]


def test_what_has_nothing_to_score_counts_nowhere() -> None:
    """A document none of whose words with labels is left must not make a whole evaluation not a number."""
    targets = torch.tensor([[3, IGNORE], [IGNORE, IGNORE], [1, 2]])
    batch = Batch(torch.zeros_like(targets), targets)

    def forward(batch: Batch, memory: Memory | None) -> tuple[Tensor, None]:
        return batch.targets.clamp_min(0).float(), None

    found = evaluate(forward, HeldOut(batch, segments=1), batch_size=2)
    assert found.windows.tolist() == [3, 1.5]
    assert float(found.mean()) == 2.25
    assert found.positions.tolist() == [2, 2]
    nothing = batch.rows([1])
    assert float(loss_of(torch.zeros(1, 2), nothing)) == 0


def test_evaluation_reads_segment_after_segment_and_gives_memory_on() -> None:
    """Each row's memory is what the row's last segment left; it starts empty; the order is that of the text."""

    def counting(batch: Batch, memory: Memory | None) -> tuple[Tensor, Memory | None]:
        earlier = torch.zeros(len(batch.tokens)) if memory is None else memory[0]
        assert earlier is not None
        seen = earlier + batch.tokens[:, -1]
        return seen[:, None].expand(batch.tokens.shape), [seen]

    ends = torch.tensor([1, 2, 3, 10, 20, 30, 100, 200, 300])  # three rows of three segments of two tokens
    tokens = torch.stack([torch.zeros_like(ends), ends], dim=1)
    for batch_size in (2, 3):
        losses = evaluate(counting, HeldOut(Batch(tokens, tokens), 3), batch_size)
        assert losses.windows.tolist() == [1, 3, 6, 10, 30, 60, 100, 300, 600]


def test_dropout_follows_its_source_alone_and_leaves_the_global_generator() -> None:
    def draws(seed: int) -> list[Tensor]:
        source = torch.Generator().manual_seed(seed)
        found = []
        for _ in range(2):
            with dropout_from(source, "cpu"):
                found.append(F.dropout(torch.ones(64)))
            torch.rand(3)
        return found

    torch.manual_seed(5)
    expected = torch.rand(7)
    torch.manual_seed(5)
    first, second = draws(0)
    again, other = draws(0), draws(1)
    assert torch.equal(first, again[0])
    assert torch.equal(second, again[1])
    assert not torch.equal(first, second)
    assert not torch.equal(first, other[0])
    torch.manual_seed(5)
    with dropout_from(torch.Generator(), "cpu"):
        torch.rand(100)
    assert torch.equal(torch.rand(7), expected)


def test_streams_of_a_seed_differ_and_seeds_do_not_share_streams() -> None:
    draws = {
        (seed, stream): float(torch.rand((), generator=generator(seed, stream)))
        for seed in range(4)
        for stream in range(16)
    }
    assert len(set(draws.values())) == len(draws)


class Counting:
    """A trial of some steps an advance, which asks for a report itself where it takes more than one."""

    def __init__(self, *advances: int, **method: int) -> None:
        self.method = Method.model_validate(method)
        self.length, self.step, self.seconds = 8, 0, 0.0
        self.advances = list(advances)

    @property
    def done(self) -> bool:
        return not self.advances

    def advance(self) -> bool:
        taken = self.advances.pop(0)
        self.step += taken
        return taken > 3

    def record(self, *, tokens_per_s: float | None, last: bool) -> StepRecord:
        return StepRecord(self.step, tokens_per_s=tokens_per_s, last=last)


@pytest.mark.parametrize(
    ("advances", "reported"),
    [
        ([1] * 9, [0, 4, 6, 8, 9]),
        ([3, 3, 3, 1], [0, 6, 9, 10]),  # 4 and 6 are passed together, 8 is passed at 9
        ([1, 1, 5, 2], [0, 7, 9]),  # one asks for itself, and passes 4 and 6
        ([4], [0, 4]),
    ],
    ids=["one by one", "jumps", "asked for", "at once"],
)
def test_reports_come_where_a_multiple_is_passed_and_never_twice_at_a_step(
    advances: list[int], reported: list[int]
) -> None:
    records = list(reports(Counting(*advances, report_every=4, checkpoint_every=6)))
    assert [record.step for record in records] == reported
    assert [record.last for record in records] == [False] * (len(reported) - 1) + [True]
