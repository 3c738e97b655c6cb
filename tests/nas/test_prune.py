"""The parsimony pass on searches of a second: what it touches, what it compares, and what it takes away."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from nas.config.request import SearchRequest
from nas.config.task import DataSizes
from nas.data.objectives import Batch
from nas.data.parts import Parts
from nas.data.synthetic.generated import synthetic_fingerprint, synthetic_parts
from nas.errors import SearchFailed
from nas.prune import Pruning
from nas.search import Search
from nas.shared_losses import shared_losses
from nas.training import learning_rate, weight_step
from tests import tiny

PLANTED: dict[str, Any] = {
    "space": {
        "n_slots": 2, "d_model": 32, "n_heads": 2, "max_len": 16, "positions": "none",
        "backbone": {"pooling": "none"}, "candidates": ["attention", "ffn", "identity", "sgu"],
    },
    "method": {
        "n_steps": 12, "batch_size": 16, "lr": 1e-2, "lr_schedule": "constant", "prune_steps": 20, "prune_share": 100,
        "prune_windows": 64,
    },
}  # fmt: skip
ATTENTION, FFN, IDENTITY, SGU = range(4)


def planted(dataset: str, budget: Any = None, **method: Any) -> SearchRequest:
    options = {"offset": {"n_symbols": 8, "distance": 3}, "token-wise": {"n_symbols": 8}}[dataset]
    request = tiny.request(
        space=PLANTED["space"],
        task={
            "objective": "token_classification", "dataset": dataset, "dataset_options": options, "train_length": 16
        },
        method={**PLANTED["method"], **method},
        budget=budget or {},
        retrain={"baselines": []},
    )  # fmt: skip
    drawn = request.task.synthetic_options()
    sizes = DataSizes(vocab_size=drawn.vocab_size, n_classes=drawn.n_classes)
    return request.with_data(synthetic_fingerprint(request.task), sizes)


def on_text(**method: Any) -> SearchRequest:
    return tiny.request(method={"prune_steps": 2, "prune_share": 10, "prune_windows": 8, **method})


def search_of(request: SearchRequest, parts: Parts | None = None) -> Search:
    if parts is None:
        parts = tiny.parts(request) if request.task.synthetic is None else synthetic_parts(request.task)
    return Search(request, parts=parts, table=tiny.table(request.space, request.task.serve[0]))


def trained(request: SearchRequest, path: list[int], n_steps: int) -> Search:
    """A trial whose weights have learnt on one path alone, as if its search were over."""
    search = search_of(request)
    pruning = Pruning(search, path)
    for _ in range(n_steps // request.method.prune_steps):
        _fine_tuned(pruning, path)
    return search


def _fine_tuned(pruning: Pruning, path: list[int]) -> Tensor:
    ((_, losses),) = pruning._trained(path, [pruning.search.method.prune_steps])
    return losses


def finished(pruning: Pruning) -> int:
    """Run to the end; returns the updates made."""
    total = 0
    while not pruning.done:
        total += pruning.advance()
    return total


def copied(search: Search) -> dict[str, Tensor]:
    return {name: parameter.detach().clone() for name, parameter in search.weights.items()}


# -- what it takes away, and what it leaves ---------------------------------------------------------------------------


def test_the_block_that_does_the_work_stays_and_the_useless_one_goes() -> None:
    request = planted("offset")
    search = trained(request, [ATTENTION, SGU], 80)
    pruning = Pruning(search, [ATTENTION, SGU])
    finished(pruning)
    assert pruning.path == [IDENTITY, SGU]
    # Without the SGU nothing tells the token three places before; within chance the attention bought nothing.
    lost, error = pruning.effect_nats[1][IDENTITY], pruning.effect_se[1][IDENTITY]
    assert lost is not None
    assert error is not None
    assert lost > 0.5
    assert lost > 10 * error
    back = pruning.effect_nats[0][ATTENTION]
    assert back is not None
    assert abs(back) < 0.05
    assert pruning.effect_nats[0][IDENTITY] == pruning.effect_nats[1][SGU] == 0
    assert pruning.effect_se[0][IDENTITY] == pruning.effect_se[1][SGU] == 0


def test_of_two_blocks_that_stand_in_for_each_other_one_stays() -> None:
    search = trained(planted("offset"), [SGU, SGU], 80)
    pruning = Pruning(search, [SGU, SGU])
    finished(pruning)
    assert sorted(pruning.path) == [IDENTITY, SGU]


def test_nothing_is_left_where_no_block_is_needed() -> None:
    search = trained(planted("token-wise"), [SGU, ATTENTION], 80)
    pruning = Pruning(search, [SGU, ATTENTION])
    finished(pruning)
    assert pruning.path == [IDENTITY, IDENTITY]
    assert pruning.done


def test_an_edit_within_prune_nats_is_accepted_though_it_is_beyond_its_error() -> None:
    search = trained(planted("offset", prune_nats=10), [ATTENTION, SGU], 80)
    pruning = Pruning(search, [ATTENTION, SGU])
    finished(pruning)
    assert pruning.path == [IDENTITY, IDENTITY]


def test_what_edits_give_away_adds_up() -> None:
    """Each within its own error, and a second one not beside the first: the same windows lose twice."""
    pruning = Pruning(search_of(planted("offset", prune_nats=0.001)), [SGU, SGU])
    drawn = torch.randn(64, generator=torch.Generator().manual_seed(0))
    gap = 0.009 + 0.08 * (drawn - drawn.mean())
    nats, error = pruning._effect(gap)
    assert 0.001 < nats < error < 2 * nats
    assert pruning._room(gap, 1) == pytest.approx(error)
    pruning._accept(0, FFN, gap)
    assert pruning._room(gap, 1) == pytest.approx(min(error, 2 * error - nats))
    other = 0.009 + 0.08 * (drawn.flip(0) - drawn.mean())
    assert pruning._room(other, 1) == pytest.approx(pruning._effect(gap + other)[1] - nats)
    assert pruning._room(other, 1) < nats
    pruning._accept(1, FFN, -2 * gap)
    assert not pruning._given.any()


def test_an_edit_that_costs_nothing_has_room_though_it_makes_the_sum_surer() -> None:
    """Its windows win where those of the edit before lost: the sum's error is then below what is given away."""
    pruning = Pruning(search_of(planted("offset", prune_nats=0.001, prune_steps=60)), [SGU, SGU])
    drawn = torch.randn(64, generator=torch.Generator().manual_seed(0))
    lost = 0.010 + 0.09 * (drawn - drawn.mean())
    pruning._accept(0, FFN, lost)
    better = -0.0005 - 0.06 * (drawn - drawn.mean())
    _, error = pruning._effect(lost + better)
    assert 0 < error < float(lost.mean())
    assert pruning._room(better, 1) == 0 > float(better.mean())
    assert not pruning._is_open([0.0015 + better, better], [7, 15], 1)  # nothing to forecast


