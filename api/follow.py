"""Wakes event streams when their search has a new event: one thread per api, ten looks a second, no connection kept.

A stream subscribes, reads what is there, and waits for a number beyond what it has sent. As events are numbered
without gaps in the transaction that they tell of, a number seen here means that every earlier event can be read.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager

from sqlalchemy.exc import SQLAlchemyError

POLL_S = 0.1
log = logging.getLogger("blockwright.api")


class Subscription:
    """What one stream knows of its search: the newest event number, or that there will be no more."""

    def __init__(self, search_id: str) -> None:
        self.search_id = search_id
        self.newest = -1
        self.ended = False
        self._loop = asyncio.get_running_loop()
        self._changed = asyncio.Event()

    async def beyond(self, number: int, timeout_s: float) -> bool:
        """Wait until there is an event beyond `number`, or the end; False when the time is over."""
        while self.newest <= number and not self.ended:
            self._changed.clear()
            try:
                async with asyncio.timeout(timeout_s):
                    await self._changed.wait()
            except TimeoutError:
                return False
        return True

    def tell(self, newest: int | None) -> None:
        """Called from the polling thread; None ends the stream."""
        try:
            self._loop.call_soon_threadsafe(self._set, newest)
        except RuntimeError:  # its event loop is closed, and the stream with it
            self.ended = True

    def _set(self, newest: int | None) -> None:
        if newest is None:
            self.ended = True
        else:
            self.newest = max(self.newest, newest)
        self._changed.set()


class Follower:
    """The polling thread; it sleeps while nothing is followed.

    Args:
        last_events: the newest event number of each of these searches; a search that is gone is left out.
    """

    def __init__(self, last_events: Callable[[Collection[str]], Mapping[str, int]]) -> None:
        self._last_events = last_events
        self._subscriptions: set[Subscription] = set()
        self._changed = threading.Condition()
        self._closed = False
        self._thread: threading.Thread | None = None

    def __len__(self) -> int:
        return len(self._subscriptions)

    @contextmanager
    def follow(self, search_id: str) -> Iterator[Subscription]:
        """Subscribe the running event loop's task to a search."""
        subscription = Subscription(search_id)
        with self._changed:
            subscription.ended = self._closed
            self._subscriptions.add(subscription)
            if self._thread is None and not self._closed:
                self._thread = threading.Thread(target=self._poll, name="follower", daemon=True)
                self._thread.start()
            self._changed.notify()
        try:
            yield subscription
        finally:
            with self._changed:
                self._subscriptions.discard(subscription)

    def close(self) -> None:
        """End all streams; safe to call twice and from a signal handler's thread."""
        self._closed = True
        for subscription in list(self._subscriptions):
            subscription.tell(None)

    def join(self) -> None:
        """Wait for the thread to end, after `close`."""
        with self._changed:
            self._changed.notify()
        if self._thread is not None:
            self._thread.join(timeout=5)

    def _poll(self) -> None:
        healthy = True
        while not self._closed:
            with self._changed:
                while not self._subscriptions and not self._closed:
                    self._changed.wait(timeout=1)
                subscriptions = list(self._subscriptions)
            try:
                newest = self._last_events({each.search_id for each in subscriptions})
            except SQLAlchemyError as error:
                if healthy:
                    log.warning("event streams wait for the database: %s", str(error).splitlines()[0])
                healthy = False
            else:
                healthy = True
                for each in subscriptions:
                    if each.newest != newest.get(each.search_id):
                        each.tell(newest.get(each.search_id))
            with self._changed:
                self._changed.wait_for(lambda: self._closed, timeout=POLL_S)
