"""Scoring at other lengths: the same text at each, the same numbers by hand, and words where there is no number."""

from typing import Any

import numpy as np
import psutil
import pytest
import torch

from nas.architecture import Architecture
from nas.config.request import SearchRequest
from nas.config.task import DataSizes
from nas.data.examples import Examples
from nas.data.parts import Parts, split
from nas.data.synthetic.generated import synthetic_parts
from nas.lengths import LengthScore, no_room, score_lengths, spans
from nas.lengths import test_at as cut_at
from nas.retrain import Retraining
from tests import tiny

LONG = {"n_steps": 4, "n_seeds": 1, "test_windows": 8}


def trained(labels: tuple[str, ...], request: SearchRequest, parts: Parts | None = None) -> Retraining:
    architecture = Architecture(labels, request.space.candidates)
    run = Retraining(request, architecture, parts=parts or tiny.parts(request))
    list(run.run())
    run.network.eval()
    return run


def scores(run: Retraining) -> dict[int, LengthScore]:
    assert run.result is not None
    return {each.length: each for each in run.result.lengths}


@pytest.mark.parametrize("kind", [{}, tiny.RECURRENT], ids=["plain", "memory"])
def test_every_length_is_scored_on_the_same_tokens(kind: dict[str, Any]) -> None:
    request = tiny.request(**kind | {"retrain": {"test_windows": 40}})
    text = tiny.parts(request).test
    read = {}
    for length in request.task.scored_lengths:
        held = cut_at(request, text, length)
        assert not isinstance(held, str)
        assert held.batch.targets.shape[1] == length
        read[length] = held.batch.targets.flatten().tolist()
    assert list(read) == [4, 16, 32, 64]
    assert all(tokens == read[64] for tokens in read.values())
    assert len(read[64]) <= 40 * 16


def test_a_score_is_the_mean_of_the_windows_read_alone() -> None:
    run = trained(("attention", "ffn"), tiny.request(retrain=LONG))
    held = cut_at(run.request, run.test_part, 64)
    assert not isinstance(held, str)
    alone = []
    with torch.no_grad():
        for row in range(len(held.batch.tokens)):
            logits = run.network(held.batch.tokens[row : row + 1])[0]
            alone.append(torch.nn.functional.cross_entropy(logits, held.batch.targets[row], reduction="none"))
    found = scores(run)[64]
    # Sums in another order, float32.
    torch.testing.assert_close(torch.tensor(found.nats), torch.stack(alone).mean(dim=1), atol=1e-5, rtol=0)
    told = torch.tensor([np.nan if each is None else each for each in found.positions])
    torch.testing.assert_close(told, torch.stack(alone).mean(dim=0), atol=1e-5, rtol=0)
    assert found.width == 1


def test_with_memory_a_short_window_reads_what_the_long_one_read() -> None:
    """Memory that holds a whole row makes cutting it into short windows the same as reading it at once."""
    space = {**tiny.RECURRENT["space"], "max_len": 80, "memory_length": 64, "clamp_len": None, "same_length": False}
    request = tiny.request(space=space, task=tiny.RECURRENT["task"], retrain={"n_steps": 4, "test_windows": 32})
    found = scores(trained(("attention", "ffn"), request))
    assert np.mean(found[4].nats) == pytest.approx(np.mean(found[64].nats), abs=1e-5)


def test_what_cannot_run_or_has_learnt_nothing_says_so() -> None:
    found = scores(trained(("sgu", "ffn"), tiny.request(retrain=LONG)))
    assert found[4].why is None
    assert found[16].why is None
    assert found[32].why is not None
    assert "candidate 'sgu' cannot run there: its spatial weights" in found[32].why
    assert found[32].nats == []


def test_only_the_blocks_that_were_chosen_keep_a_network_back() -> None:
    found = scores(trained(("attention", "ffn"), tiny.request(retrain=LONG)))  # of a space that has sgu too
    assert [each.why for each in found.values()] == [None] * 4


def test_learnt_positions_keep_longer_inputs_out() -> None:
    found = scores(trained(("ffn", "identity"), tiny.request(**tiny.MASKED)))
    assert found[64].why == "backbone.position_embedding is 'learned', which learns nothing there"
    assert len(found[4].nats) == 32


def test_masked_tokens_are_hidden_at_each_length() -> None:
    request = tiny.request(
        **{**tiny.MASKED, "space": {**tiny.MASKED["space"], "backbone": {}, "candidates": ["attention", "ffn"]}}
    )
    found = scores(trained(("attention", "ffn"), request))
    assert all(each.why is None for each in found.values())
    assert len(found[64].positions) == 64


def test_a_text_too_short_for_two_windows_says_so() -> None:
    request = tiny.request(task={"train_length": 16, "serve_lengths": [16, 4096]}, retrain=LONG)
    found = scores(trained(("attention", "ffn"), request))
    assert found[16].why is None
    assert found[4096].why == "the test part has 1,000 tokens, and two windows need 8,193"


def test_no_lengths_are_scored_where_none_is_asked_for() -> None:
    assert scores(trained(("attention", "ffn"), tiny.request(task={"train_length": 16, "serve_lengths": []}))) == {}


