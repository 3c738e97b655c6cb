"""Four disjoint parts that rejoin to the text, and windows that stay inside their part."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from nas.data.parts import eval_windows, sample_windows, split
from nas.errors import DataError
from tests.tiny import ids


def numbered(n_bytes: int) -> bytes:
    """Text whose bytes tell where they stand, modulo 95."""
    return bytes(32 + i % 95 for i in range(n_bytes))


@given(n_bytes=st.integers(2_000, 5_000), train_length=st.integers(2, 32), batch_size=st.integers(1, 8))
def test_parts_rejoin_to_the_text_in_their_shares(n_bytes: int, train_length: int, batch_size: int) -> None:
    corpus = numbered(n_bytes)
    parts = split(corpus, train_length, batch_size)
    arrays = [ids(part) for part in (parts.weights, parts.alpha, parts.validation, parts.test)]
    assert np.array_equal(ids(parts.training), np.concatenate(arrays[:2]))
    assert np.concatenate(arrays).tobytes() == corpus
    for array, share in zip(arrays, (0.72, 0.18, 0.05, 0.05), strict=True):
        assert len(array) == pytest.approx(share * n_bytes, abs=1)


@given(train_length=st.integers(2, 64), batch_size=st.integers(1, 16))
def test_shortest_accepted_text_holds_a_batch_in_both_training_parts_and_two_windows_in_the_others(
    train_length: int, batch_size: int
) -> None:
    with pytest.raises(DataError) as error:
        split(b"too short", train_length, batch_size)
    needed = int(str(error.value).rsplit(" ", 1)[1])
    parts = split(numbered(needed), train_length, batch_size)
    for training in (parts.weights, parts.alpha):
        assert len(eval_windows(ids(training), batch_size, train_length)) == batch_size
    for held_out in (parts.validation, parts.test):
        assert len(eval_windows(ids(held_out), 100, train_length)) >= 2  # compare_quality needs two
    with pytest.raises(DataError):
        split(numbered(needed - 1), train_length, batch_size)


@pytest.mark.parametrize(
    ("corpus", "message"),
    [
        (b"", "the text is empty"),
        (b"abc\0" * 9000, "the file is binary"),
        (b"\xff" * 9000, "the file is not UTF-8"),
        (b"a" * 5000, "the text has 5000 bytes; batches of 8 windows of 128 tokens need at least 5695"),
    ],
    ids=["empty", "nul", "invalid", "short"],
)
def test_text_that_cannot_be_trained_on_is_refused(corpus: bytes, message: str) -> None:
    with pytest.raises(DataError, match=f"^{message}"):
        split(corpus, 128, 8)


def test_sampled_windows_are_stretches_of_the_part_and_follow_the_generator() -> None:
    part = np.frombuffer(numbered(90), dtype=np.uint8).copy()
    windows = sample_windows(part, 500, 16, torch.Generator().manual_seed(1))
    assert windows.shape == (500, 17)
    assert windows.dtype == torch.int64
    assert bool((windows.diff(dim=1) == 1).all())
    assert int(windows.min()) == int(part[0])
    assert int(windows.max()) == int(part[-1])
    assert torch.equal(windows, sample_windows(part, 500, 16, torch.Generator().manual_seed(1)))
    assert not torch.equal(windows, sample_windows(part, 500, 16, torch.Generator().manual_seed(2)))


def test_part_of_one_window_can_be_sampled() -> None:
    part = np.arange(17, dtype=np.uint8)
    windows = sample_windows(part, 3, 16, torch.Generator().manual_seed(0))
    assert torch.equal(windows, torch.arange(17).expand(3, 17))


@given(size=st.integers(1, 200), n=st.integers(1, 20), length=st.integers(1, 20))
def test_eval_windows_predict_no_token_twice(size: int, n: int, length: int) -> None:
    part = np.arange(size, dtype=np.uint8)
    windows = eval_windows(part, n, length)
    assert windows.shape == (min(n, (size - 1) // length), length + 1)
    targets = windows[:, 1:].flatten().tolist()
    assert targets == sorted(set(targets))
    assert torch.equal(windows, eval_windows(part, n, length))


def test_eval_windows_are_spread_over_the_whole_part() -> None:
    starts = eval_windows(np.arange(101, dtype=np.uint8), 4, 10)[:, 0].tolist()
    assert starts == [0, 25, 50, 75]
