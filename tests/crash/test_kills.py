"""kill -9 of every process of the service at ten random times each; then nothing is lost, doubled or left."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.crash.killing import Rounds, seeded
from tests.crash.under_test import under_test

pytestmark = [pytest.mark.ray, pytest.mark.crash, pytest.mark.timeout(3600)]

VICTIMS = ("api", "dispatch", "runner", "trial", "head")
N_KILLS = int(os.environ.get("BLOCKWRIGHT_CRASH_ROUNDS", "10"))  # of each


def test_whatever_is_killed_whenever_every_search_ends_as_an_undisturbed_one(tmp_path: Path) -> None:
    with seeded() as draw, under_test(tmp_path) as service:
        service.migrate()
        service.start("api", "dispatch")
        rounds = Rounds(service, draw)
        left = dict.fromkeys(VICTIMS, N_KILLS)
        number = 0
        while any(left.values()):
            number += 1
            assert number <= 2 * N_KILLS, f"still to be killed: {left}"
            moments = rounds.moments([victim for victim in VICTIMS if left[victim]])
            print(f"round {number}: {moments}", flush=True)
            for victim in rounds.run(moments):  # where the search ended first, the next round has it
                left[victim] -= 1
        service.end_in_good_order()


def test_a_killed_serve_takes_up_where_it_was(tmp_path: Path) -> None:
    with seeded() as draw, under_test(tmp_path) as service:
        service.start("serve")
        rounds = Rounds(service, draw)
        moments = rounds.moments(["serve", "child of serve", "runner"])
        print(moments, flush=True)
        rounds.run(moments)
        service.end_in_good_order()
