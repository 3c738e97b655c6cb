"""Batches in an order of their own: random windows, or rows that go on in their text and start over together."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from nas.config.request import SearchRequest
from nas.data.parts import Tokens, eval_windows, last_start, row_windows
from nas.data.streams import HELD_OUT_ROWS, Stream, held_out
from nas.heads import IGNORE
from tests import tiny

RECURRENT = tiny.request(space={"memory_length": 24})
MASKED = tiny.request(
    space={"causal": False}, task={"objective": "masked_lm", "train_length": 16, "serve": [{"query_length": 16}]}
)


def counted(n_bytes: int) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    """A part whose tokens tell where they stand, modulo 256."""
    return (np.arange(n_bytes) % 256).astype(np.uint8)


def stream(request: SearchRequest, n_bytes: int = 1000, seed: int = 0) -> Stream:
    return Stream(Tokens(counted(n_bytes)), request, torch.Generator().manual_seed(seed), "cpu")


def test_each_row_goes_on_where_its_last_segment_ended() -> None:
    each = stream(RECURRENT)
    each.memory = [None]
    batch = each.next()
    rows = 999 // 4
    assert batch.tokens.shape == (4, 16)
    assert (batch.tokens[1:, 0] - batch.tokens[:-1, 0]).remainder(256).tolist() == [rows % 256] * 3
    for _ in range(3):
        following = each.next()
        if each.memory is None:  # the pass is over
            break
        assert torch.equal(following.tokens[:, 0], batch.targets[:, -1])
        batch = following


@given(size=st.integers(65, 600), seed=st.integers(0, 1000))
def test_passes_stay_inside_the_part_and_memory_is_empty_at_the_start_of_each(size: int, seed: int) -> None:
    each, part = stream(RECURRENT, size, seed), counted(size)
    last = last_start(part, 4, 16)
    before, starts = None, 0
    for _ in range(3 * (size // 64) + 3):
        batch = each.next()
        at = each.at - 16
        assert 0 <= at <= last
        assert torch.equal(batch.tokens, row_windows(part, 4, at, 16)[:, :-1])
        if before is not None and each.memory is not None:
            assert at == before + 16
        elif before is not None:
            starts += 1
            assert before + 16 > last  # not a byte that a segment would fill is left out
            assert at < 16
        before, each.memory = at, [torch.zeros(4, 24, 16)]
    assert starts >= 2


def test_seeds_begin_in_different_places_and_the_same_seed_in_the_same() -> None:
    begins = [int(stream(RECURRENT, 4000, seed).next().tokens[0, 0]) for seed in range(8)]
    assert begins == [int(stream(RECURRENT, 4000, seed).next().tokens[0, 0]) for seed in range(8)]
    assert len(set(begins)) > 4


@pytest.mark.parametrize("request_", [tiny.request(), MASKED, RECURRENT], ids=["causal", "masked", "memory"])
@pytest.mark.parametrize("n_batches", [0, 1, 20])
def test_a_stream_that_is_taken_up_again_goes_on_with_the_same_batches(request_: SearchRequest, n_batches: int) -> None:
    one, other = stream(request_, 600), stream(request_, 600, seed=9)
    for _ in range(n_batches):
        one.next()
        one.memory = [None, torch.randn(4, 24, 16), None] if one.has_memory else None
    other.restore({name: tensor.clone() for name, tensor in one.state().items()})
    if one.memory is None:
        assert other.memory is None
    else:
        assert other.memory is not None
        assert [each is None for each in other.memory] == [True, False, True]
        assert torch.equal(torch.as_tensor(other.memory[1]), torch.as_tensor(one.memory[1]))
    for _ in range(25):
        first, second = one.next(), other.next()
        assert torch.equal(first.tokens, second.tokens)
        assert torch.equal(first.targets, second.targets)
        assert (one.memory is None) == (other.memory is None)


def test_held_out_windows_of_memory_stand_in_rows() -> None:
    part = Tokens(counted(2000))
    found = held_out(part, 40, RECURRENT, "cpu")
    assert found.segments == 40 // HELD_OUT_ROWS
    tokens = found.batch.tokens.reshape(HELD_OUT_ROWS, found.segments, 16)
    targets = found.batch.targets.reshape(HELD_OUT_ROWS, found.segments, 16)
    assert torch.equal(tokens[:, 1:, 0], targets[:, :-1, -1])
    assert held_out(part, 40, tiny.request(), "cpu").segments == 1


def test_held_out_masks_are_the_same_for_every_seed() -> None:
    part = Tokens(counted(2000))
    seeded = MASKED.resolve({}, seed=5)
    assert torch.equal(held_out(part, 9, MASKED, "cpu").batch.tokens, held_out(part, 9, seeded, "cpu").batch.tokens)
    assert bool((held_out(part, 9, MASKED, "cpu").batch.targets != IGNORE).any(dim=1).all())


@given(size=st.integers(1, 400), n=st.integers(1, 40), length=st.integers(1, 20), rows=st.integers(1, 9))
def test_rows_of_evaluation_predict_no_token_twice_and_follow_without_a_gap(
    size: int, n: int, length: int, rows: int
) -> None:
    part = np.arange(size, dtype=np.uint16)
    found = eval_windows(part, n, length, rows)
    targets = found[:, 1:].flatten().tolist()
    assert targets == sorted(set(targets))
    fits = min(n, (size - 1) // length)
    assert len(found) == (fits // min(rows, fits) * min(rows, fits) if fits else 0)
    if fits:
        in_row = found.reshape(min(rows, fits), -1, length + 1)
        assert torch.equal(in_row[:, 1:, 0], in_row[:, :-1, -1])
