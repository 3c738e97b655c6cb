"""The mixed block and the gradients of alpha, in both norm positions: par-search.md section 9, items 8-11, 13-16."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nas.blocks import block_classes
from nas.config.space import SearchSpace
from nas.gumbel import gumbel, path_factor, straight_through
from nas.network import Memory, Network
from nas.options import NetworkConfig, SlotConfig
from nas.supernet import MixedBlock, Supernet

V, T, D = 11, 8, 16
SPACES = {
    "pre": SearchSpace(n_slots=3, d_model=D, n_heads=2, max_len=T),
    "post": SearchSpace(n_slots=3, d_model=D, n_heads=2, max_len=T, norm_position="post"),
}
LABELS = SPACES["pre"].labels
CLASSES = block_classes(LABELS)
K = len(LABELS)
IDENTITY = LABELS.index("identity")


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def build(space: SearchSpace) -> Supernet:
    torch.manual_seed(0)
    net = Supernet(space, V, CLASSES)
    with torch.no_grad():  # the SGU's near-zero mixer is made visible
        for slot in net.slots:
            of(slot).blocks[str(LABELS.index("sgu"))].get_parameter("weight").normal_(std=0.3)
    return net.eval()


@pytest.fixture(params=SPACES)
def space(request: pytest.FixtureRequest) -> SearchSpace:
    return SPACES[request.param]


@pytest.fixture
def supernet(space: SearchSpace) -> Supernet:
    return build(space)


@pytest.fixture
def tokens() -> Tensor:
    return torch.randint(0, V, (2, T), generator=seeded(1))


def of(slot: nn.Module) -> MixedBlock:
    assert isinstance(slot, MixedBlock)
    return slot


def logits(supernet: Supernet, run: tuple[Tensor, Memory | None]) -> Tensor:
    return supernet.backbone.head(run[0])


def derived(supernet: Supernet, space: SearchSpace, path: list[int]) -> Network:
    """The concrete network that holds the supernet's own weights of this path."""
    slots = tuple(SlotConfig(space.candidates[k].block, space.candidates[k].options) for k in path)
    config = NetworkConfig(space.shape(), V, slots, space.norm, space.norm_position, space.backbone)
    network = Network(config, CLASSES)
    state = {name: value for name, value in supernet.state_dict().items() if name.startswith("backbone.")}
    for index, k in enumerate(path):
        for name, value in supernet.state_dict().items():
            if k != IDENTITY and name.startswith(f"slots.{index}.norm."):
                state[name] = value
            for own in ("block", "norm"):
                prefix = f"slots.{index}.{own}s.{k}."
                if name.startswith(prefix):
                    state[name.replace(prefix, f"slots.{index}.{own}.")] = value
    network.load_state_dict(state)
    return network.eval()


def parts(slot: MixedBlock, x: Tensor, supernet: Supernet) -> list[Tensor]:
    """What each weight of a slot multiplies: what the block adds in pre-norm, the whole candidate in post-norm."""
    context = supernet.backbone.context(torch.zeros(x.shape[:2], dtype=torch.long))
    found = []
    for k in range(K):
        if slot.norm is not None:
            found.append(torch.zeros_like(x) if k == IDENTITY else slot.blocks[str(k)](slot.norm(x), context))
        else:
            found.append(x if k == IDENTITY else slot.norms[str(k)](x + slot.blocks[str(k)](x, context)))
    return found


def case(supernet: Supernet, seed: int) -> tuple[MixedBlock, Tensor, Any]:
    slot = of(supernet.slots[0])
    x = torch.randn(2, T, D, generator=seeded(seed)).to(next(supernet.parameters()).dtype)
    return slot, x, supernet.backbone.context(torch.zeros(2, T, dtype=torch.long))


@pytest.mark.parametrize("choice", range(K), ids=LABELS)
def test_one_hot_mixture_is_the_chosen_block_bitwise(supernet: Supernet, choice: int) -> None:
    slot, x, context = case(supernet, 2)
    weights = torch.zeros(K)
    weights[choice] = 1.0
    expected = parts(slot, x, supernet)[choice]
    if slot.norm is not None:
        expected = x + expected
    assert torch.equal(slot.mixture(x, context, weights), expected)
    assert torch.equal(slot.one(x, context, choice), expected)


def test_identity_returns_its_input_itself(supernet: Supernet) -> None:
    slot, x, context = case(supernet, 2)
    assert slot.one(x, context, IDENTITY) is x


