"""What a trial will take, against what it takes. Seconds are not compared: machines of tests have other work."""

from __future__ import annotations

from typing import Any

import pytest

from nas.allocations import peak_bytes
from nas.config.request import SearchRequest
from nas.cost import LatencyTable
from nas.data.parts import Parts
from nas.estimate import estimate
from nas.search import Search
from tests import tiny

LONGER: dict[str, Any] = {"space": {"max_len": 64}, "task": {"train_length": 64}}


def trial(**method: Any) -> tuple[SearchRequest, Parts, LatencyTable]:
    request = tiny.request(**LONGER, method={"batch_size": 8, **method}).resolve({}, 0)
    return request, tiny.parts(request), tiny.table(request.space, request.task.serve[0])


@pytest.mark.parametrize("estimator", ["soft", "straight_through", "two_path"])
def test_memory_is_what_a_trial_then_holds(estimator: str) -> None:
    """15%, the goal: paths differ."""
    request, parts, table = trial(alpha_estimator=estimator, n_steps=40)
    found = estimate(request, parts, table)
    search = Search(request, parts=parts, table=table)
    for _ in range(20):
        search.advance()
    step, _ = peak_bytes(lambda: [search.advance() for _ in range(10)])
    weights = sum(each.nbytes for each in search.weights.values())
    assert found.parts["weights"] == weights
    assert found.memory_bytes == pytest.approx(3 * weights + step, rel=0.15)


@pytest.mark.parametrize(
    ("candidates", "d_model", "method"),
    [
        (["attention", "ffn", "identity", "sgu", "mgk"], 64, {}),
        (["attention", "ffn", "identity"], 64, {}),
        (["attention", "ffn", "identity"], 128, {"batch_size": 2}),
        (["attention", "ffn", "identity", "sgu", "mgk"], 64, {"batch_size": 16, "micro_batch": 4}),
        (["attention", "ffn", "identity"], 64, {"prune_steps": 0}),
    ],
    ids=["five candidates", "three", "wider", "in passes", "no pass"],
)
def test_memory_is_what_a_whole_search_holds_its_parsimony_pass_included(
    candidates: list[str], d_model: int, method: dict[str, Any]
) -> None:
    """15%, the goal: the pass goes by the paths that it comes to, the estimate by the heaviest."""
    steps = {"n_steps": 20, "batch_size": 4, "eval_windows": 8, "report_every": 20, "checkpoint_every": 1000}
    pass_ = {"prune_steps": 8, "prune_windows": 16, "prune_share": 10}
    request = tiny.request(
        space={"n_slots": 4, "d_model": d_model, "n_heads": 4, "max_len": 64, "candidates": candidates},
        task={"train_length": 64},
        method={**steps, **pass_, **method},
    ).resolve({}, 0)
    parts, table = tiny.parts(request), tiny.table(request.space, request.task.serve[0])
    found = estimate(request, parts, table)
    held, _ = peak_bytes(lambda: [*Search(request, parts=parts, table=table).run()])
    assert found.memory_bytes == pytest.approx(held, rel=0.15)
    assert (found.parts["comparison"] > 0) == (request.method.prune_steps > 0)


def test_what_no_comparison_can_be_made_of_is_estimated_without_one() -> None:
    request = tiny.request(
        space={"candidates": ["ffn"]}, retrain={"baselines": []}, method={"prune_steps": 8, "n_steps": 20}
    ).resolve({}, 0)
    found = estimate(request, tiny.parts(request), tiny.table(request.space, request.task.serve[0]))
    assert found.parts["comparison"] == 0


def test_seconds_are_steps_of_each_kind_times_what_one_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock that work alone moves: 2 s a weight step, 3 s an alpha step, 0.5 s a look at held-out windows."""
    worked = 0.0

    def costs(name: str, seconds: float) -> None:
        run = getattr(Search, name)

        def timed(self: Search, *args: Any) -> Any:
            nonlocal worked
            worked += seconds
            return run(self, *args)

        monkeypatch.setattr(Search, name, timed)

    for name, seconds in (("_weight_step", 2.0), ("_alpha_step", 3.0), ("losses", 0.5)):
        costs(name, seconds)
    steps = {"n_steps": 100, "warmup_share": 0.2, "settle_share": 0.1, "alpha_share": 0.2}
    request, parts, table = trial(**steps, prune_steps=10)
    found = estimate(request, parts, table, clock=lambda: worked)
    n_slots, n_candidates = request.space.n_slots, len(request.space.candidates)
    assert found.parts["weight_s"] == 100 * 2
    assert found.parts["alpha_s"] == 17 * 3  # behind every fourth of the 70 weight steps of the search phase
    assert found.parts["report_s"] == 51 * 4 * 0.5  # at 0 and every second step; mixture, leading and two drawn paths
    assert found.parts["rank_s"] == (2 * (n_slots * (n_candidates - 1) + 1) + request.method.n_looks) * 0.5
    assert found.seconds == sum(found.parts[name] for name in ("weight_s", "alpha_s", "report_s", "rank_s"))
    method = request.method
    n_updates = method.most_steps - 100
    assert found.parts["prune_updates_s"] == n_updates * 2
    n_glances, look_s = n_updates / 2, 0.5 * method.prune_windows / method.eval_windows  # a quarter of 10 updates each
    assert found.parts["prune_looks_s"] == pytest.approx(n_glances * (2 + n_slots / 2) * look_s)
    assert found.parts["prune_reports_s"] == pytest.approx(n_glances * 4 * 0.5)
    assert found.prune_seconds == pytest.approx(
        sum(found.parts[f"prune_{name}_s"] for name in ("updates", "looks", "reports"))
    )
    request, parts, table = trial(**steps, prune_steps=0)
    found = estimate(request, parts, table, clock=lambda: worked)
    assert found.prune_seconds == 0
    worked = 0.0
    search = Search(request, parts=parts, table=table)
    assert len([*search.run()]) == 51
    assert search.alphas.n_updates == 17
    # Before alpha has moved there is no leading path; a guard may look at another one once.
    assert found.seconds - 12 * 0.5 <= worked <= found.seconds + 0.5