# -- the room of a budget ---------------------------------------------------------------------------------------------


def test_room_below_a_budget_goes_to_the_block_that_buys_something() -> None:
    request = planted("offset", {"latency": {"ms": 100.0}})
    search = trained(request, [IDENTITY, SGU], 80)
    pruning = Pruning(search, [IDENTITY, IDENTITY])
    finished(pruning)
    assert pruning.path == [IDENTITY, SGU]
    gained = pruning.effect_nats[1][IDENTITY]
    assert gained is not None
    assert gained > 0.5  # of the present candidate, whatever was there before


@pytest.mark.parametrize("budget", [None, {"latency": {"ms": 3.4}}], ids=["without a budget", "no room"])
def test_nothing_is_added_without_room(budget: Any) -> None:
    """An SGU would be 2.5 ms beside 1 of everything else."""
    search = trained(planted("offset", budget), [IDENTITY, SGU], 80)
    pruning = Pruning(search, [IDENTITY, IDENTITY])
    finished(pruning)
    assert SGU not in pruning.path
    assert pruning.effect_nats[0][SGU] is pruning.effect_nats[1][SGU] is None
    assert budget or pruning.n_updates == 0


def test_what_takes_less_time_and_breaks_another_bound_is_not_tried() -> None:
    """An attention has 4,160 weights here, an FFN, which is faster, 8,416."""
    request = planted("offset", {"parameters": {"at_most": 5000}})
    pruning = Pruning(search_of(request), [ATTENTION, IDENTITY])
    finished(pruning)
    assert pruning.effect_nats[0][FFN] is pruning.effect_nats[0][SGU] is None
    assert pruning.search.pressure.bounds[0].holds(pruning.path)


def test_of_many_useless_candidates_seldom_one_is_added() -> None:
    """At one standard error each, about one in six would be."""
    pruning = Pruning(search_of(planted("offset", {"latency": {"ms": 100.0}}, prune_nats=0.0)), [IDENTITY, IDENTITY])
    chance = torch.Generator().manual_seed(0)
    gaps = torch.randn((6000, 64), generator=chance)
    taken = sum(float(gap.mean()) > pruning._room(gap, -1) for gap in gaps)  # of 1,000 passes with six edits each
    assert 20 <= taken <= 100


def test_updates_are_spent_up_to_a_share_of_the_searchs() -> None:
    """12 updates of the search; a comparison of 2 is 4."""
    pruning = Pruning(search_of(on_text(prune_nats=0.0, prune_share=0.5)), [0, 4])
    assert finished(pruning) == pruning.n_updates == 8
    assert pruning.done
    assert pruning.untried == "is cheaper"


