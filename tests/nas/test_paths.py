"""Which paths weight steps run: strict fairness over what is allowed, alpha's own, and catching up."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from nas.paths import Paths


def drawing(allowed: list[list[bool]], seed: int = 0) -> Paths:
    return Paths(allowed, torch.Generator().manual_seed(seed))


@st.composite
def layouts(draw: st.DrawFn) -> list[list[bool]]:
    """(L, K) with at least one allowed candidate in each slot."""
    n_candidates = draw(st.integers(1, 5))
    row = st.lists(st.booleans(), min_size=n_candidates, max_size=n_candidates).filter(any)
    return draw(st.lists(row, min_size=1, max_size=4))


@given(allowed=layouts(), n=st.integers(0, 60), seed=st.integers(0, 1000))
def test_fair_paths_give_every_allowed_candidate_as_much_whenever_a_round_ends(
    allowed: list[list[bool]], n: int, seed: int
) -> None:
    paths = drawing(allowed, seed)
    counts = torch.zeros(len(allowed), len(allowed[0]), dtype=torch.long)
    for _ in range(n):
        for slot, choice in enumerate(paths.fair()):
            assert allowed[slot][choice]
            counts[slot, choice] += 1
    for slot, row in enumerate(allowed):
        among = counts[slot][torch.tensor(row)]
        assert int(among.sum()) == n
        assert int(among.max() - among.min()) <= (1 if n % sum(row) else 0)


@given(allowed=layouts(), seed=st.integers(0, 1000))
def test_alphas_paths_take_nothing_that_is_not_allowed(allowed: list[list[bool]], seed: int) -> None:
    logits = torch.zeros(len(allowed), len(allowed[0])).masked_fill(~torch.tensor(allowed), -torch.inf)
    paths = drawing(allowed, seed)
    for _ in range(20):
        assert all(allowed[slot][choice] for slot, choice in enumerate(paths.own(logits)))


def test_alphas_paths_are_drawn_from_softmax_alpha() -> None:
    logits = torch.tensor([[0.3, -torch.inf, -0.2, 0.7]])
    paths = drawing([[True, False, True, True]])
    counts = torch.zeros(4)
    for _ in range(20_000):
        counts[paths.own(logits)[0]] += 1
    # 0.015 is above four standard errors of a frequency at 20,000 draws
    torch.testing.assert_close(counts / 20_000, torch.softmax(logits, -1)[0], atol=0.015, rtol=0)


@given(allowed=layouts(), seed=st.integers(0, 1000))
def test_starved_candidates_catch_up_until_all_that_are_allowed_had_as_many(
    allowed: list[list[bool]], seed: int
) -> None:
    paths, may = drawing(allowed, seed), torch.tensor(allowed)
    updates = torch.randint(0, 6, may.shape, generator=torch.Generator().manual_seed(seed)).masked_fill(~may, 0)
    before = updates.clone()
    for _ in range(6 * may.shape[1]):  # more than any row lacks
        for slot, choice in enumerate(paths.catch_up(updates)):
            assert allowed[slot][choice]
            assert updates[slot, choice] == updates[slot][may[slot]].min()
            updates[slot, choice] += 1
    for slot in range(len(may)):
        among = updates[slot][may[slot]]
        assert int(among.max() - among.min()) <= 1 or int(among.max()) == int(before[slot].max())
    assert not updates[~may].any()


def test_ties_among_the_starved_are_broken_at_random() -> None:
    paths, updates = drawing([[True] * 3]), torch.tensor([[4, 4, 9]])
    drawn = [paths.catch_up(updates)[0] for _ in range(200)]
    assert set(drawn) == {0, 1}
    assert 60 < sum(drawn) < 140  # five standard deviations of 200 fair coins around 100 is 35


@pytest.mark.parametrize("after", [0, 1, 4])
def test_paths_go_on_where_they_were_saved(after: int) -> None:
    allowed = [[True, True, True], [True, False, True]]
    one = drawing(allowed)
    for _ in range(after):
        one.fair()
    other = drawing(allowed, seed=9)
    other.restore(one.state())
    other.generator.set_state(one.generator.get_state())
    assert [one.fair() for _ in range(7)] == [other.fair() for _ in range(7)]
