"""The four phases of a search, what each of them touches, and the options that shape them."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import pytest
import torch

from nas import guards
from nas.data.parts import split
from nas.search import Search
from nas.steps import StepRecord
from tests import tiny

PHASES = {"n_steps": 40, "warmup_share": 0.25, "settle_share": 0.25, "report_every": 5, "checkpoint_every": 100}
SPACE = {"n_slots": 3, "d_model": 16, "n_heads": 2, "max_len": 16, "candidates": ["attention", "ffn", "identity"]}
IDENTITY = 2


def make(**overrides: Any) -> Search:
    request = tiny.request(**{"space": SPACE, **overrides})
    return Search(request, parts=tiny.parts(request), table=tiny.table(request.space))


def test_phases_follow_each_other_and_alpha_moves_in_one_of_them() -> None:
    search = make(method={**PHASES, "prune_steps": 2, "prune_windows": 8})
    before = search.alphas.values.detach().clone()
    phases = []
    for record in search.run():
        moved = not torch.equal(search.alphas.values.detach(), before)
        before = search.alphas.values.detach().clone()
        assert not moved or record.phase == "search"
        phases.append((record.step, record.phase))
    assert phases[:9] == [
        (0, "warm-up"), (5, "warm-up"), (10, "warm-up"), (15, "search"), (20, "search"), (25, "search"),
        (30, "search"), (35, "settle"), (40, "settle"),
    ]  # fmt: skip
    assert {phase for _, phase in phases[9:]} <= {"prune"}
    assert search.alphas.n_updates == 5  # 20 weight updates of the search phase, one to four


def test_settling_lets_starved_candidates_catch_up() -> None:
    search = make(method={**PHASES, "uniform_share": 0.0})
    for record in search.run():
        if record.step == 10:
            with torch.no_grad():
                search.alphas.values[:, 0] = 4.0  # alpha's own paths take nothing else from here
        if record.step == 30:
            assert search.updates[:, 0].min() >= 20
            starved = search.updates[:, 1:].clone()
    # Ten more updates, all of them of the two that had had about three each.
    assert (search.updates[:, 1:].sum(-1) - starved.sum(-1)).tolist() == [10, 10, 10]
    assert (search.updates[:, 1] - search.updates[:, 2]).abs().max() <= 1


def test_what_is_ranked_otherwise_once_others_have_caught_up_is_told() -> None:
    search = make(method=PHASES)
    told = []
    for record in search.run():
        told.append(record.warning or "")
        if record.step == 30:
            assert search.winners is not None
            losses = search._swapped_losses().mean(-1)
            search.winners[0] = int(losses[0].argmax())  # as if the worst had led
            spread = float(losses[0].max() - losses[0].min())
    assert spread > 0
    assert not any("ranking flipped" in each for each in told[:-1])
    assert "slot 1: the ranking flipped from" in told[-1]
    labels = search.space.labels
    assert f"from {labels[int(losses[0].argmax())]!r} to" in told[-1]


def test_ranking_neither_trains_nor_draws_anything() -> None:
    search = make(method=PHASES)
    for record in search.run():
        if record.step == 30:
            break
    weights = {name: value.detach().clone() for name, value in search.weights.items()}
    states = {name: each.get_state() for name, each in search.generators.items()}
    first, again = search._swapped_losses(), search._swapped_losses()
    assert torch.equal(first, again)
    assert search.supernet.training
    assert all(torch.equal(value, weights[name]) for name, value in search.weights.items())
    assert all(torch.equal(each.get_state(), states[name]) for name, each in search.generators.items())
    path = search.leading_path()
    search.supernet.eval()
    own = search.losses(search.path_nats(path), search.ranked_on)
    for slot, choice in enumerate(path):
        assert torch.equal(first[slot, choice], own)


def test_every_comparison_of_the_parsimony_pass_is_a_record_and_no_step_has_two() -> None:
    search = make(method={**PHASES, "prune_steps": 3, "prune_windows": 8, "report_every": 20})
    records = list(search.run())
    steps = [record.step for record in records]
    assert all(later > earlier for earlier, later in itertools.pairwise(steps))
    pruned = [record for record in records if record.phase == "prune"]
    assert pruned
    assert all((later.step - earlier.step) % 3 == 0 for earlier, later in itertools.pairwise(pruned))
    assert [record.last for record in records] == [False] * (len(records) - 1) + [True]
    assert search.pruning is not None
    last = records[-1]
    assert last.path == search.pruning.path
    assert last.step <= search.method.most_steps
    assert last.effect_nats is not None
    assert last.effect_se is not None
    tried = [[each is not None for each in row] for row in last.effect_nats]
    assert tried == [[each is not None for each in row] for row in last.effect_se]
    for slot, choice in enumerate(last.path):
        assert last.effect_nats[slot][choice] == 0.0
    assert last.val_loss is not None
    search.supernet.eval()
    assert last.val_loss == float(search.losses(search.path_nats(last.path)).mean())
    assert records[0].path is None
    # What one record holds the next does not change.
    assert json.dumps(asdict(pruned[0])) != json.dumps(asdict(last))


def test_a_pass_that_has_spent_its_updates_says_so() -> None:
    pass_of = {"prune_steps": 3, "prune_windows": 8}
    *_, last = make(method={**PHASES, **pass_of, "prune_share": 0.05, "prune_nats": 0.0}).run()
    assert last.phase == "prune"
    assert (last.warning or "").splitlines()[-1] == (
        f"the parsimony pass ended at step {last.step}, before all that is cheaper was tried: prune_share is 0.05"
    )
    *_, last = make(method={**PHASES, **pass_of}).run()
    assert "prune_share" not in (last.warning or "")


@pytest.mark.parametrize(
    ("method", "why"),
    [({"prune_steps": 0}, "off"), ({"warmup_share": 0.99, "settle_share": 0.0, "prune_steps": 3}, "alpha never moved")],
    ids=["off", "alpha never moved"],
)
def test_without_a_pass_a_search_ends_with_its_updates(method: dict[str, Any], why: str) -> None:
    search = make(method={**PHASES, **method})
    *_, last = search.run()
    assert (last.step, last.last, last.path, last.effect_nats, last.val_loss) == (40, True, None, None, None)
    assert (search.alphas.n_updates == 0) == (why == "alpha never moved")


def test_wall_time_ends_the_parsimony_pass_too(monkeypatch: pytest.MonkeyPatch) -> None:
    search = make(method={**PHASES, "prune_steps": 3, "prune_windows": 8})
    records = []
    for record in search.run():
        records.append(record)
        if record.phase == "prune":
            search.seconds = 1e9
    assert [record.last for record in records if record.phase == "prune"] == [False, True]
    assert search.pruning is not None
    assert not search.pruning.done
    assert records[-1].warning is not None
    assert "the parsimony pass ended at step" in records[-1].warning
    assert records[-1].warning.endswith("before all that is cheaper was tried: max_minutes is 60")
    assert guards.cut_short(records[-1]) == records[-1].warning.splitlines()[-1]


def test_the_pass_begins_within_the_budget() -> None:
    """Of paths within 5 ms the most probable: not all three slots may have attention, which costs 3 ms."""
    search = make(method=PHASES, budget={"latency": {"ms": 7.5}})  # 1 ms for what is not searched
    with torch.no_grad():
        search.alphas.values[:] = torch.tensor([[2.0, 0.0, -1.0], [3.0, 0.0, -1.0], [1.0, 0.0, 0.5]])
    assert search.leading_path() == [0, 0, 0]
    assert list(search._affordable_path()) == [0, 0, IDENTITY]


def test_exact_ties_go_to_the_cheapest() -> None:
    assert make().leading_path() == [IDENTITY] * 3


# -- layout -------------------------------------------------------------------------------------------------------

LAYOUT = {
    **SPACE,
    "layout": [{"present": "ffn", "fixed": True}, {"present": "attention", "forbidden": ["identity"]}, {}],
    "layout_prior": 0.5,
}


@pytest.mark.parametrize("estimator", ["soft", "straight_through", "single_path", "two_path"])
def test_what_a_layout_does_not_allow_never_runs_and_is_zero_everywhere(estimator: str) -> None:
    method = {**PHASES, "alpha_estimator": estimator, "entropy_weight": 0.5, "prune_steps": 2, "prune_windows": 8}
    search = make(space=LAYOUT, method=method, budget={"latency": {"ms": 5.5}})
    allowed = torch.tensor(search.space.allowed)
    assert allowed.tolist() == [[False, True, False], [True, True, False], [True, True, True]]
    barred = ("slots.0.blocks.0.", "slots.0.blocks.2.", "slots.1.blocks.2.")
    before = {name: value.detach().clone() for name, value in search.weights.items() if name.startswith(barred)}
    assert before
    for record in search.run():
        json.dumps(asdict(record), allow_nan=False)
        assert record.probabilities is not None
        probabilities = torch.tensor(record.probabilities)
        assert not probabilities[~allowed].any()
        torch.testing.assert_close(probabilities.sum(-1), torch.ones(3), atol=1e-6, rtol=0)
        assert record.null_gaps is not None
        assert record.null_gaps[0] == 0.0
        assert not torch.tensor(record.z)[~allowed].any()
        assert not torch.tensor(record.updates)[~allowed].any()
        if record.path is not None:
            assert all(search.space.allowed[slot][choice] for slot, choice in enumerate(record.path))
            assert record.path[0] == 1
    assert all(torch.equal(search.weights[name], value) for name, value in before.items())
    assert search.alphas.n_updates == 5


def test_a_present_label_begins_ahead_by_the_prior() -> None:
    first = next(iter(make(space=LAYOUT).run()))
    assert first.probabilities is not None
    assert math.log(first.probabilities[1][0] / first.probabilities[1][1]) == pytest.approx(0.5)
    assert first.probabilities[2] == [pytest.approx(1 / 3)] * 3


# -- options ------------------------------------------------------------------------------------------------------


def ended(**method: Any) -> tuple[Search, StepRecord]:
    search = make(method={"n_steps": 60, "warmup_share": 0.2, "alpha_share": 0.4, "report_every": 60, **method})
    *_, last = search.run()
    return search, last


def test_skipped_slots_leave_their_candidates_without_an_update_in_warm_up_alone() -> None:
    search = make(method={"n_steps": 200, "warmup_share": 0.5, "settle_share": 0.0, "candidate_dropout": 0.4,
                          "report_every": 100})  # fmt: skip
    counts = {record.step: torch.tensor(record.updates).sum().item() for record in search.run()}
    assert 140 < counts[100] < 220  # 300 slots, of which 0.6 run: 180, five standard deviations are 42
    assert counts[200] == counts[100] + 300


def test_decay_of_alpha_pulls_it_back() -> None:
    far, near = (ended(alpha_decay=decay)[0].alphas.values.detach().abs().mean() for decay in (0.0, 1.0))
    assert near < 0.9 * far


def test_a_price_on_entropy_lowers_it_at_the_end_of_the_search_phase() -> None:
    free, priced = (ended(entropy_weight=weight, alpha_lr=0.1)[1].entropy for weight in (0.0, 10.0))
    assert free is not None
    assert priced is not None
    assert priced < free - 0.05


def test_entropy_has_no_price_before_the_last_quarter() -> None:
    search = make(method={**PHASES, "entropy_weight": 2.0})  # of steps 10 to 30
    prices = []
    for search.step in (10, 24, 25, 27, 30):
        prices.append(float(torch.as_tensor(search._entropy_penalty()).detach()) / math.log(3))
    assert prices == pytest.approx([0, 0, 0, 0.8, 2.0])


def test_a_search_whose_leaders_stand_goes_on_to_settle_early() -> None:
    method = {"n_steps": 100, "warmup_share": 0.2, "settle_share": 0.2, "report_every": 5, "alpha_lr": 1e-9}
    search = make(method={**method, "stop_when_stable": True})
    records = []
    for record in search.run():
        records.append(record)
        if record.step == 20:
            with torch.no_grad():
                search.alphas.values[:, 1] = 4.0
    # Of steps 20 to 80 a tenth is 6: the first check at 26 has nothing to compare, the next three stand.
    assert search.settle_start == 44
    assert records[-1].step == 64
    assert {record.phase for record in records if record.step > 44} == {"settle"}
    (told,) = [record.warning for record in records if record.warning and "ended at step" in record.warning]
    assert "search phase ended at step 44 of 80: its leaders have stood for three checks" in told
    plain = make(method=method)
    *_, last = plain.run()
    assert last.step == 100


@pytest.mark.parametrize(("budget_ms", "ended"), [(6.9, False), (7.1, True)], ids=["exceeded", "met"])
def test_a_search_does_not_end_early_while_alpha_expects_more_than_a_bound_allows(
    budget_ms: float, ended: bool
) -> None:
    """Its leaders stand, at about 7 ms: feed-forward of 2 ms in three slots, and an offset of 1."""
    method = {"n_steps": 100, "warmup_share": 0.2, "settle_share": 0.2, "report_every": 5, "alpha_lr": 1e-9}
    search = make(method={**method, "stop_when_stable": True}, budget={"latency": {"ms": budget_ms}})
    for record in search.run():
        if record.step == 20:
            with torch.no_grad():
                search.alphas.values[:, 1] = 5.0
    assert (search.settle_start == 44) == ended
    assert (record.step == 64) == ended


def test_a_search_whose_alpha_is_undecided_takes_its_whole_time() -> None:
    search = make(method={"n_steps": 50, "stop_when_stable": True, "alpha_lr": 1e-9, "report_every": 50})
    *_, last = search.run()
    assert last.step == 50


# -- guards -------------------------------------------------------------------------------------------------------


def warned(change: Callable[[Search], None], **method: Any) -> list[tuple[int, str]]:
    """Sentences by step, of a search in whose warm-up's end something is done to it. Search phase: 20 to 80."""
    request = tiny.request(
        space={**SPACE, "n_slots": 4},
        method={"n_steps": 100, "warmup_share": 0.2, "settle_share": 0.2, "report_every": 4, "lr": 1e-2,
                "batch_size": 16, "eval_windows": 32, **method},
    )  # fmt: skip
    search = Search(request, parts=split(tiny.ROUND, 16, 16), table=tiny.table(request.space))
    found = []
    for record in search.run():
        found += [(record.step, each) for each in (record.warning or "").split("\n") if each]
        if record.step == 20:
            change(search)
    return found


