"""What goes wrong, in words: each guard speaks where it must, is silent where it must be, and speaks once."""

from __future__ import annotations

import pytest
import torch

from nas import guards
from nas.steps import StepRecord

IDENTITY = torch.tensor([False, False, True])
LABELS = ["attention", "ffn", "identity"]


def rows(*leaders: int, share: float = 0.8) -> torch.Tensor:
    """(L, 3) probabilities led by these candidates."""
    return torch.nn.functional.one_hot(torch.tensor(leaders), 3) * (share - (1 - share) / 2) + (1 - share) / 2


def noisy(mean: float, spread: float = 0.1, n: int = 64, seed: int = 0) -> torch.Tensor:
    values = torch.randn(n, generator=torch.Generator().manual_seed(seed))
    return mean + spread * (values - values.mean()) / values.std()


def test_identity_share_and_velocity_are_exact() -> None:
    probabilities = torch.tensor([[0.5, 0.25, 0.25], [0.0, 0.0, 1.0]])
    assert guards.identity_share(probabilities, IDENTITY) == pytest.approx(0.625)
    assert guards.identity_share(probabilities, torch.tensor([False] * 3)) == 0
    moved = torch.tensor([[0.25, 0.5, 0.25], [0.0, 0.0, 1.0]])
    assert guards.velocity(probabilities, moved) == pytest.approx(0.125)  # a quarter moved in one of two slots
    assert guards.velocity(probabilities, probabilities) == 0


def test_more_identities_than_asked_for_are_told() -> None:
    assert guards.too_many_identities([2, 2, 0, 1], IDENTITY, 0.5) is None
    told = guards.too_many_identities([2, 2, 2, 1], IDENTITY, 0.5)
    assert told is not None
    assert told.startswith("75% of the slots lead with identity, above max_identity 50%: a larger method.warmup_share")


def test_a_collapse_to_identity_is_told_where_the_path_without_them_is_better_beyond_noise() -> None:
    path, noise = noisy(2.0), noisy(0.0, 0.02, seed=1)
    told = guards.identity_collapse(5, path, path - 0.1 + noise, 0.002)
    assert told is not None
    assert told.startswith("collapse to identity: 5 slots lead with it, and with their next best candidates instead")
    assert "0.1000 nats lower (standard error 0.0025); a larger method.warmup_share or" in told
    assert guards.identity_collapse(5, path, path - 0.004 + noise, 0.002) is None  # within two standard errors
    assert guards.identity_collapse(5, path, path - 0.001, 0.002) is None  # too little to matter
    assert guards.identity_collapse(5, path, path + 0.1, 0.002) is None


def test_the_path_without_identities_takes_the_next_best_that_is_allowed() -> None:
    allowed = torch.tensor([[True, True, True], [True, False, True], [False, False, True]])
    probabilities = torch.tensor([[0.2, 0.3, 0.5], [0.1, 0.0, 0.9], [0.0, 0.0, 1.0]])
    assert guards.without_identity([2, 2, 2], probabilities, allowed, IDENTITY) == [1, 0, 2]
    assert guards.without_identity([0, 2, 2], probabilities, allowed, IDENTITY) == [0, 0, 2]
    free = torch.ones(3, 3, dtype=torch.bool)
    assert guards.without_identity([2, 2, 2], probabilities, free, IDENTITY, lambda path: path.count(2) > 1) == [
        1,
        2,
        2,
    ]
    assert guards.without_identity([2, 2, 2], probabilities, free, IDENTITY, lambda _: False) == [2, 2, 2]


def test_under_pressure_a_leader_leads_with_more_than_half_of_the_probability() -> None:
    probabilities, gaps = torch.tensor([[0.6, 0.3, 0.1], [0.4, 0.3, 0.3], [0.9, 0.05, 0.05]]), torch.full((3,), 1.0)
    assert guards.leads(probabilities, gaps, pressed=False).tolist() == [False, False, True]
    assert guards.leads(probabilities, gaps, pressed=True).tolist() == [True, False, True]


@pytest.mark.parametrize(
    ("began", "soft", "hard", "speaks"),
    [(5.0, 3.0, 3.1, False), (5.0, 3.0, 4.0, True), (5.0, 4.9, 5.5, False), (5.0, 3.0, 2.5, False)],
    ids=["close", "gap", "nothing learnt yet", "better"],
)
def test_a_mixture_that_works_while_its_argmax_does_not_is_told(
    began: float, soft: float, hard: float, speaks: bool
) -> None:
    told = guards.discretisation_gap(began, soft, hard)
    assert (told is not None) == speaks
    if told is not None:
        assert told.startswith("discretisation gap: the mixture's loss is 3.0000 and its most probable path's 4.0000")
        assert "method.entropy_weight closes it" in told


