"""Slots that keep only their input against the plain sum of candidates: the same values and gradients, less memory."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from nas.blocks import block_classes
from nas.config.space import SearchSpace
from nas.gumbel import straight_through
from nas.supernet import Supernet
from nas.training import dropout_from

V, B, T, L = 11, 2, 8, 3
LABELS = SearchSpace().labels
K = len(LABELS)
ESTIMATORS = ("soft", "straight_through", "two_path")


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def build(dropout: float = 0.0, **more: Any) -> Supernet:
    space = SearchSpace(n_slots=L, d_model=16, n_heads=2, max_len=T, dropout=dropout, attention_dropout=dropout, **more)
    torch.manual_seed(0)
    return Supernet(space, V, block_classes(LABELS))


def drawn(estimator: str, alpha: Tensor) -> tuple[Tensor, list[int] | None, list[list[int]] | None]:
    """Weights of an alpha step, with the path and the candidates that run."""
    if estimator == "soft":
        return torch.softmax(alpha, dim=-1), None, None
    if estimator == "straight_through":
        hard = straight_through(torch.softmax(alpha, dim=-1))
        return hard, hard.argmax(dim=-1).tolist(), None
    pairs = alpha.detach().topk(2, dim=-1).indices.sort(dim=-1).values  # (L, 2)
    soft = torch.zeros_like(alpha).scatter(1, pairs, torch.softmax(alpha.gather(1, pairs), dim=-1))
    hard = straight_through(soft)
    return hard, hard.argmax(dim=-1).tolist(), pairs.tolist()


def alpha_step(
    supernet: Supernet, estimator: str, *, frozen: bool, seed: int = 0, autocast: bool = False
) -> tuple[Tensor, Tensor]:
    """Loss and alpha's gradient; `frozen` takes the recomputing form."""
    dtype = next(supernet.parameters()).dtype
    tokens = torch.randint(0, V, (B, T), generator=seeded(seed + 1))
    alpha = torch.randn(L, K, generator=seeded(seed + 2), dtype=dtype).requires_grad_()
    weights, path, run = drawn(estimator, alpha)
    with supernet.frozen() if frozen else nullcontext():
        with dropout_from(seeded(seed + 3), "cpu"), torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
            hidden, _ = supernet.forward_mixture(tokens, weights, path, run=run)
            loss = supernet.backbone.nats(hidden, tokens, None).mean()
        (gradient,) = torch.autograd.grad(loss, alpha)
    return loss.detach(), gradient


@pytest.mark.parametrize("dropout", [0.0, 0.3])
@pytest.mark.parametrize("norm_position", ["pre", "post"])
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_recomputed_slots_give_the_loss_and_gradient_of_the_plain_sum(
    estimator: str, norm_position: str, dropout: float
) -> None:
    """The loss to the bit; the gradient to rounding: the soft sum adds up a slot's gradients in another order."""
    supernet = build(dropout, norm_position=norm_position)
    for seed in (0, 10, 20):
        loss, gradient = alpha_step(supernet, estimator, frozen=True, seed=seed)
        plain_loss, plain_gradient = alpha_step(supernet, estimator, frozen=False, seed=seed)
        assert torch.equal(loss, plain_loss)
        torch.testing.assert_close(gradient, plain_gradient, atol=1e-6, rtol=1e-4)
        if estimator != "soft":
            assert torch.equal(gradient, plain_gradient)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_recomputed_slots_are_exact_in_double_precision(estimator: str) -> None:
    supernet = build(0.3).double()
    _, gradient = alpha_step(supernet, estimator, frozen=True)
    _, plain = alpha_step(supernet, estimator, frozen=False)
    torch.testing.assert_close(gradient, plain, atol=1e-14, rtol=1e-11)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_recomputation_repeats_the_types_of_autocast(estimator: str) -> None:
    """2%: bfloat16 has 8 bits, and the plain sum also multiplies weights by them in that type."""
    supernet = build()
    loss, gradient = alpha_step(supernet, estimator, frozen=True, autocast=True)
    plain_loss, plain = alpha_step(supernet, estimator, frozen=False, autocast=True)
    torch.testing.assert_close(loss, plain_loss, rtol=5e-3, atol=0)
    assert gradient.dtype == torch.float32
    assert float((gradient - plain).norm() / plain.norm()) < 0.02


def test_alpha_steps_leave_no_gradient_and_the_weights_as_they_were() -> None:
    supernet = build(0.3)
    supernet.backbone.requires_grad_(False)
    learning = [each.requires_grad for each in supernet.parameters()]
    before = {name: each.clone() for name, each in supernet.state_dict().items()}
    alpha_step(supernet, "soft", frozen=True)
    assert all(each.grad is None for each in supernet.parameters())
    assert [each.requires_grad for each in supernet.parameters()] == learning
    assert all(torch.equal(before[name], each) for name, each in supernet.state_dict().items())


@pytest.mark.parametrize("frozen", [True, False], ids=["recomputed", "plain"])
def test_candidates_that_are_not_run_are_not_evaluated_and_get_no_gradient(frozen: bool) -> None:
    supernet = build()
    ran: set[tuple[int, str]] = set()
    for slot, mixed in enumerate(supernet.slots):
        blocks = mixed.get_submodule("blocks")
        assert isinstance(blocks, nn.ModuleDict)
        for number, block in blocks.items():
            block.register_forward_hook(lambda *_, slot=slot, number=number: ran.add((slot, number)))
    alpha = torch.randn(L, K, generator=seeded(2))
    _, _, run = drawn("two_path", alpha)
    assert run is not None
    _, gradient = alpha_step(supernet, "two_path", frozen=frozen)
    identity = LABELS.index("identity")
    assert ran == {(slot, str(k)) for slot, pair in enumerate(run) for k in pair if k != identity}
    assert [row.nonzero().flatten().tolist() for row in gradient] == run


@pytest.mark.parametrize("estimator", ["soft", "straight_through"])
def test_what_is_kept_does_not_grow_with_candidates(estimator: str) -> None:
    """Attention and n more of its kind: the forward pass keeps as much for four as for one."""
    sizes = {}
    for n in (1, 4):
        candidates = [{"label": f"a{each}", "block": "attention"} for each in range(n)]
        space = SearchSpace.model_validate(
            {"n_slots": L, "d_model": 16, "n_heads": 2, "max_len": T, "candidates": candidates}
        )
        torch.manual_seed(0)
        supernet = Supernet(space, V, block_classes(["attention"]))
        tokens = torch.randint(0, V, (B, T), generator=seeded(1))
        weights = torch.full((L, n), 1 / n).requires_grad_()
        hard = torch.zeros(L, n).index_fill(1, torch.tensor([0]), 1.0).requires_grad_()
        kept: list[Tensor] = []
        with supernet.frozen(), torch.autograd.graph.saved_tensors_hooks(kept.append, lambda none: none):
            if estimator == "soft":
                supernet.forward_mixture(tokens, weights)
            else:
                supernet.forward_mixture(tokens, hard, [0] * L)
        sizes[n] = sum(each.nbytes for each in kept if each.shape[0] == B)
    assert sizes[4] == sizes[1] > 0