def test_pre_norm_mixture_is_the_input_and_the_weighted_sum_behind_the_shared_norm() -> None:
    """Item 10."""
    supernet = build(SPACES["pre"]).double()
    slot, x, context = case(supernet, 3)
    weights = torch.softmax(torch.randn(K, generator=seeded(4)), dim=0).double()
    added = parts(slot, x, supernet)
    whole = sum(weights[k] * (x + added[k]) for k in range(K))  # sum_k m_k F_k, in which identity's F is x
    torch.testing.assert_close(slot.mixture(x, context, weights), whole)
    torch.testing.assert_close(x + sum(weights[k] * added[k] for k in range(K)), whole)


def test_post_norm_mixture_is_the_weighted_sum_of_candidates_each_with_its_own_norm() -> None:
    supernet = build(SPACES["post"]).double()
    slot, x, context = case(supernet, 3)
    assert sorted(slot.norms) == sorted(str(k) for k in range(K) if k != IDENTITY)
    with torch.no_grad():
        for parameter in slot.norms.parameters():  # fresh norms are equal
            parameter.add_(torch.randn(parameter.shape, generator=seeded(5)))
    weights = torch.softmax(torch.randn(K, generator=seeded(4)), dim=0).double()
    whole = sum(weights[k] * part for k, part in enumerate(parts(slot, x, supernet)))
    torch.testing.assert_close(slot.mixture(x, context, weights), whole)


@pytest.mark.parametrize("path", [[0, 1, 3], [4, 2, 2], [2, 2, 2], [3, 4, 0]])
def test_straight_through_single_path_and_derived_network_agree_bitwise(
    supernet: Supernet, space: SearchSpace, tokens: Tensor, path: list[int]
) -> None:
    soft = torch.full((3, K), 0.1)
    for index, k in enumerate(path):
        soft[index, k] = 0.6
    hard = straight_through(soft)
    expected = derived(supernet, space, path)(tokens)
    assert torch.equal(logits(supernet, supernet.forward_mixture(tokens, hard, path)), expected)
    assert torch.equal(logits(supernet, supernet.forward_mixture(tokens, hard)), expected)
    assert torch.equal(logits(supernet, supernet.forward_path(tokens, path)), expected)
    factors = path_factor(soft, torch.tensor(path))
    assert torch.equal(logits(supernet, supernet.forward_path(tokens, path, factors)), expected)


def test_all_identity_is_the_embedding(supernet: Supernet, tokens: Tensor) -> None:
    hidden, memory = supernet.forward_path(tokens, [IDENTITY] * 3)
    assert torch.equal(hidden, supernet.backbone.embed(tokens))
    assert memory is None


def test_weights_of_candidates_not_chosen_do_not_matter_in_hard_mode(supernet: Supernet, tokens: Tensor) -> None:
    path = [0, 1, 3]
    hard = F.one_hot(torch.tensor(path), K).float()
    before = logits(supernet, supernet.forward_mixture(tokens, hard))
    with torch.no_grad():
        for index, slot in enumerate(supernet.slots):
            for modules in (of(slot).blocks, of(slot).norms):
                for number, module in modules.items():
                    if number != str(path[index]):
                        for parameter in module.parameters():
                            parameter.mul_(1.5)
    assert torch.equal(logits(supernet, supernet.forward_mixture(tokens, hard)), before)


@pytest.mark.parametrize("norm_position", SPACES)
def test_dropout_is_on_what_each_candidate_adds_in_training_alone(norm_position: str) -> None:
    supernet = build(SPACES[norm_position].model_copy(update={"dropout": 0.5}))
    slot, x, context = case(supernet, 6)
    mgk = LABELS.index("mgk")
    quiet = slot.one(x, context, mgk)
    slot.train()
    torch.manual_seed(7)
    added = F.dropout(slot.blocks[str(mgk)](x if slot.norm is None else slot.norm(x), context), 0.5)
    torch.manual_seed(7)
    found = slot.one(x, context, mgk)
    torch.testing.assert_close(found, x + added if slot.norm is not None else slot.norms[str(mgk)](x + added))
    assert not torch.allclose(found, quiet)


def test_padding_reaches_the_candidates(supernet: Supernet, space: SearchSpace, tokens: Tensor) -> None:
    padding = torch.arange(T) >= torch.tensor([[3], [0]])  # to the left, where a causal attention would see it
    path = [0, 4, 1]
    hidden, _ = supernet.forward_path(tokens, path, key_padding=padding)
    assert torch.equal(hidden, derived(supernet, space, path).body(tokens, key_padding=padding)[0])
    mixed, _ = supernet.forward_mixture(tokens, F.one_hot(torch.tensor(path), K).float(), key_padding=padding)
    assert torch.equal(mixed, hidden)
    assert not torch.allclose(hidden[0, 3:], supernet.forward_path(tokens, path)[0][0, 3:])