def test_long_windows_tell_means_of_neighbouring_positions() -> None:
    request = tiny.request(task={"train_length": 16, "serve_lengths": [4, 1200]}, retrain={"test_windows": 200})
    long = tiny.text(60_000)
    run = Retraining(request, Architecture(("ffn", "ffn"), request.space.candidates), parts=tiny.parts(request))
    run.network.eval()
    found = score_lengths(request, run.architecture, run.forward, split(long, 16, 4).test, "cpu")
    assert [(each.length, each.width, len(each.positions)) for each in found] == [(4, 1, 4), (1200, 3, 400)]
    assert found[1].positions[0] is not None


def test_a_synthetic_task_is_drawn_at_each_length_that_it_can_be() -> None:
    request = tiny.request(
        space={
            "n_slots": 2, "d_model": 16, "n_heads": 2, "max_len": 32, "backbone": {"pooling": "none"},
            "candidates": ["attention", "ffn"],
        },
        task={"objective": "token_classification", "dataset": "offset", "train_length": 16},
        retrain=LONG,
    )  # fmt: skip
    options = request.task.synthetic_options()
    sizes = DataSizes(vocab_size=options.vocab_size, n_classes=options.n_classes)
    request = request.with_data("0" * 64, sizes)
    found = scores(trained(("attention", "ffn"), request, synthetic_parts(request.task)))
    distance = options.distance
    assert distance > 4
    assert found[4].why == f"the task cannot be drawn there: distance is {distance} at length 4; it must be at most 3"
    assert found[64].why is None
    assert found[64].positions[:distance] == [None] * distance


def documents(labels_of_words: bool) -> tuple[SearchRequest, Examples]:
    objective = "token_classification" if labels_of_words else "sequence_classification"
    request = tiny.request(
        space={
            "n_slots": 2, "d_model": 16, "n_heads": 2, "max_len": 16, "candidates": ["attention", "ffn"],
            "backbone": {"pooling": "none" if labels_of_words else "mean", "n_classes": 3},
        },
        task={"objective": objective, "train_length": 16},
    )  # fmt: skip
    chance = np.random.default_rng(0)
    sizes = chance.integers(2, 40, 12)
    ids = chance.integers(1, 256, int(sizes.sum())).astype(np.uint8)
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.uint64)
    n_labels = len(ids) if labels_of_words else 12
    labels = chance.integers(0, 3, n_labels).astype(np.int32)
    return request, Examples(ids, starts, labels, 0, 0, labels_of_words)


@pytest.mark.parametrize("labels_of_words", [False, True], ids=["documents", "words"])
def test_the_same_documents_are_cut_or_padded_at_each_length(labels_of_words: bool) -> None:
    request, part = documents(labels_of_words)
    run = Retraining(request, Architecture(("attention", "ffn"), request.space.candidates), parts=Parts(*[part] * 5))
    run.network.eval()
    found = {each.length: each for each in score_lengths(request, run.architecture, run.forward, part, "cpu")}
    assert [len(each.nats) for each in found.values()] == [8] * 4
    held = cut_at(request, part, 64)
    assert not isinstance(held, str)
    assert held.batch.key_padding is not None
    assert held.batch.key_padding.sum(dim=1).max() > 16


def test_documents_whose_labels_are_all_cut_off_say_so() -> None:
    request, part = documents(labels_of_words=True)
    part.labels[:] = -100
    run = Retraining(request, Architecture(("attention", "ffn"), request.space.candidates), parts=Parts(*[part] * 5))
    run.network.eval()
    found = score_lengths(request, run.architecture, run.forward, part, "cpu")
    assert [each.why for each in found] == ["no token with a label is left there"] * 4


def test_a_loss_that_is_no_number_has_no_score() -> None:
    request = tiny.request()
    run = Retraining(request, Architecture(("attention", "ffn"), request.space.candidates), parts=tiny.parts(request))
    run.network.eval()
    with torch.no_grad():
        run.weights["backbone.embedding.weight"].fill_(torch.inf)
    found = score_lengths(request, run.architecture, run.forward, run.test_part, "cpu")
    assert {each.why for each in found} == {"its loss there is not a number"}


def test_scores_that_would_fill_the_memory_are_not_tried() -> None:
    space = tiny.request().space
    assert no_room(space, 64, 1, "cpu") is None
    assert no_room(space, 64, 1, "cuda") is None
    free = psutil.virtual_memory().available
    length = int((free / 3) ** 0.5)
    why = no_room(space, length, 1, "cpu")
    assert why is not None
    assert why.startswith(f"scores of 1 x {length} tokens take up to ")
    only_ffn = space.model_copy(update={"candidates": (space.candidate("ffn"),)})
    assert no_room(only_ffn, length, 1, "cpu") is None


@pytest.mark.parametrize(
    ("n_ids", "n_tokens", "longest", "with_memory", "expected"),
    [
        (10_001, 1_000, 100, False, (10, 100)),
        (501, 1_000, 100, False, (5, 100)),
        (10_001, 100, 100, False, (2, 100)),  # one tells nothing of the spread
        (10_001, 3_300, 100, True, (8, 400)),
        (10_001, 500, 100, True, (5, 100)),
    ],
    ids=["enough", "short", "few", "memory", "memory, few"],
)
def test_stretches_hold_the_tokens_that_are_asked_for(
    n_ids: int, n_tokens: int, longest: int, with_memory: bool, expected: tuple[int, int]
) -> None:
    assert spans(n_ids, n_tokens, longest, with_memory=with_memory) == expected