def lead(search: Search, candidate: int) -> None:
    with torch.no_grad():
        search.alphas.values.zero_()[:, candidate] = 4.0


def test_a_collapse_to_identity_is_named_within_the_first_fifth_of_the_search_phase() -> None:
    """On text whose next letter follows from the last, FFN wins over nothing at all, yet alpha has fallen to it."""
    found = [step for step, told in warned(lambda search: lead(search, IDENTITY)) if told.startswith("collapse to id")]
    assert len(found) == 1
    assert found[0] <= 32


def hinged(cost_weight: float) -> list[tuple[int, str]]:
    """What a search is told that a budget of half the parent presses with a fixed weight. Search phase: 60 to 150."""
    request = tiny.request(
        space={**SPACE, "n_slots": 4},
        method={"n_steps": 150, "warmup_share": 0.4, "settle_share": 0.0, "report_every": 3, "lr": 1e-2,
                "lr_warmup_steps": 5, "batch_size": 16, "eval_windows": 32, "alpha_lr": 0.2, "pressure": "hinge",
                "cost_weight": cost_weight},
        budget={"latency": {"ratio_to_parent": 0.5}},
    )  # fmt: skip
    search = Search(request, parts=split(tiny.text(), 16, 16), table=tiny.table(request.space))
    found = []
    for record in search.run():
        found += [(record.step, each) for each in (record.warning or "").split("\n") if each]
        if record.step == 78:  # a fifth of the search phase
            break
    assert search.pressure.start == 66
    return found