def test_labels_may_be_what_no_module_can_be_called(tokens: Tensor) -> None:
    candidates = [{"label": label, "block": "ffn"} for label in ("v1.0", "keys", "train")]
    space = SearchSpace.model_validate(
        {"n_slots": 1, "d_model": D, "n_heads": 2, "max_len": T, "candidates": candidates}
    )
    supernet = Supernet(space, V, CLASSES)
    assert supernet.forward_path(tokens, [2])[0].shape == (2, T, D)


# -- memory ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def remembering(space: SearchSpace) -> Supernet:
    return build(space.model_copy(update={"memory_length": 5}))


def test_every_slot_keeps_its_last_inputs_whatever_was_chosen(remembering: Supernet, tokens: Tensor) -> None:
    """Another candidate may be drawn for the next segment, and will want them."""
    inputs: list[Tensor] = []
    for slot in remembering.slots:
        one = of(slot).one
        slot.one = lambda x, *args, one=one: (inputs.append(x), one(x, *args))[1]  # type: ignore[assignment]
    _, memory = remembering.forward_path(tokens[:, :3], [IDENTITY, 1, 0])
    _, memory = remembering.forward_path(tokens[:, 3:], [0, IDENTITY, 1], memory=memory)
    assert memory is not None
    for slot, kept in enumerate(memory):
        assert kept is not None
        assert not kept.requires_grad
        assert torch.equal(kept, torch.cat([inputs[slot], inputs[3 + slot]], dim=1)[:, -5:])


def test_mixture_path_and_derived_network_agree_over_segments(
    remembering: Supernet, space: SearchSpace, tokens: Tensor
) -> None:
    path = [0, 1, 0]
    network = derived(remembering, space.model_copy(update={"memory_length": 5}), path)
    hard = F.one_hot(torch.tensor(path), K).float()
    memory, mixed, own = None, None, None
    for segment in tokens.split([2, 2, 4], dim=1):
        expected, own = network.body(segment, own)
        hidden, memory = remembering.forward_path(segment, path, memory=memory)
        mixture, mixed = remembering.forward_mixture(segment, hard, path, memory=mixed)
        assert torch.equal(hidden, expected)
        assert torch.equal(mixture, expected)
    assert own is not None
    assert memory is not None
    assert [each is None for each in own] == [False, True, False]  # the derived network keeps what it reads
    assert all(kept is not None for kept in memory)


def test_memory_changes_what_attention_gives_and_no_gradient_reaches_it(remembering: Supernet, tokens: Tensor) -> None:
    """Item 18."""
    _, memory = remembering.forward_path(tokens[:, :4], [0, 0, 0])
    alone, _ = remembering.forward_path(tokens[:, 4:], [0, 0, 0])
    behind, kept = remembering.forward_path(tokens[:, 4:], [0, 0, 0], memory=memory)
    assert not torch.allclose(alone, behind)
    assert behind.requires_grad
    assert kept is not None
    assert not any(each.requires_grad for each in kept if each is not None)


def test_space_whose_candidates_read_no_memory_keeps_none(tokens: Tensor) -> None:
    space = SearchSpace.model_validate(
        {"n_slots": 2, "d_model": D, "n_heads": 2, "max_len": T, "memory_length": 5, "candidates": ["ffn", "identity"]}
    )
    assert Supernet(space, V, CLASSES).forward_path(tokens, [0, 1])[1] == [None, None]


def test_padding_leaves_no_memory(remembering: Supernet, tokens: Tensor) -> None:
    padding = torch.ones(2, T, dtype=torch.bool)
    assert remembering.forward_path(tokens, [0, 1, 0], key_padding=padding)[1] is None
    assert remembering.forward_mixture(tokens, torch.full((3, K), 1 / K), key_padding=padding)[1] is None


def test_memory_of_another_depth_and_long_inputs_are_refused(remembering: Supernet, tokens: Tensor) -> None:
    with pytest.raises(ValueError, match=r"^memory has 2 entries; the network has 3 slots$"):
        remembering.forward_path(tokens, [0, 0, 0], memory=[None, None])
    with pytest.raises(ValueError, match=r"^memory is given, but the network's memory_length is 0; it must be None$"):
        build(SPACES["pre"]).forward_path(tokens, [0, 0, 0], memory=[None, None, None])
    assert remembering.longest == T  # the free SGU's
    with pytest.raises(ValueError, match=r"^input has 9 tokens; this network takes at most 8$"):
        remembering.forward_path(torch.zeros(1, 9, dtype=torch.long), [0, 0, 0])


