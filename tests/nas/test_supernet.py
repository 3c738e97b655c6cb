"""Identities of the mixed block and of alpha's gradients: par-search.md section 9, items 8-11, 13-16."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from nas.blocks import block_classes
from nas.config import SearchSpace
from nas.gumbel import gumbel, path_factor, straight_through
from nas.network import Memory, Network
from nas.options import NetworkConfig, SlotConfig
from nas.supernet import MixedBlock, Supernet

SPACE = SearchSpace(n_slots=3, d_model=16, n_heads=2, max_len=8)
CLASSES = block_classes([candidate.block for candidate in SPACE.candidates])
K = len(SPACE.candidates)
IDENTITY = SPACE.labels.index("identity")


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.fixture
def supernet() -> Supernet:
    torch.manual_seed(0)
    net = Supernet(SPACE, 11, CLASSES)
    with torch.no_grad():  # the SGU's near-zero mixer is made visible
        for name, parameter in net.named_parameters():
            if name.endswith("sgu.weight"):
                parameter.normal_(std=0.3)
    return net.eval()


@pytest.fixture
def tokens() -> Tensor:
    return torch.randint(0, 11, (2, 8), generator=seeded(1))


def logits(supernet: Supernet, run: tuple[Tensor, Memory | None]) -> Tensor:
    return supernet.backbone.head(run[0])


def derived(supernet: Supernet, path: list[int]) -> Network:
    """The concrete network that holds the supernet's own weights of this path."""
    slots = tuple(SlotConfig(SPACE.candidates[k].block, SPACE.candidates[k].options) for k in path)
    network = Network(NetworkConfig(SPACE.shape(), 11, slots), CLASSES)
    state = {name: value for name, value in supernet.state_dict().items() if name.startswith("backbone.")}
    for index, k in enumerate(path):
        for name, value in supernet.state_dict().items():
            if k != IDENTITY and name.startswith(f"slots.{index}.norm."):
                state[name] = value
            if name.startswith(f"slots.{index}.blocks.{k}."):
                state[name.replace(f"blocks.{k}", "block")] = value
    network.load_state_dict(state)
    return network.eval()


@pytest.mark.parametrize("choice", range(K), ids=SPACE.labels)
def test_one_hot_mixture_is_the_chosen_block_bitwise(supernet: Supernet, choice: int) -> None:
    slot = supernet.slots[0]
    assert isinstance(slot, MixedBlock)
    x = torch.randn(2, 8, 16, generator=seeded(2))
    context = supernet.backbone.context(torch.zeros(2, 8, dtype=torch.long))
    weights = torch.zeros(K)
    weights[choice] = 1.0
    expected = x
    if choice != IDENTITY:
        expected = x + slot.blocks[str(choice)](slot.norm(x), context)
    assert torch.equal(slot.mixture(x, context, weights), expected)
    assert torch.equal(slot.one(x, context, choice), expected)


def test_identity_returns_its_input_itself(supernet: Supernet) -> None:
    slot = supernet.slots[0]
    assert isinstance(slot, MixedBlock)
    x = torch.randn(2, 8, 16)
    context = supernet.backbone.context(torch.zeros(2, 8, dtype=torch.long))
    assert slot.one(x, context, IDENTITY) is x