def test_a_search_that_pressure_drives_to_identity_says_so_within_the_first_fifth_of_its_search_phase() -> None:
    """The mixture is still over its bound when every slot already leads with identity: half of the parent's time is
    left unused, and two blocks in it would be worth 0.3 nats."""
    ((step, told),) = hinged(100.0)
    assert 66 < step <= 78
    assert told.startswith("collapse to identity: ")
    assert "with their next best candidates instead where the budget has room for them" in told
    assert told.endswith("and method.pressure dual, or a smaller method.cost_weight, presses less")
    assert hinged(0.1) == []


def test_one_candidate_everywhere_is_named_within_the_first_fifth_of_the_search_phase() -> None:
    found = [step for step, told in warned(lambda search: lead(search, 0)) if told.startswith("one candidate every")]
    assert len(found) == 1
    assert found[0] <= 32


def test_an_alpha_that_stands_still_is_named_within_the_first_fifth_of_the_search_phase() -> None:
    found = [step for step, told in warned(lambda _: None, alpha_lr=1e-12) if told.startswith("alpha does not move")]
    assert len(found) == 1
    assert found[0] <= 32


def test_more_identities_than_the_method_allows_are_named() -> None:
    def half(search: Search) -> None:
        lead(search, 1)
        with torch.no_grad():
            search.alphas.values[:2, IDENTITY] = 5.0

    found = [told for _, told in warned(half, max_identity=0.4) if "above max_identity 40%" in told]
    assert len(found) == 1
    assert found[0].startswith("50% of the slots lead with identity")


def test_a_healthy_search_is_told_nothing() -> None:
    assert warned(lambda _: None) == []


def test_a_search_whose_weights_have_not_learnt_says_so_at_its_end() -> None:
    search = make(method={**PHASES, "n_steps": 100, "lr": 1e-9})
    *earlier, last = search.run()
    assert all(guards.untrained(record) is None for record in earlier)
    ((step, early),) = [(record.step, record.warning) for record in earlier if record.warning]
    assert step == 20, "a fifth of its updates"
    assert early.startswith("the loss does not fall: after 20 of 100 weight updates that of drawn paths is ")
    told = last.not_learnt
    assert told is not None
    assert guards.untrained(last) == told
    assert told in (last.warning or "").splitlines()
    assert told.startswith("the search has not learnt: its path's loss is")
    learning = make(method={**PHASES, "lr": 1e-2})
    *_, last = learning.run()
    assert guards.untrained(last) is None
