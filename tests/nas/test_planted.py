"""Searches whose answer is known: par-search.md section 9, item 36."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from nas.data.parts import split
from nas.search import Search
from nas.steps import StepRecord
from tests import tiny

LETTERS, LAG, KEPT = 16, 8, 0.9  # of the text's letters, as many follow the rule and all others are drawn
GUESS = math.log(LETTERS)  # nats
MOST, OTHER = KEPT + (1 - KEPT) / LETTERS, (1 - KEPT) / LETTERS  # probability of the letter of the rule, of another
KNOWN = -MOST * math.log(MOST) - (LETTERS - 1) * OTHER * math.log(OTHER)  # nats, of who knows the rule


def text(rule: str) -> bytes:
    """Each letter is that of LAG places before, or the one that always follows the last."""
    rng = np.random.default_rng(0)
    following: NDArray[np.int64] = rng.permutation(LETTERS)
    letters = rng.integers(0, LETTERS, 30_000)
    for at in np.flatnonzero(rng.random(len(letters)) < KEPT):
        if at >= LAG:
            letters[at] = letters[at - LAG] if rule == "copied" else following[letters[at - 1]]
    return bytes(int(each) + 97 for each in letters)


def searched(rule: str) -> StepRecord:
    """The last record of a search in one slot, with segments of LAG tokens behind a memory of as many."""
    request = tiny.request(
        space={
            "n_slots": 1, "d_model": 32, "n_heads": 2, "max_len": LAG, "positions": "transformer_xl",
            "memory_length": LAG, "candidates": ["ffn", "attention", "identity"],
        },
        task={"train_length": LAG, "serve": [{"batch": 2, "query_length": LAG, "memory_length": LAG}]},
        method={
            "n_steps": 200, "warmup_share": 0.3, "alpha_share": 0.4, "alpha_lr": 0.1, "batch_size": 16, "lr": 1e-2,
            "report_every": 200, "checkpoint_every": 200, "eval_windows": 64, "prune_steps": 20, "prune_windows": 64,
        },
    )  # fmt: skip
    parts = split(text(rule), request.task.train_length, request.method.batch_size)
    *_, last = Search(request, parts=parts, table=tiny.table(request.space, request.task.serve[0])).run()
    return last


def test_attention_wins_where_only_a_letter_in_memory_tells_the_next() -> None:
    last = searched("copied")
    assert last.probabilities is not None
    assert last.null_gaps is not None
    ffn, attention, identity = last.probabilities[0]
    assert attention > 0.9
    assert math.log(attention / max(ffn, identity)) > last.null_gaps[0]  # beyond chance
    # Seven of eight answers stand in memory alone: without it the loss could not be below seven eighths of a guess.
    assert last.val_loss is not None
    assert last.val_loss < (GUESS + KNOWN) / 2 < 7 / 8 * GUESS
    assert last.path == [1]
    assert last.effect_nats is not None
    without = last.effect_nats[0][2]
    assert without is not None
    assert without > 0.5  # what attention buys over nothing


def test_no_block_is_kept_where_the_present_letter_tells_the_next() -> None:
    """Embedding and head do alone what any block does as well: whatever leads, the parsimony pass leaves nothing."""
    last = searched("followed")
    assert last.path == [2]
    assert last.val_loss == pytest.approx(KNOWN, abs=0.1)
