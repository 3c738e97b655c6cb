"""A warm start: the very weights of the supernet, in every kind of network, with an effect."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from nas.architecture import Architecture
from nas.config.request import SearchRequest
from nas.data.streams import held_out
from nas.errors import InvalidInput
from nas.retrain import Retraining
from nas.search import Search
from tests import tiny

KINDS = {
    "plain": ({}, ("mgk", "identity")),
    "post-norm with memory": (tiny.RECURRENT, ("attention", "ffn")),
    "masked": (tiny.MASKED, ("sgu", "ffn")),
}


def searched(request: SearchRequest, path: Path) -> Search:
    search = Search(request, parts=tiny.parts(request), table=tiny.table(request.space, request.task.serve[0]))
    for _ in search.run():
        pass
    search.save(path)
    return search


@pytest.mark.parametrize(("kind", "labels"), KINDS.values(), ids=KINDS)
def test_a_network_begins_as_the_supernets_path(kind: dict[str, Any], labels: tuple[str, ...], tmp_path: Path) -> None:
    request = tiny.request(**kind)
    path = tmp_path / "search.safetensors"
    search = searched(request, path)
    architecture = Architecture(labels, request.space.candidates)
    parts = tiny.parts(request)
    run = Retraining(request, architecture, parts=parts, supernet=path)
    batch = held_out(parts.validation, 4, request, "cpu").batch
    choices = [request.space.labels.index(label) for label in labels]
    search.supernet.eval()
    run.network.eval()
    with torch.no_grad():
        expected, _ = search.supernet.forward_path(batch.tokens, choices)
        hidden, _ = run.network.body(batch.tokens)
        assert torch.equal(hidden, expected)
        assert torch.equal(run.network.backbone.head(hidden), search.supernet.backbone.head(expected))


def test_it_learns_on_from_there_and_a_resumed_one_has_the_same_bits(tmp_path: Path) -> None:
    request = tiny.request(method={"n_steps": 60, "lr": 8e-3})
    path, half = tmp_path / "search.safetensors", tmp_path / "half.safetensors"
    searched(request, path)
    architecture = Architecture(("attention", "ffn"), request.space.candidates)
    parts = tiny.parts(request)
    cold = Retraining(request, architecture, parts=parts)
    warm = Retraining(request, architecture, parts=parts, supernet=path)
    before = next(cold.run()).val_loss, next(warm.run()).val_loss
    assert before[0] is not None
    assert before[1] is not None
    assert before[1] < before[0] - 0.1
    for record in warm.run():
        if record.step == 4:
            warm.save(half)
    resumed = Retraining(request, architecture, parts=parts)
    resumed.load(half)
    for _ in resumed.run():
        pass
    assert all(torch.equal(parameter, resumed.weights[name]) for name, parameter in warm.weights.items())


def test_a_checkpoint_of_another_version_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    request = tiny.request()
    path = tmp_path / "search.safetensors"
    searched(request, path)
    monkeypatch.setattr("nas.checkpoint.CHECKPOINT_FORMAT_VERSION", 99)
    architecture = Architecture(("attention", "ffn"), request.space.candidates)
    with pytest.raises(InvalidInput, match=r"^checkpoint has format_version \d+; this code reads 99: go on with"):
        Retraining(request, architecture, parts=tiny.parts(request), supernet=path)
