"""Retraining: paired data, resume with the same bits, results in the last checkpoint."""

import math
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from nas.architecture import Architecture, interleaved
from nas.config.request import SearchRequest
from nas.data.objectives import Batch
from nas.data.streams import HeldOut, Stream
from nas.errors import SearchFailed
from nas.heads import IGNORE
from nas.retrain import Retraining, build, confusion, load_network, read_result, scoring
from nas.training import Evaluated, evaluate, weight_step
from tests import tiny

REQUEST = tiny.request(retrain={"n_steps": 9, "n_seeds": 1, "test_windows": 8})


def make(labels: tuple[str, ...] = ("attention", "ffn"), request: SearchRequest = REQUEST) -> Retraining:
    architecture = Architecture(labels, request.space.candidates)
    return Retraining(request, architecture, parts=tiny.parts(request))


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
    assert result == run.result
    assert [each.length for each in result.lengths] == [4, 16, 32, 64]
    config = REQUEST.network_config(interleaved(REQUEST.space).labels, 256)
    network = load_network(path, config)
    again = evaluate(scoring(network), run.test, 4).windows.tolist()
    assert again == result.test_nats


def test_loss_falls_below_chance() -> None:
    request = tiny.request(method={"lr": 2e-2, "batch_size": 16}, retrain={"n_steps": 200})
    architecture = Architecture(("attention", "sgu"), request.space.candidates)
    first, *_, last = Retraining(request, architecture, parts=tiny.parts(request)).run()
    assert first.val_loss is not None
    assert last.val_loss is not None
    assert last.val_loss < 3.2 < first.val_loss  # ln 26 = 3.26 is guessing among the text's letters