@pytest.mark.parametrize(
    ("moved", "n_updates", "disorder", "speaks"),
    [(0.0, 3, 1.0, True), (0.01, 3, 1.0, False), (0.0, 0, 1.0, False), (0.0, 3, 0.1, False)],
    ids=["still", "moving", "not updated", "settled"],
)
def test_an_alpha_that_does_not_move_is_told(moved: float, n_updates: int, disorder: float, speaks: bool) -> None:
    told = guards.alpha_stands_still(moved, n_updates, disorder)
    assert (told is not None) == speaks
    if told is not None:
        assert told.startswith(
            "alpha does not move: 3 updates changed its probabilities by 0.0e+00; a larger method.al"
        )


def test_one_candidate_everywhere_is_told_of_three_free_slots_and_more() -> None:
    free, all_beyond = torch.ones(3, 3, dtype=torch.bool), torch.tensor([True] * 3)
    told = guards.one_everywhere([0, 0, 0], rows(0, 0, 0), all_beyond, free, LABELS, IDENTITY)
    assert told is not None
    assert told.startswith("one candidate everywhere: 'attention' leads in all 3 slots with more than half")
    assert "a larger method.uniform_share lets the others return" in told
    by_chance = torch.tensor([True, False, True])
    fixed = torch.tensor([[True, False, False], [True, True, True], [True, True, True]])
    for path, share, beyond, allowed in (
        ([0, 0, 1], 0.8, all_beyond, free),  # another somewhere
        ([0, 0, 0], 0.45, all_beyond, free),  # less than half of the probability
        ([0, 0, 0], 0.8, by_chance, free),
        ([0, 0], 0.8, all_beyond[:2], free[:2]),  # two slots may well agree
        ([2, 2, 2], 0.8, all_beyond, free),  # another guard's
        ([0, 0, 0], 0.8, all_beyond, fixed),  # only two slots had a choice
    ):
        assert guards.one_everywhere(path, rows(*path, share=share), beyond, allowed, LABELS, IDENTITY) is None


def test_a_leader_is_beyond_chance_where_its_lead_is_above_the_null_gap() -> None:
    probabilities = torch.tensor([[0.5, 0.25, 0.25], [0.5, 0.25, 0.25], [0.0, 1.0, 0.0]])
    assert guards.beyond_chance(probabilities, torch.tensor([0.69, 0.70, 0.0])).tolist() == [True, False, True]
    assert guards.beyond_chance(torch.ones(2, 1), torch.zeros(2)).tolist() == [False, False]


def test_a_loss_that_has_not_fallen_is_told_with_its_steps() -> None:
    began = noisy(5.5)
    assert guards.does_not_fall(began, began - 0.5, 480, 2400) is None
    told = guards.does_not_fall(began, began + 0.25, 480, 2400)
    assert told is not None
    assert told.startswith(
        "the loss does not fall: after 480 of 2400 weight updates that of drawn paths is 5.7500 nats"
    )
    assert "a fall of -0.2500 with a standard error of 0.0000; another method.lr may help" in told
    assert guards.untrained(StepRecord(480, warning=told)) is None, "the end alone decides"


def test_a_trial_that_time_ended_is_found_again_by_its_field_and_in_older_records_by_their_words() -> None:
    told = guards.time_is_up("the search ended after 3 of 9 weight updates", 0.5)
    assert told == "the search ended after 3 of 9 weight updates: max_minutes is 0.5"
    assert guards.cut_short(StepRecord(3, cut_short="any words", last=True)) == "any words"
    assert guards.cut_short(StepRecord(3, warning=f"another thing\n{told}", last=True)) == told
    assert guards.cut_short(StepRecord(3, warning="another thing", last=True)) is None


def test_a_search_that_has_not_learnt_is_told_and_found_again_in_its_last_record() -> None:
    began = noisy(5.5)
    assert guards.has_not_learnt(began, began - 0.5) is None
    told = guards.has_not_learnt(began, began - 0.001 + noisy(0.0, 0.05, seed=1))
    assert told is not None
    assert told.startswith("the search has not learnt: its path's loss is 5.4990 nats and was 5.5000 at step 0")
    assert told.endswith("more method.n_steps or another method.lr may help")
    assert guards.untrained(StepRecord(9, warning="another thing", not_learnt=told, last=True)) == told
    assert guards.untrained(StepRecord(9, warning=f"another thing\n{told}", last=True)) == told, (
        "as older records tell it"
    )
    assert guards.untrained(StepRecord(9, warning="another thing", last=True)) is None
    assert guards.untrained(StepRecord(9, last=True)) is None
    assert guards.has_not_learnt(began[:1], began[:1]) is not None  # one window, the same: nothing has fallen


def test_every_guard_speaks_once() -> None:
    told: list[str] = []
    assert guards.tell_once(told, {"a": "one", "b": None}) == ["one"]
    assert guards.tell_once(told, {"a": "one again", "b": "two"}) == ["two"]
    assert guards.tell_once(told, {"a": "one again", "b": "two"}) == []
    assert told == ["a", "b"]
