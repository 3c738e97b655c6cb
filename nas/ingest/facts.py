"""What a card tells of content: distinct characters and a histogram of lengths, counted by the block."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable


class Characters:
    """Counts distinct characters. Known ASCII is deleted from a block first, which leaves little to look at."""

    def __init__(self) -> None:
        self._seen: set[str] = set()
        self._known = b""  # the ASCII ones

    def feed(self, block: bytes) -> None:
        """Whole characters of UTF-8."""
        rest = block.translate(None, self._known)
        if rest and (new := set(rest.decode()) - self._seen):
            self._seen |= new
            self._known = "".join(each for each in self._seen if each.isascii()).encode()

    def __len__(self) -> int:
        return len(self._seen)


class Lengths:
    """A histogram by powers of two: bucket b holds lengths of which (length - 1) has b bits, so up to 2 ** b."""

    def __init__(self) -> None:
        self._buckets: Counter[int] = Counter()

    def feed(self, lengths: Iterable[int]) -> None:
        self._buckets.update(max(length - 1, 0).bit_length() for length in lengths)

    def histogram(self) -> tuple[tuple[int, int], ...]:
        """(largest length, number), without empty bins at either end."""
        if not self._buckets:
            return ()
        return tuple((1 << b, self._buckets[b]) for b in range(min(self._buckets), max(self._buckets) + 1))