@pytest.mark.parametrize(
    ("labels", "kind"),
    [(("attention", "ffn"), {}), (("attention", "ffn"), tiny.RECURRENT), (("sgu", "ffn"), tiny.MASKED)],
    ids=["plain", "memory", "masked"],
)
def test_a_stopped_and_resumed_retraining_has_the_same_bits(
    tmp_path: Path, labels: tuple[str, ...], kind: dict[str, Any]
) -> None:
    request = tiny.request(**kind | {"retrain": {**kind.get("retrain", {}), "n_steps": 9, "test_windows": 8}})
    undisturbed = make(labels, request)
    expected = [replace(record, tokens_per_s=None) for record in undisturbed.run()]
    stopped = make(labels, request)
    records = []
    for record in stopped.run():
        records.append(replace(record, tokens_per_s=None))
        if record.step == 4:
            stopped.save(tmp_path / "state.safetensors")
            break
    resumed = make(labels, request)
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
    lengths: list[set[int]] = []

    def parts_of(batch: Batch) -> set[int]:
        return set((torch.cat([batch.tokens, batch.targets]) // tiny.LETTERS).flatten().tolist())

    def reading(stream: Stream, following: Callable[[Stream], Batch] = Stream.next) -> Batch:
        batch = following(stream)
        learnt.update(parts_of(batch))
        return batch

    def evaluating(forward: Any, held_out: HeldOut, batch_size: int) -> Evaluated:
        evaluated.append(parts_of(held_out.batch))
        return evaluate(forward, held_out, batch_size)

    def at_lengths(forward: Any, held_out: HeldOut, batch_size: int) -> Evaluated:
        lengths.append(parts_of(held_out.batch))
        return evaluate(forward, held_out, batch_size)

    monkeypatch.setattr(Stream, "next", reading)
    monkeypatch.setattr("nas.retrain.evaluate", evaluating)
    monkeypatch.setattr("nas.lengths.evaluate", at_lengths)
    n_records = len(list(run.run()))
    assert learnt == {0, 1}
    assert evaluated == [{2}] * n_records + [{3}]
    assert lengths == [{3}] * 4


@pytest.mark.parametrize(
    ("labels", "kind"),
    [
        ((("attention", "ffn"), ("mgk", "identity")), {}),
        ((("attention", "ffn"), ("ffn", "identity")), tiny.RECURRENT),
        ((("sgu", "ffn"), ("ffn", "identity")), tiny.MASKED),
    ],
    ids=["plain", "memory", "masked"],
)
def test_architectures_of_one_seed_see_the_same_windows_and_masks(
    labels: tuple[tuple[str, ...], tuple[str, ...]], kind: dict[str, Any]
) -> None:
    one, other = (make(each, tiny.request(**kind)) for each in labels)
    list(one.run())
    list(other.run())
    pairs = [(one.stream.next(), other.stream.next()), (one.test.batch, other.test.batch)]
    for first, second in pairs:
        assert torch.equal(first.tokens, second.tokens)
        assert torch.equal(first.targets, second.targets)


def test_segments_with_memory_are_scored_as_their_text_at_once() -> None:
    """Memory that holds all of a row makes reading it segment by segment the same as reading it whole."""
    space = {**tiny.RECURRENT["space"], "max_len": 80, "memory_length": 64, "clamp_len": None, "same_length": False}
    request = tiny.request(space=space, task=tiny.RECURRENT["task"], retrain={"test_windows": 40})
    run = make(("attention", "ffn"), request)
    run.network.eval()
    assert run.test.segments == 5
    scored = evaluate(run.forward, run.test, 3).windows.reshape(8, 5)
    whole = Batch(run.test.batch.tokens.reshape(8, 80), run.test.batch.targets.reshape(8, 80))
    with torch.no_grad():
        nats, _ = run.forward(whole, None)
    # Sums in another order, float32.
    torch.testing.assert_close(scored, nats.reshape(8, 5, 16).mean(dim=2), atol=1e-5, rtol=0)


def test_a_step_leaves_the_inputs_of_its_segment_as_memory() -> None:
    request = tiny.request(**{**tiny.RECURRENT, "space": {**tiny.RECURRENT["space"], "dropout": 0.0}})
    run = make(("attention", "attention"), request)
    before, stream = deepcopy(run.network), deepcopy(run.stream)
    run.advance()
    assert run.stream.memory is not None
    hidden = before.backbone.embed(stream.next().tokens)
    torch.testing.assert_close(run.stream.memory[0], hidden, atol=0, rtol=0)


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


@pytest.mark.parametrize(("pooling", "causal"), [("mean", False), ("first", False), ("mean", True), ("none", True)])
@pytest.mark.parametrize("block", ["attention", "sgu", "toeplitz", "mgk"])
def test_counts_are_those_of_each_example_read_alone_without_padding(pooling: str, causal: bool, block: str) -> None:
    toeplitz = {"label": "toeplitz", "block": "sgu", "options": {"spatial": "toeplitz"}}
    request = tiny.request(
        space={
            "n_slots": 2, "d_model": 16, "n_heads": 2, "max_len": 16, "causal": causal,
            "positions": "rotary" if causal else "none", "backbone": {"pooling": pooling, "n_classes": 3},
            "candidates": ["attention", "ffn", "sgu", "mgk", toeplitz],
        },
        task={"objective": "token_classification" if pooling == "none" else "sequence_classification"},
    )  # fmt: skip
    network = build(request.network_config([block, block], 256)).eval()
    chance = torch.Generator().manual_seed(0)
    for parameter in network.parameters():  # as new, an SGU hardly looks at other tokens
        parameter.data.normal_(0, 0.5, generator=chance)
    sizes = [16, 5, 1, 9, 12, 2, 7]
    real = torch.arange(16) < torch.tensor(sizes)[:, None]
    tokens = torch.randint(256, real.shape, generator=chance)
    targets = torch.randint(3, real.shape if pooling == "none" else (len(sizes), 1), generator=chance)
    if pooling == "none":
        targets = targets.where(real, IGNORE)
    expected = torch.zeros(3, 3, dtype=torch.long)
    for row, size in enumerate(sizes):
        logits = network(tokens[row : row + 1, :size])[0]  # (size, 3), or (3,) of the sequence
        for own, answer in zip(targets[row].tolist(), logits.view(-1, 3).argmax(-1).tolist(), strict=False):
            expected[own, answer] += 1
    assert torch.equal(confusion(network, Batch(tokens, targets, real), batch_size=3), expected)