# -- which edits ------------------------------------------------------------------------------------------------------


def test_only_cheaper_and_allowed_candidates_are_tried_and_each_once() -> None:
    request = on_text(prune_nats=0.0)
    request = request.model_copy(update={"space": request.space.model_copy(update={"layout": _layout(request)})})
    search = search_of(request)
    labels = request.space.labels
    path = [labels.index("attention"), labels.index("sgu")]
    pruning = Pruning(search, path)
    costs = search.slot_costs.tolist()
    while not pruning.done:
        before = [[each is None for each in row] for row in pruning.effect_nats]
        present = list(pruning.path)
        pruning.advance()
        tried = [
            (slot, choice)
            for slot, row in enumerate(before)
            for choice, untried in enumerate(row)
            if untried and pruning.effect_nats[slot][choice] is not None
        ]
        assert len(tried) == 1
        ((slot, choice),) = tried
        assert costs[choice] < costs[present[slot]]
        assert labels[choice] != "identity" or slot == 1
    assert pruning.path[0] != labels.index("identity")


def test_a_swap_that_was_accepted_gives_the_slots_deletion_a_second_trial() -> None:
    pruning = Pruning(search_of(planted("offset")), [SGU, SGU])
    pruning.effect_nats[0][IDENTITY], pruning.effect_se[0][IDENTITY] = 0.3, 0.1  # refused against the SGU
    assert (0, IDENTITY) not in pruning._edits()
    pruning._accept(0, FFN, torch.zeros(64))
    assert (0, IDENTITY) in pruning._edits()
    assert pruning.effect_nats[0] == [None, 0.0, None, 0.0]
    pruning._accept(0, IDENTITY, torch.zeros(64))
    assert [edit for edit in pruning._edits() if edit[0] == 0] == []


def _layout(request: SearchRequest) -> Any:
    """Identity is forbidden in the first slot."""
    layout = [{"forbidden": ["identity"]}, {}]
    return tiny.request(space={**request.space.model_dump(exclude={"candidates"}), "layout": layout}).space.layout


def test_work_is_bounded_by_what_progress_is_counted_against() -> None:
    """Whichever edits are accepted: all, none, or one at a time."""
    for prune_nats, path in itertools.product((0.0, 10.0), ([0, 0], [3, 4])):
        request = on_text(prune_nats=prune_nats)
        most = request.method.most_steps - request.method.n_steps
        assert finished(Pruning(search_of(request), path)) <= most


# -- what it touches --------------------------------------------------------------------------------------------------


def test_weights_of_candidates_off_the_paths_do_not_change() -> None:
    request = on_text(prune_nats=10.0)
    search = search_of(request)
    before, moments = copied(search), len(search.optimiser.state)
    dearest = request.space.labels.index("mgk")
    pruning = Pruning(search, [dearest, dearest])
    pruning.advance()
    assert pruning.path.count(request.space.labels.index("identity")) == 1  # one slot became identity
    kept = pruning.path.index(dearest)
    for name, parameter in search.weights.items():
        on_path = name.startswith(("backbone.", f"slots.{kept}.norm", f"slots.{kept}.blocks.{dearest}."))
        if on_path:
            continue
        assert torch.equal(parameter, before[name]), name
    assert not torch.equal(search.weights["backbone.embedding.weight"], before["backbone.embedding.weight"])
    assert len(search.optimiser.state) == moments  # the search's own moments are not those of a fine-tuning


def test_a_refused_edit_leaves_everything_as_it_was() -> None:
    search = trained(planted("offset"), [ATTENTION, SGU], 80)
    pruning = Pruning(search, [IDENTITY, SGU])
    before, place = copied(search), search.streams["weight_data"].state()
    dropout = search.generators["dropout"].get_state()
    finished(pruning)
    assert pruning.path == [IDENTITY, SGU]
    assert all(torch.equal(parameter, before[name]) for name, parameter in search.weights.items())
    assert torch.equal(search.generators["dropout"].get_state(), dropout)
    after = search.streams["weight_data"].state()
    assert after.keys() == place.keys()
    assert all(torch.equal(after[key], place[key]) for key in place)


def read_by(search: Search, name: str) -> list[Batch]:
    """What a stream hands out from here on; the stream goes on as before."""
    seen: list[Batch] = []
    stream, following = search.streams[name], search.streams[name].next

    def next_one() -> Batch:
        seen.append(following())
        return seen[-1]

    stream.next = next_one  # type: ignore[method-assign]
    return seen


