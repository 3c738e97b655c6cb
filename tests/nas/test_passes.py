"""A batch in passes of some rows, and under autocast: the same loss and gradients, less memory, fewer bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from nas.allocations import peak_bytes
from nas.architecture import Architecture
from nas.config.method import Method
from nas.config.task import DataSizes
from nas.data.objectives import Batch
from nas.data.streams import Stream
from nas.heads import IGNORE
from nas.network import Memory
from nas.prune import Pruning
from nas.retrain import Retraining
from nas.search import Search
from nas.training import loss_parts, weight_step
from tests import tiny

ALPHA_ESTIMATORS = ("soft", "straight_through", "single_path", "two_path")


def make(micro_batch: int | None, overrides: dict[str, Any] | None = None, **method: Any) -> Search:
    overrides = overrides or {}
    method = {**overrides.get("method", {}), "micro_batch": micro_batch, "warmup_share": 0, **method}
    request = tiny.request(**{**overrides, "method": method})
    return Search(
        request.resolve({}, 0), parts=tiny.parts(request), table=tiny.table(request.space, request.task.serve[0])
    )


def gradients(search: Search) -> tuple[float, dict[str, Tensor], Memory | None]:
    """Of one batch on a fixed path; and the memory that it leaves."""
    stream = search.streams["weight_data"]
    path = [0] * search.space.n_slots
    total = 0.0
    for _ in range(2):  # the second reads the memory of the first
        search.supernet.zero_grad()
        total = 0.0
        for loss in search.loss_parts(search.path_nats(path), stream.next(), stream):
            torch.autograd.backward(loss)
            total += float(loss.detach())
    found = {name: each.grad for name, each in search.weights.items() if each.grad is not None}
    return total, found, stream.memory


RECURRENT = {**tiny.RECURRENT, "space": {**tiny.RECURRENT["space"], "dropout": 0.0}}


@pytest.mark.parametrize("size", [1, 3, 4, 9])
@pytest.mark.parametrize("overrides", [{}, RECURRENT], ids=["plain", "with memory"])
def test_passes_add_up_to_the_whole_batch(overrides: dict[str, Any], size: int) -> None:
    """To rounding: sums are taken in another order."""
    loss, found, memory = gradients(make(size, overrides))
    whole_loss, whole, whole_memory = gradients(make(None, overrides))
    assert loss == pytest.approx(whole_loss, abs=1e-6)
    assert found.keys() == whole.keys()
    torch.testing.assert_close(found, whole, atol=1e-6, rtol=1e-4)
    assert (memory is None) == (whole_memory is None) == (not overrides)
    torch.testing.assert_close(memory or [], whole_memory or [], atol=1e-6, rtol=1e-4)


@pytest.mark.parametrize("estimator", ALPHA_ESTIMATORS)
def test_alpha_steps_make_one_draw_for_all_passes(estimator: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for size in (1, None):
        search = make(size, alpha_estimator=estimator, alpha_draws=2)
        monkeypatch.setattr(search.alphas, "update", lambda data, _: found.append(data))
        search._alpha_step()
        after = search.generators["noise"].get_state()
        found.append(after)
    torch.testing.assert_close(found[0], found[2], atol=1e-6, rtol=1e-4)
    assert torch.equal(found[1], found[3])
    assert found[0].abs().max() > 0


def test_each_scored_token_counts_the_same_in_whatever_pass_it_is() -> None:
    """Rows with one, three and no scored token, of a model that is one number."""
    weight = torch.zeros(1, requires_grad=True)
    targets = torch.tensor([[5, IGNORE, IGNORE], [1, 2, 3], [IGNORE] * 3])
    batch = Batch(torch.zeros(3, 3, dtype=torch.long), targets)
    search = make(None)

    def forward(part: Batch, memory: Memory | None) -> tuple[Tensor, Memory | None]:
        return weight * part.targets * (part.targets != IGNORE), memory

    for size in (1, 2, 3):
        losses = loss_parts(
            forward,
            batch,
            Stream(search.streams["weight_data"].part, search.request, torch.Generator(), "cpu"),
            method=Method(micro_batch=size),
            dropout=torch.Generator(),
            device="cpu",
        )
        (found,) = torch.autograd.grad(sum(losses, torch.zeros(())), weight)
        assert float(found) == pytest.approx((5 + 1 + 2 + 3) / 4)


def test_only_one_pass_has_its_activations_in_memory() -> None:
    peaks = {}
    for size in (2, 16):
        search = make(size, {"space": {"max_len": 64}, "task": {"train_length": 64}}, batch_size=16)
        search.advance()
        peaks[size] = peak_bytes(search.advance)[0]
    assert peaks[2] < 0.4 * peaks[16]


def test_a_report_scores_as_many_windows_at_once_as_a_pass_has() -> None:
    """A head over 20,000 tokens is what it holds: it takes the memory of its rows."""
    peaks = {}
    for size in (2, 16):
        request = tiny.request(
            space={"candidates": ["attention", "ffn"]},
            method={"micro_batch": size, "batch_size": 16, "eval_windows": 16, "prune_windows": 16, "prune_steps": 8},
        ).resolve({}, 0)
        request = request.with_data("0" * 64, DataSizes(vocab_size=20_000))
        parts = tiny.parts(request)
        search = Search(request, parts=parts, table=tiny.table(request.space, request.task.serve[0]))
        run = Retraining(request, Architecture(("ffn", "ffn"), request.space.candidates), parts=parts)
        search.advance()
        pruning = Pruning(search, [0, 0])
        looks: dict[str, Callable[[], object]] = {
            "report": lambda each=search: each.record(tokens_per_s=None, last=False),  # type: ignore[misc]
            "comparison": lambda each=pruning: each._losses([0, 0]),  # type: ignore[misc]
            "retraining": lambda each=run: each.record(tokens_per_s=None, last=True),  # type: ignore[misc]
        }
        peaks[size] = {name: peak_bytes(look)[0] for name, look in looks.items()}
    for name, peak in peaks[2].items():  # of a retraining, one window of the longest length has four windows' tokens
        assert peak < 0.3 * peaks[16][name], name


@pytest.mark.parametrize("overrides", [{}, RECURRENT], ids=["plain", "with memory"])
def test_windows_that_are_scored_in_passes_lose_what_they_lose_together(overrides: dict[str, Any]) -> None:
    """To rounding: sums are taken in another order."""
    losses = []
    for size in (1, 3, None):
        search = make(size, overrides, eval_windows=8)
        search.supernet.eval()
        losses.append(search.losses(search.path_nats([0] * search.space.n_slots)))
    torch.testing.assert_close(losses[0], losses[2], atol=1e-6, rtol=1e-6)
    torch.testing.assert_close(losses[1], losses[2], atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("overrides", [{}, RECURRENT], ids=["plain", "with memory"])
def test_bfloat16_is_near_float32_and_leaves_weights_and_alpha_in_it(overrides: dict[str, Any]) -> None:
    """5%: products have 8 bits, and a tiny network averages few of them."""
    loss, found, _ = gradients(make(None, overrides, precision="bfloat16"))
    whole_loss, whole, _ = gradients(make(None, overrides))
    assert loss == pytest.approx(whole_loss, rel=0.01)
    assert all(each.dtype == torch.float32 for each in found.values())
    flat, whole_flat = (torch.cat([each.flatten() for each in grads.values()]) for grads in (found, whole))
    assert 0 < float((flat - whole_flat).norm() / whole_flat.norm()) < 0.05


@pytest.mark.parametrize("estimator", ALPHA_ESTIMATORS)
def test_alpha_learns_in_float32_from_a_network_in_bfloat16(estimator: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = {}
    for precision in ("bfloat16", "float32"):
        search = make(None, alpha_estimator=estimator, precision=precision)
        monkeypatch.setattr(search.alphas, "update", lambda data, _, at=precision: found.update({at: data}))
        search._alpha_step()
    assert found["bfloat16"].dtype == torch.float32
    assert not torch.equal(found["bfloat16"], found["float32"])
    assert F.cosine_similarity(found["bfloat16"].flatten(), found["float32"].flatten(), dim=0) > 0.99


def test_retraining_goes_by_passes_and_precision_too() -> None:
    losses = {}
    for name, method in {"whole": {}, "passes": {"micro_batch": 1}, "bfloat16": {"precision": "bfloat16"}}.items():
        request = tiny.request(method=method).resolve({}, 0)
        run = Retraining(
            request, Architecture(("attention", "ffn"), request.space.candidates), parts=tiny.parts(request)
        )
        run.advance()
        losses[name] = run.record(tokens_per_s=None, last=False).train_loss
    assert losses["passes"] == pytest.approx(losses["whole"], abs=1e-6)
    assert losses["bfloat16"] == pytest.approx(losses["whole"], rel=0.01)


def test_a_weight_step_returns_the_sum_of_its_parts() -> None:
    weight = torch.nn.Parameter(torch.ones(2))
    optimiser = torch.optim.SGD([weight])
    loss = weight_step((weight[k] * (k + 1) for k in range(2)), optimiser, lr=1.0, grad_clip=100.0)
    assert float(loss) == 3
    assert not loss.requires_grad
    torch.testing.assert_close(weight.detach(), torch.tensor([0.0, -1.0]))