# -- gradients with respect to alpha --------------------------------------------------------------------------------

TAU = 0.7
ESTIMATORS = ["soft", "straight_through", "single_path"]


def loss_and_gradient(
    supernet: Supernet, tokens: Tensor, alpha: Tensor, noise: Tensor, estimator: str, tau: float = TAU
) -> tuple[Tensor, Tensor, list[int]]:
    """A loss linear in the logits, its gradient for alpha, and the drawn path."""
    alpha = alpha.detach().requires_grad_()
    soft = torch.softmax((alpha + noise) / tau, dim=-1)
    path: list[int] = soft.argmax(-1).tolist()
    if estimator == "soft":
        run = supernet.forward_mixture(tokens, soft)
    elif estimator == "straight_through":
        run = supernet.forward_mixture(tokens, straight_through(soft), path)
    else:
        run = supernet.forward_path(tokens, path, path_factor(soft, torch.tensor(path)))
    out = logits(supernet, run)
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


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_gradient_is_the_closed_form_for_a_linear_loss(supernet: Supernet, estimator: str) -> None:
    """c_b = <dL/dy, F_b(x)>; section 2.4's formulas, for one slot whose output is the loss's argument."""
    supernet = supernet.double()
    slot, x, context = case(supernet, 11)
    direction = torch.randn(2, T, D, dtype=torch.float64, generator=seeded(12))
    products = torch.stack([(direction * part).sum() for part in parts(slot, x, supernet)]).detach()
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
            if k == IDENTITY and slot.norm is not None:  # it adds nothing, so its factor multiplies nothing
                assert not loss.requires_grad
                continue
            expected = products[k] * soft[k] * (F.one_hot(torch.tensor(k), K) - soft) / TAU
        else:
            expected = soft * (products - (soft * products).sum()) / TAU
        (gradient,) = torch.autograd.grad(loss, alpha)
        torch.testing.assert_close(gradient, expected.detach(), atol=1e-9, rtol=1e-7)


@pytest.mark.parametrize("estimator", ESTIMATORS)
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
def test_single_path_gives_a_gradient_to_whole_rows_save_for_an_identity_in_pre_norm(
    supernet: Supernet, space: SearchSpace, tokens: Tensor, tau: float
) -> None:
    """In pre-norm a drawn identity gives alpha no gradient: the bias of this estimator there, as documented."""
    identities = 0
    for seed in range(12):
        noise = inputs(seed)["noise"]
        _, gradient, path = loss_and_gradient(supernet, tokens, torch.zeros(3, K), noise, "single_path", tau)
        for slot, k in enumerate(path):
            learns = space.norm_position == "post" or k != IDENTITY
            assert bool((gradient[slot] != 0).all()) == learns
            assert bool((gradient[slot] == 0).all()) != learns
            identities += k == IDENTITY
    assert identities > 0


def test_single_path_touches_only_the_chosen_candidates(supernet: Supernet, tokens: Tensor) -> None:
    path = [0, IDENTITY, 3]
    logits(supernet, supernet.forward_path(tokens, path)).sum().backward()
    for name, parameter in supernet.named_parameters():
        own = tuple(
            f"slots.{i}.{part}."
            for i, k in enumerate(path)
            if k != IDENTITY
            for part in ("norm", f"norms.{k}", f"blocks.{k}")
        )
        assert (parameter.grad is not None) == name.startswith(("backbone.", *own)), name


def test_straight_through_keeps_the_gradient_of_the_chosen_path_alone(supernet: Supernet, tokens: Tensor) -> None:
    """Others run without a graph: their weights get none, and those of the path what the path alone would give."""
    path = [0, 1, 4]
    one_hot = F.one_hot(torch.tensor(path), K).float()
    logits(supernet, supernet.forward_mixture(tokens, one_hot, path)).square().sum().backward()
    mixed = {name: each.grad for name, each in supernet.named_parameters() if each.grad is not None}
    supernet.zero_grad()
    logits(supernet, supernet.forward_path(tokens, path)).square().sum().backward()
    alone = {name: each.grad for name, each in supernet.named_parameters() if each.grad is not None}
    assert mixed.keys() == alone.keys()
    torch.testing.assert_close(mixed, alone)
