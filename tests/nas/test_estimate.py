"""What a trial will take, against what it takes. Seconds are not compared: machines of tests have other work."""

from __future__ import annotations

from typing import Any

import pytest

from nas.allocations import peak_bytes
from nas.config import SearchRequest
from nas.cost import LatencyTable
from nas.data.parts import Parts
from nas.estimate import estimate, rows_with_room
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
    assert found.parts["moments"] == 2 * weights
    assert found.memory_bytes == pytest.approx(3 * weights + step, rel=0.15)


def test_seconds_are_steps_of_each_kind_times_what_one_takes() -> None:
    """By a clock that counts how often it is read, every piece of work takes one second."""
    reads = iter(range(1000))
    request, parts, table = trial(n_steps=100, warmup_share=0.2, settle_share=0.1, prune_steps=10, alpha_share=0.2)
    found = estimate(request, parts, table, clock=lambda: float(next(reads)))
    n_slots, n_candidates = request.space.n_slots, len(request.space.candidates)
    assert found.parts["weight_s"] == pytest.approx(100 / n_candidates)
    assert found.parts["alpha_s"] == 0  # of 17 alpha steps, each as long as both kinds less a weight step
    assert found.parts["report_s"] == 51  # at 0 and every second step; those of checkpoints are among them
    assert found.parts["rank_s"] == pytest.approx(2 * (n_slots * (n_candidates - 1) + 1) / n_candidates)
    assert found.seconds == pytest.approx(sum(found.parts[name] for name in ("weight_s", "report_s", "rank_s")))
    assert found.prune_seconds == pytest.approx((request.method.most_steps - 100) / n_candidates)
    assert str(found) == (
        f"about {found.seconds:.0f} s a trial and at most {found.prune_seconds:.0f} s of parsimony pass, "
        f"{found.memory_bytes / 1e6:.0f} MB"
    )


def test_rows_with_room_grow_with_it_up_to_the_batch() -> None:
    request, parts, table = trial()
    needed = {
        rows: estimate(
            request.model_copy(update={"method": request.method.model_copy(update={"micro_batch": rows})}), parts, table
        ).memory_bytes
        for rows in (1, 4)
    }
    assert rows_with_room(request, parts, table, "cpu", needed[1] // 2)[0] == 0
    rows, one = rows_with_room(request, parts, table, "cpu", needed[4])
    assert 3 <= rows <= 5
    assert one == pytest.approx(needed[1], rel=0.05)
    assert rows_with_room(request, parts, table, "cpu", 10**12)[0] == 8