def test_mixture_is_the_weighted_sum_over_the_shared_norm(supernet: Supernet) -> None:
    slot = supernet.slots[1]
    assert isinstance(slot, MixedBlock)
    x = torch.randn(2, 8, 16, generator=seeded(3))
    context = supernet.backbone.context(torch.zeros(2, 8, dtype=torch.long))
    weights = torch.softmax(torch.randn(K, generator=seeded(4)), dim=0)
    normed = slot.norm(x)
    expected = x + sum(weights[k] * slot.blocks[str(k)](normed, context) for k in range(K) if k != IDENTITY)
    torch.testing.assert_close(slot.mixture(x, context, weights), expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize("path", [[0, 1, 3], [4, 2, 2], [2, 2, 2], [3, 4, 0]])
def test_straight_through_single_path_and_derived_network_agree_bitwise(
    supernet: Supernet, tokens: Tensor, path: list[int]
) -> None:
    soft = torch.full((3, K), 0.1)
    for index, k in enumerate(path):
        soft[index, k] = 0.6
    hard = straight_through(soft)
    expected = derived(supernet, path)(tokens)
    assert torch.equal(logits(supernet, supernet.forward_mixture(tokens, hard, path)), expected)
    assert torch.equal(logits(supernet, supernet.forward_mixture(tokens, hard)), expected)
    assert torch.equal(logits(supernet, supernet.forward_path(tokens, path)), expected)
    assert torch.equal(
        logits(supernet, supernet.forward_path(tokens, path, path_factor(soft, torch.tensor(path)))), expected
    )


def test_all_identity_is_the_embedding(supernet: Supernet, tokens: Tensor) -> None:
    expected = supernet.backbone.head(supernet.backbone.embed(tokens))
    assert torch.equal(logits(supernet, supernet.forward_path(tokens, [IDENTITY] * 3)), expected)


def test_weights_of_candidates_not_chosen_do_not_matter_in_hard_mode(supernet: Supernet, tokens: Tensor) -> None:
    path = [0, 1, 3]
    hard = nn.functional.one_hot(torch.tensor(path), K).float()
    before = logits(supernet, supernet.forward_mixture(tokens, hard))
    with torch.no_grad():
        for index, slot in enumerate(supernet.slots):
            assert isinstance(slot, MixedBlock)
            for number, block in slot.blocks.items():
                if number != str(path[index]):
                    for parameter in block.parameters():
                        parameter.mul_(1.5)
    assert torch.equal(logits(supernet, supernet.forward_mixture(tokens, hard)), before)


# -- gradients with respect to alpha --------------------------------------------------------------------------------

TAU = 0.7


def loss_and_gradient(
    supernet: Supernet, tokens: Tensor, alpha: Tensor, noise: Tensor, estimator: str, tau: float = TAU
) -> tuple[Tensor, Tensor, list[int]]:
    """A loss linear in the logits, its gradient for alpha, and the drawn path."""
    alpha = alpha.detach().requires_grad_()
    soft = torch.softmax((alpha + noise) / tau, dim=-1)
    path: list[int] = soft.argmax(-1).tolist()
    if estimator == "soft":
        out = logits(supernet, supernet.forward_mixture(tokens, soft))
    elif estimator == "straight_through":
        out = logits(supernet, supernet.forward_mixture(tokens, straight_through(soft), path))
    else:
        out = logits(supernet, supernet.forward_path(tokens, path, path_factor(soft, torch.tensor(path))))
    direction = torch.randn(out.shape, generator=seeded(8)).to(out.dtype)
    loss = (out * direction).sum()
    (gradient,) = torch.autograd.grad(loss, alpha)
    return loss.detach(), gradient, path


def inputs(seed: int) -> dict[str, Any]:
    noise = gumbel(torch.rand(3, K, generator=seeded(seed)))
    return {"alpha": torch.randn(3, K, generator=seeded(seed + 1)) * 0.3, "noise": noise}


def test_soft_gradient_agrees_with_finite_differences(supernet: Supernet, tokens: Tensor) -> None:
    supernet = supernet.double()
    given = {name: value.double() for name, value in inputs(10).items()}
    _, gradient, _ = loss_and_gradient(supernet, tokens, **given, estimator="soft")
    step = 1e-5
    for slot in range(3):
        for k in range(K):
            shift = torch.zeros(3, K, dtype=torch.float64)
            shift[slot, k] = step
            up, _, _ = loss_and_gradient(supernet, tokens, given["alpha"] + shift, given["noise"], "soft")
            down, _, _ = loss_and_gradient(supernet, tokens, given["alpha"] - shift, given["noise"], "soft")
            assert float(gradient[slot, k]) == pytest.approx(float((up - down) / (2 * step)), rel=1e-3, abs=1e-6)


@pytest.mark.parametrize("estimator", ["soft", "straight_through", "single_path"])
def test_gradient_is_the_closed_form_for_a_linear_loss(estimator: str) -> None:
    """c_b = <dL/dy, F_b(x)>; section 2.4's formulas, for one slot whose output is the loss's argument."""
    torch.manual_seed(1)
    slot = MixedBlock(SPACE, CLASSES).double()
    x = torch.randn(2, 8, 16, dtype=torch.float64, generator=seeded(11))
    direction = torch.randn(2, 8, 16, dtype=torch.float64, generator=seeded(12))
    context = Supernet(SPACE, 11, CLASSES).backbone.context(torch.zeros(2, 8, dtype=torch.long))
    normed = slot.norm(x)
    products = torch.stack(
        [
            torch.zeros((), dtype=torch.float64)
            if k == IDENTITY
            else (direction * slot.blocks[str(k)](normed, context)).sum()
            for k in range(K)
        ]
    )
    for seed in range(20, 30):
        alpha = torch.randn(K, dtype=torch.float64, generator=seeded(seed)).requires_grad_()
        soft = torch.softmax((alpha + gumbel(torch.rand(K, generator=seeded(seed + 50)))) / TAU, dim=-1)
        k = int(soft.argmax())
        if estimator == "soft":
            out = slot.mixture(x, context, soft)
        elif estimator == "straight_through":
            out = slot.mixture(x, context, straight_through(soft[None])[0], k)
        else:
            out = slot.one(x, context, k, path_factor(soft[None], torch.tensor([k]))[0])
        loss = (out * direction).sum()
        if estimator == "single_path":
            if k == IDENTITY:  # identity adds nothing, so its factor multiplies nothing: no gradient at all
                assert not loss.requires_grad or torch.autograd.grad(loss, alpha, allow_unused=True)[0] is None
                continue
            expected = products[k] * soft[k] * (nn.functional.one_hot(torch.tensor(k), K) - soft) / TAU
        else:
            expected = soft * (products - (soft * products).sum()) / TAU
        (gradient,) = torch.autograd.grad(loss, alpha)
        torch.testing.assert_close(gradient, expected.detach(), atol=1e-9, rtol=1e-7)


@pytest.mark.parametrize("estimator", ["soft", "straight_through", "single_path"])
def test_gradient_of_each_row_sums_to_zero(supernet: Supernet, tokens: Tensor, estimator: str) -> None:
    for seed in range(5):
        loss, gradient, _ = loss_and_gradient(supernet.double(), tokens, **inputs(seed), estimator=estimator)
        torch.testing.assert_close(gradient.sum(-1), torch.zeros(3), atol=1e-6 * max(1.0, float(loss.abs())), rtol=0)


@pytest.mark.parametrize("tau", [0.3, 0.7, 5.0])
@pytest.mark.parametrize("estimator", ["soft", "straight_through"])
def test_every_alpha_gets_a_gradient(supernet: Supernet, tokens: Tensor, estimator: str, tau: float) -> None:
    noise = inputs(3)["noise"]
    _, gradient, _ = loss_and_gradient(supernet, tokens, torch.zeros(3, K), noise, estimator, tau)
    assert (gradient != 0).all()


@pytest.mark.parametrize("tau", [0.3, 0.7, 5.0])
def test_single_path_gives_a_gradient_to_whole_rows_unless_identity_was_drawn(
    supernet: Supernet, tokens: Tensor, tau: float
) -> None:
    """A drawn identity gives alpha no gradient: the bias of this estimator in the pre-norm form, as documented."""
    identities = 0
    for seed in range(12):
        noise = inputs(seed)["noise"]
        _, gradient, path = loss_and_gradient(supernet, tokens, torch.zeros(3, K), noise, "single_path", tau)
        for slot, k in enumerate(path):
            assert bool((gradient[slot] != 0).all()) == (k != IDENTITY)
            assert bool((gradient[slot] == 0).all()) == (k == IDENTITY)
            identities += k == IDENTITY
    assert identities > 0


def test_single_path_touches_only_the_chosen_candidates(supernet: Supernet, tokens: Tensor) -> None:
    path = [0, IDENTITY, 3]
    logits(supernet, supernet.forward_path(tokens, path)).sum().backward()
    for name, parameter in supernet.named_parameters():
        chosen = name.startswith("backbone.") or any(
            k != IDENTITY and (name.startswith((f"slots.{i}.norm.", f"slots.{i}.blocks.{k}.")))
            for i, k in enumerate(path)
        )
        assert (parameter.grad is not None) == chosen, name
