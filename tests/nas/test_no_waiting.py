"""Weight and alpha steps ask a device for nothing but alpha's gradient: each such read waits for all queued before it.

Without a GPU: a dispatch mode follows what would be there, the weights, the batches that were moved and all that is
computed of them, and lists whatever reads a number of it, or how many there are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from nas.architecture import Architecture
from nas.config.request import SearchRequest
from nas.data import objectives
from nas.data.examples import Examples
from nas.data.objectives import Batch
from nas.data.parts import Parts
from nas.heads import IGNORE
from nas.retrain import Retraining, build
from nas.search import Search
from tests import tiny

# Of a device's numbers: one of them, or how many are not zero, which indexing by a mask asks too.
READS = ("_local_scalar_dense", "nonzero", "masked_select", "is_nonzero", "equal.default", "unique")


class Device(TorchDispatchMode):
    """Storages that would be on a device, kept alive so that none is taken for another."""

    def __init__(self) -> None:
        super().__init__()
        self.storages: dict[int, object] = {}
        self.reads: list[str] = []

    def add(self, tensor: Tensor) -> None:
        storage = tensor.untyped_storage()
        self.storages[storage._cdata] = storage

    def holds(self, tensor: Tensor) -> bool:
        return tensor.untyped_storage()._cdata in self.storages

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = [each for each in tree_leaves((args, kwargs)) if isinstance(each, Tensor)]
        inside = any(self.holds(each) for each in given)
        name = str(func)
        masked = name.startswith("aten.index") and any(each.dtype == torch.bool for each in given[1:])
        if inside and (masked or any(read in name for read in READS)):
            self.reads.append(name)
        found = func(*args, **(kwargs or {}))
        for each in tree_leaves(found) if inside else ():
            if isinstance(each, Tensor):
                self.add(each)
        return found


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Device:
    """Batches are moved onto it, and alpha's gradient comes back, the one read that there is."""
    device = Device()

    def moved(tensor: Tensor, _: object) -> Tensor:
        copy = tensor.clone()
        device.add(copy)
        return copy

    def copied(self: Search, loss: Any, read: Callable[..., Tensor] = Search._alpha_gradient) -> Tensor:
        return torch.tensor(read(self, loss).numpy())

    monkeypatch.setattr(objectives, "moved", moved)
    monkeypatch.setattr(Search, "_alpha_gradient", copied)
    return device


def documents(pooling: str) -> tuple[SearchRequest, Parts]:
    """Labelled: words where nothing is pooled, else whole documents."""
    of_words = pooling == "none"
    request = tiny.request(
        space={
            "n_slots": 2, "d_model": 16, "n_heads": 2, "max_len": 16, "causal": False,
            "candidates": ["attention", "ffn", "mgk", "identity"], "backbone": {"pooling": pooling, "n_classes": 3},
        },
        task={"objective": "token_classification" if of_words else "sequence_classification", "train_length": 16},
    )  # fmt: skip
    chance = np.random.default_rng(0)
    sizes = chance.integers(2, 40, 12)
    ids = chance.integers(1, 256, int(sizes.sum())).astype(np.uint8)
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.uint64)
    labels = chance.integers(0, 3, len(ids) if of_words else 12).astype(np.int32)
    return request, Parts(*[Examples(ids, starts, labels, 0, 0, of_words)] * 5)


def texts(**overrides: Any) -> tuple[SearchRequest, Parts]:
    request = tiny.request(**overrides)
    return request, tiny.parts(request)


KINDS: dict[str, Callable[[], tuple[SearchRequest, Parts]]] = {
    "causal": texts,
    "masked": lambda: texts(**tiny.MASKED),
    "memory": lambda: texts(**tiny.RECURRENT),
    "words": lambda: documents("none"),
    "documents": lambda: documents("mean"),
}


@pytest.mark.parametrize("micro_batch", [None, 3])
@pytest.mark.parametrize("estimator", ["straight_through", "soft", "two_path", "single_path"])
@pytest.mark.parametrize("kind", KINDS)
def test_steps_of_a_search_read_nothing(device: Device, kind: str, estimator: str, micro_batch: int | None) -> None:
    request, parts = KINDS[kind]()
    steps = {"n_steps": 1000, "warmup_share": 0.0, "settle_share": 0.0, "alpha_share": 0.5}
    method = request.method.model_copy(update={**steps, "alpha_estimator": estimator, "micro_batch": micro_batch})
    request = request.model_copy(update={"method": method})
    search = Search(request, parts=parts, table=tiny.table(request.space, request.task.serve[0]))
    for each in search.weights.values():
        device.add(each)
    with device:
        for _ in range(4):
            search.advance()
    assert device.reads == []
    assert search.alphas.n_updates == 4
    assert device.holds(search._losses[-1])  # what is read at the next report was followed to here
    with device:
        search.record(tokens_per_s=None, last=False)
    assert device.reads


@pytest.mark.parametrize("taught", [False, True], ids=["alone", "from a teacher"])
@pytest.mark.parametrize("kind", KINDS)
def test_steps_of_a_retraining_read_nothing(device: Device, kind: str, taught: bool) -> None:
    request, parts = KINDS[kind]()
    if taught:
        retrain = {**request.retrain.model_dump(), "distil": {"weight": 0.5}}
        request = request.model_copy(update={"retrain": type(request.retrain).model_validate(retrain)})
    architecture = Architecture(("ffn", "ffn"), request.space.candidates)
    teacher = build(request.network_config(architecture.labels, request.task.vocab_size)) if taught else None
    run = Retraining(request, architecture, parts=parts, teacher=teacher)
    for each in [*run.weights.values(), *(teacher.parameters() if teacher is not None else ())]:
        device.add(each)
    with device:
        for _ in range(2):
            run.advance()
    assert device.reads == []
    assert device.holds(run._losses[-1])


@pytest.mark.parametrize("n_scored", [0, 5, 12])
def test_a_batch_that_was_moved_knows_what_is_scored_of_all_its_rows(n_scored: int) -> None:
    """`meta` has no numbers to read."""
    targets = torch.full((3, 4), IGNORE)
    targets.view(-1)[torch.randperm(12, generator=torch.Generator().manual_seed(0))[:n_scored]] = 1
    whole = Batch(torch.zeros(3, 4, dtype=torch.long), targets)
    for rows in (slice(0, 3), slice(1, 3), torch.tensor([2, 0])):
        expected = (targets[rows].flatten() != IGNORE).nonzero()[:, 0]
        assert torch.equal(whole.rows(rows).places, expected)
        there = whole.to("meta").rows(rows)
        assert there.places.device.type == "meta"
        assert there.places.shape == expected.shape