def test_reference_and_variant_read_the_same_batches_of_the_weights_data() -> None:
    search = search_of(on_text(prune_nats=0.0))
    of_weights, of_alpha = read_by(search, "weight_data"), read_by(search, "alpha_data")
    pruning = Pruning(search, [0, 0])
    n_updates = pruning.advance()
    assert n_updates == len(of_weights) == 2 * search.method.prune_steps
    first, second = of_weights[: n_updates // 2], of_weights[n_updates // 2 :]
    assert all(torch.equal(one.tokens, other.tokens) for one, other in zip(first, second, strict=True))
    assert not torch.equal(first[0].tokens, first[1].tokens)
    assert not of_alpha


def test_comparisons_are_scored_on_alphas_part() -> None:
    request = on_text()
    parts = tiny.lettered_parts(request)
    scored = Pruning(search_of(request, parts), [0, 0])._windows.batch.tokens
    assert len(scored) == request.method.prune_windows
    assert (scored // tiny.LETTERS == 1).all()


def test_prune_steps_and_prune_windows_are_as_the_method_says() -> None:
    for n_steps, n_windows in ((1, 4), (3, 16)):
        pruning = Pruning(search_of(on_text(prune_steps=n_steps, prune_windows=n_windows)), [0, 0])
        assert pruning.advance() == 2 * n_steps
        assert len(_fine_tuned(pruning, pruning.path)) == n_windows


@pytest.mark.parametrize("kind", [{}, tiny.RECURRENT, tiny.MASKED], ids=["plain", "memory", "masked"])
def test_a_pass_runs_in_every_kind_of_space(kind: dict[str, Any]) -> None:
    request = tiny.request(**{**kind, "method": {"prune_steps": 2, "prune_share": 10, "prune_windows": 8}})
    pruning = Pruning(search_of(request), [0, 0])
    finished(pruning)
    assert pruning.done


def test_a_document_in_which_nothing_is_scored_takes_no_part_in_a_search_and_its_pass() -> None:
    request = planted("token-wise", {"latency": {"ms": 4.0}}, prune_steps=2, settle_share=0.2)
    parts = synthetic_parts(request.task)
    parts = replace(parts, alpha=tiny.PartlyScored(parts.alpha), validation=tiny.PartlyScored(parts.validation))
    search = search_of(request, parts)
    *_, last = search.run()
    assert search.pruning is not None
    assert len(search.pruning._given) == 48  # of 64 windows
    assert last.path is not None
    assert last.finalists
    assert shared_losses(search, [last.path], n_windows=8).shape == (1, 6)


def test_a_search_that_ended_early_is_fine_tuned_at_the_rate_that_it_ended_at(monkeypatch: pytest.MonkeyPatch) -> None:
    request = on_text(n_steps=40, lr_schedule="cosine")
    search = search_of(request)
    search.settle_start -= 20  # as where alpha has converged
    rates = []

    def step(*arguments: Any, lr: float, **others: Any) -> Tensor:
        rates.append(lr)
        return weight_step(*arguments, lr=lr, **others)

    monkeypatch.setattr("nas.prune.weight_step", step)
    pruning = Pruning(search, [0, 1])
    list(pruning._trained([0, 1], [10]))
    assert rates[-1] == learning_rate(20, 40, request.method)
    assert rates[-1] > 2 * learning_rate(40, 40, request.method)


def test_a_loss_that_is_no_number_ends_the_search() -> None:
    search = search_of(on_text())
    with torch.no_grad():
        search.weights["backbone.embedding.weight"].fill_(math.nan)
    with pytest.raises(SearchFailed, match="training diverged by step 0: the loss is nan; a lower lr"):
        Pruning(search, [0, 0]).advance()


# -- resuming ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [{}, tiny.RECURRENT], ids=["plain", "memory"])
@pytest.mark.parametrize("prune_nats", [0.0, 10.0], ids=["strict", "lavish"])
def test_resumed_between_comparisons_it_ends_in_the_same_bits(
    kind: dict[str, Any], prune_nats: float, tmp_path: Path
) -> None:
    request = tiny.request(
        **{**kind, "method": {"prune_steps": 2, "prune_share": 10, "prune_windows": 8, "prune_nats": prune_nats}}
    )
    whole = search_of(request)
    undisturbed = Pruning(whole, [0, 0])
    finished(undisturbed)

    search = search_of(request)
    pruning = Pruning(search, [0, 0])
    while not pruning.done:  # taken up anew after every comparison
        pruning.advance()
        search.save(tmp_path / "trial")
        tensors, state = pruning.tensors(), pruning.state()
        search = search_of(request)
        search.load(tmp_path / "trial")
        pruning = Pruning(search, [0, 0])
        pruning.restore(tensors, state)
    assert pruning.path == undisturbed.path
    assert pruning.effect_nats == undisturbed.effect_nats
    assert pruning.effect_se == undisturbed.effect_se
    for name, parameter in search.weights.items():
        assert torch.equal(parameter, whole.weights[name]), name
