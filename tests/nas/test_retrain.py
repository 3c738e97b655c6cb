"""Retraining: paired data, resume with the same bits, results in the last checkpoint."""

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from nas.architecture import Architecture, interleaved
from nas.data.objectives import Batch
from nas.data.streams import HeldOut, Stream
from nas.errors import SearchFailed
from nas.retrain import Retraining, build, load_network, read_result, scoring
from nas.training import evaluate, weight_step
from tests import tiny

REQUEST = tiny.request(retrain={"n_steps": 9, "n_seeds": 1, "test_windows": 8})


def make(labels: tuple[str, ...] = ("attention", "ffn")) -> Retraining:
    architecture = Architecture(labels, REQUEST.space.candidates)
    return Retraining(REQUEST, architecture, parts=tiny.parts(REQUEST))


def test_result_is_in_the_last_checkpoint_and_the_network_reloads(tmp_path: Path) -> None:
    run = make()
    records = list(run.run())
    path = tmp_path / "state.safetensors"
    run.save(path)
    assert [record.step for record in records] == [0, 2, 4, 6, 8, 9]
    assert records[-1].last
    result = read_result(path)
    assert result.val_loss == records[-1].val_loss
    assert len(result.test_nats) == 8
    config = REQUEST.network_config(interleaved(REQUEST.space).labels, 256)
    network = load_network(path, config)
    again = evaluate(scoring(network), run.test, 4).tolist()
    assert again == result.test_nats


def test_loss_falls_below_chance() -> None:
    request = tiny.request(method={"lr": 2e-2, "batch_size": 16}, retrain={"n_steps": 200})
    architecture = Architecture(("attention", "sgu"), request.space.candidates)
    first, *_, last = Retraining(request, architecture, parts=tiny.parts(request)).run()
    assert first.val_loss is not None
    assert last.val_loss is not None
    assert last.val_loss < 3.2 < first.val_loss  # ln 26 = 3.26 is guessing among the text's letters


def test_a_stopped_and_resumed_retraining_has_the_same_bits(tmp_path: Path) -> None:
    undisturbed = make()
    expected = [replace(record, tokens_per_s=None) for record in undisturbed.run()]
    stopped = make()
    records = []
    for record in stopped.run():
        records.append(replace(record, tokens_per_s=None))
        if record.step == 4:
            stopped.save(tmp_path / "state.safetensors")
            break
    resumed = make()
    resumed.load(tmp_path / "state.safetensors")
    records += [replace(record, tokens_per_s=None) for record in resumed.run()]
    assert records == expected
    assert all(torch.equal(parameter, undisturbed.weights[name]) for name, parameter in resumed.weights.items())


def test_it_learns_on_weights_and_alpha_is_watched_on_validation_and_scored_once_on_test(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = Retraining(REQUEST, interleaved(REQUEST.space), parts=tiny.lettered_parts(REQUEST))
    learnt: set[int] = set()
    evaluated: list[set[int]] = []

    def parts_of(batch: Batch) -> set[int]:
        return set((torch.cat([batch.tokens, batch.targets]) // tiny.LETTERS).flatten().tolist())

    def reading(stream: Stream, following: Callable[[Stream], Batch] = Stream.next) -> Batch:
        batch = following(stream)
        learnt.update(parts_of(batch))
        return batch

    def evaluating(forward: Any, held_out: HeldOut, batch_size: int) -> torch.Tensor:
        evaluated.append(parts_of(held_out.batch))
        return evaluate(forward, held_out, batch_size)

    monkeypatch.setattr(Stream, "next", reading)
    monkeypatch.setattr("nas.retrain.evaluate", evaluating)
    n_records = len(list(run.run()))
    assert learnt == {0, 1}
    assert evaluated == [{2}] * n_records + [{3}]


def test_architectures_of_one_seed_see_the_same_windows() -> None:
    one, other = make(("attention", "ffn")), make(("mgk", "identity"))
    list(one.run())
    list(other.run())
    first, second = one.stream.next(), other.stream.next()
    assert torch.equal(first.tokens, second.tokens)
    assert torch.equal(first.targets, second.targets)


def test_a_network_of_identities_trains_too() -> None:
    *_, last = make(("identity", "identity")).run()
    assert last.val_loss is not None


def test_divergence_is_told_in_words() -> None:
    run = make()
    records = run.run()
    next(records)
    with torch.no_grad():
        run.weights["backbone.embedding.weight"].fill_(math.nan)
    with pytest.raises(SearchFailed, match="training diverged by step 2"):
        list(records)


def test_weights_broken_by_the_last_step_are_told_too(monkeypatch: pytest.MonkeyPatch) -> None:
    run = make()

    def breaking(*arguments: Any, **named: Any) -> torch.Tensor:
        loss = weight_step(*arguments, **named)
        if run.step == 8:
            with torch.no_grad():
                run.weights["backbone.proj_out.weight"].fill_(math.nan)
        return loss

    monkeypatch.setattr("nas.retrain.weight_step", breaking)
    with pytest.raises(SearchFailed, match="training diverged by step 9: the loss is nan"):
        list(run.run())


def test_build_resolves_every_block_of_the_config() -> None:
    config = REQUEST.network_config(("sgu", "mgk"), 256)
    assert build(config)(torch.zeros(1, 4, dtype=torch.long)).shape == (1, 4, 256)
