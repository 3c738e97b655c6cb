"""What a round of killing is: who dies, when, and what must hold afterwards."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from tests.crash.outcome import Outcome, assert_events_are_whole, outcome, request
from tests.crash.under_test import PATIENCE_S, Following, UnderTest, free_cpus

Moment = tuple[int, float, str]  # after this event, so many seconds later, this victim


@contextmanager
def seeded() -> Iterator[random.Random]:
    """Random moments that can be had again: the seed stands in the failure, and BLOCKWRIGHT_CRASH_SEED sets it."""
    seed = int(os.environ.get("BLOCKWRIGHT_CRASH_SEED") or random.SystemRandom().randrange(2**32))
    try:
        yield random.Random(seed)
    except BaseException:
        print(f"replay with BLOCKWRIGHT_CRASH_SEED={seed}")
        raise


def kill(service: UnderTest, victim: str, search_id: str, draw: random.Random) -> bool:
    """kill -9 one process, and start again what an init system would; False where there is none at this moment."""
    if victim in ("api", "dispatch", "serve"):
        service.kill(victim)
        time.sleep(draw.uniform(0, 1.5))
        service.start(victim)
        return True
    pids: list[int] = []
    if victim == "runner":
        pid = service.runner_pid(search_id)
        pids = [pid] if pid else []
    elif victim == "head":
        head = service.head()
        pids = [head.process.pid] if head else []
    elif victim == "trial":
        pids = service.trial_pids()
    elif victim == "child of serve":
        pids = service.dispatcher_of_serve()
    if not pids:
        return False
    try:
        os.kill(draw.choice(pids), signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


@dataclass
class Rounds:
    """Searches of one and the same request on one service, the first of them undisturbed.

    Args:
        service: started.
        draw: of victims and moments.
    """

    service: UnderTest
    draw: random.Random

    def __post_init__(self) -> None:
        self.reference, self.n_events, self.table = self._undisturbed()

    def _undisturbed(self) -> tuple[Outcome, int, str | None]:
        search_id = self.submit()
        following = Following(self.service, search_id)
        self.service.wait_for_end(search_id)
        search = self.service.search(search_id)
        found = outcome(self.service, search_id)
        following.join(PATIENCE_S)
        assert_events_are_whole(self.service, search_id, following.seen)
        return found, search.last_event, search.latency_table_id

    def submit(self) -> str:
        search_id: str = self.service.client.submit(request().model_dump(mode="json"))["id"]
        return search_id

    def moments(self, victims: Sequence[str]) -> list[Moment]:
        """One moment for each, anywhere in a search."""
        return sorted((self.draw.randrange(2, self.n_events), self.draw.uniform(0, 0.5), each) for each in victims)

    def run(self, moments: Sequence[Moment]) -> list[str]:
        """One search in which these are killed; checks everything, and returns who was killed before it ended."""
        search_id = self.submit()
        following = Following(self.service, search_id)
        killed = []
        for event, delay_s, victim in moments:
            self._wait_for_event(search_id, event)
            time.sleep(delay_s)
            while not self.service.has_ended(search_id):  # a trial or a runner may just be on its way
                if kill(self.service, victim, search_id, self.draw):
                    killed.append(victim)
                    break
                time.sleep(0.05)
        self.service.wait_for_end(search_id)
        following.join(PATIENCE_S)
        assert following.problem is None
        self._check(search_id, following)
        return killed

    def _wait_for_event(self, search_id: str, number: int) -> None:
        def is_there() -> bool:
            return self.service.search(search_id).last_event >= number or self.service.has_ended(search_id)

        self.service.wait_until(is_there, f"event {number} of search {search_id}")

    def _check(self, search_id: str, following: Following) -> None:
        service = self.service
        assert outcome(service, search_id) == self.reference
        assert service.search(search_id).latency_table_id == self.table
        assert_events_are_whole(service, search_id, following.seen)
        service.assert_only_checkpoints_that_count(search_id)
        service.wait_until(lambda: service.runner_pid(search_id) is None, "the runner is gone")
        head = service.head()
        assert head is not None
        service.wait_until(lambda: free_cpus(head) == 2, "all CPUs are free")
        assert [str(path) for path in service.ray_temp.iterdir()] == [head.temp_dir]
