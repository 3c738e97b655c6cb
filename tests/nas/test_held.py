"""How many rows of a batch have room at once, against what trials then hold."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from nas.allocations import peak_bytes
from nas.architecture import Architecture
from nas.config.request import SearchRequest
from nas.data.parts import Parts
from nas.estimate import estimate, held_by_search
from nas.held import Held, held_by_retraining, rows_with_room
from nas.network import Network
from nas.retrain import Retraining, build
from tests import tiny

LONGER: dict[str, Any] = {"space": {"max_len": 64}, "task": {"train_length": 64}}


@pytest.mark.parametrize(
    ("room", "rows"), [(0, 0), (149, 0), (150, 1), (159, 1), (160, 2), (199, 5), (200, 6), (10**9, 8)]
)
def test_rows_are_what_is_left_beside_weights_and_moments_by_what_one_more_takes(room: int, rows: int) -> None:
    """Whichever of its phases holds most: a step 10 bytes a row; a report 8 and 30 that no row has."""

    def held(n_rows: int) -> Held:
        return Held(40.0, 20.0, {"step": 10.0 * n_rows + 80, "report": 8.0 * n_rows + 82, "comparison": 0.0})

    assert rows_with_room(held, 8, room) == (rows, 150)


@pytest.mark.parametrize("prune_steps", [0, 8])
def test_rows_of_a_search_grow_with_room_up_to_the_batch(prune_steps: int) -> None:
    request = tiny.request(**LONGER, method={"batch_size": 8, "prune_steps": prune_steps}).resolve({}, 0)
    parts, table = tiny.parts(request), tiny.table(request.space, request.task.serve[0])
    needed = {rows: estimate(request.in_passes(rows), parts, table).memory_bytes for rows in (1, 4)}
    held = partial(held_by_search, request, parts, table, "cpu")
    assert rows_with_room(held, 8, needed[1] // 2)[0] == 0
    rows, one = rows_with_room(held, 8, needed[4])
    assert 3 <= rows <= 5
    assert one == pytest.approx(needed[1], rel=0.05)
    assert rows_with_room(held, 8, 10**12)[0] == 8


Given = tuple[SearchRequest, Architecture, Parts, Network | None]
REMEMBERING: dict[str, Any] = {
    "space": {**tiny.RECURRENT["space"], "n_slots": 4, "memory_length": 64, "clamp_len": 80},
    "task": {**tiny.RECURRENT["task"], "serve": [{"batch": 2, "query_length": 16, "memory_length": 64}]},
}


def retraining(kind: dict[str, Any], *, taught: bool) -> Given:
    distil = {"distil": {"weight": 0.5}} if taught else {}
    request = tiny.request(**kind, method={"batch_size": 16}, retrain={"n_steps": 6, **distil}).resolve({}, 0)
    labels = ("attention", "ffn") * (request.space.n_slots // 2)
    teacher = build(request.network_config(labels, request.task.vocab_size)) if taught else None
    return request, Architecture(labels, request.space.candidates), tiny.parts(request), teacher


@pytest.mark.parametrize("taught", [False, True], ids=["from the data", "from a teacher"])
@pytest.mark.parametrize("kind", [LONGER, REMEMBERING], ids=["plain", "with a memory longer than its windows"])
@pytest.mark.parametrize("rows", [1, 4])
def test_a_retraining_holds_what_is_told(kind: dict[str, Any], taught: bool, rows: int) -> None:
    """A teacher that lies there already is in what is not free."""
    request, architecture, parts, teacher = retraining(kind, taught=taught)

    def train() -> None:
        run = Retraining(request.in_passes(rows), architecture, parts=parts, teacher=teacher)
        for _ in range(10):
            run.advance()

    told = held_by_retraining(request, architecture, parts, "cpu", teacher, rows)
    assert told.peak == pytest.approx(peak_bytes(train)[0], rel=0.1)
    assert (told.remembered > 0) == (kind is REMEMBERING)


def test_held_out_windows_in_which_nothing_is_scored_do_not_end_it() -> None:
    request, architecture, parts, _ = retraining(LONGER, taught=False)
    parts = replace(parts, validation=tiny.PartlyScored(parts.validation))  # not the first of them
    assert held_by_retraining(request, architecture, parts, "cpu", None, 1).peak > 0
    table = tiny.table(request.space, request.task.serve[0])
    assert held_by_search(request, parts, table, "cpu", 1).peak > 0
