"""Counts equal documents exactly by their 8-byte digests, in memory that does not grow with their number.

Digests gather up to RUN, are sorted, and go to a file as a run of (digest, how often). In the end the runs are merged
range by range of the first byte: for 40 million documents that is a file of 480 MB and arrays of 30.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nas.ingest.card import BINS, later_parts

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

RUN = 1 << 20  # digests
_MERGED = 1 << 19  # entries at once, about; each takes some 60 bytes while it is merged
_RANGES = 256
_SHIFT = 48  # of a digest to its bin, its first two bytes
_ENTRY = [("digest", "<u8"), ("count", "<u4")]


@dataclass(frozen=True)
class Tally:
    """How many documents lie where.

    Args:
        counts: for None and each given part that has documents: documents by bin, (BINS,); left out ones not.
        n_duplicates: documents that stand so before, in whatever part.
        n_left_out: documents that also stand in a later given part, as `later_parts` tells them.
    """

    counts: Mapping[str | None, NDArray[np.int64]]
    n_duplicates: int
    n_left_out: int


class Digests:
    """The documents of one given part (or of none): `add` each digest, then merge with `tally`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._pending = array("Q")
        self._runs: list[tuple[int, list[int]]] = []  # (first entry in the file, where each range begins in the run)
        self.n_entries = 0  # in the file

    def add(self, digest: int) -> None:
        self._pending.append(digest)
        if len(self._pending) == RUN:
            self.flush()

    def flush(self) -> None:
        """Sort what is pending and write it as a run."""
        import numpy as np  # only for documents

        if not self._pending:
            return
        values, counts = np.unique(np.array(self._pending), return_counts=True)
        entries = np.empty(len(values), _ENTRY)
        entries["digest"], entries["count"] = values, counts
        with self._path.open("ab") as file:
            file.write(entries.tobytes())
        firsts = np.arange(1, _RANGES, dtype=np.uint64) << np.uint64(56)
        self._runs.append((self.n_entries, [0, *np.searchsorted(values, firsts).tolist(), len(values)]))
        self.n_entries += len(values)
        self._pending = array("Q")

    def entries(self, first: int, end: int) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
        """Distinct digests of the ranges from `first` to before `end`, sorted, and how often each stands."""
        import numpy as np

        found = [np.empty(0, _ENTRY)]
        for begin, edges in self._runs:
            number = edges[end] - edges[first]
            if number:
                offset = (begin + edges[first]) * found[0].itemsize
                found.append(np.fromfile(self._path, _ENTRY, count=number, offset=offset))
        entries = np.concatenate(found)
        values, where = np.unique(entries["digest"], return_inverse=True)
        return values, np.bincount(where, entries["count"], len(values)).astype(np.int64)


def tally(groups: Mapping[str | None, Digests]) -> Tally:
    """Merge the documents of all given parts (and of none)."""
    import numpy as np

    counts: dict[str | None, Any] = {given: np.zeros(BINS, np.int64) for given in groups}
    n_duplicates = n_left_out = 0
    for digests in groups.values():
        digests.flush()
    n_entries = sum(each.n_entries for each in groups.values())
    step = min(_RANGES, max(1, _MERGED * _RANGES // max(1, n_entries)))
    for first in range(0, _RANGES, step):
        end = min(first + step, _RANGES)
        found = {given: digests.entries(first, end) for given, digests in groups.items()}
        every = np.unique(np.concatenate([values for values, _ in found.values()]))
        n_duplicates += sum(int(often.sum()) for _, often in found.values()) - len(every)
        for given, (values, often) in found.items():
            if later := [found[name][0] for name in later_parts(given) if name in found]:
                held_out = np.isin(values, np.concatenate(later))
                n_left_out += int(often[held_out].sum())
                values, often = values[~held_out], often[~held_out]
            bins = slice(first * BINS // _RANGES, end * BINS // _RANGES)
            places = (values >> np.uint64(_SHIFT)).astype(np.int64) - bins.start
            counts[given][bins] = np.bincount(places, often, bins.stop - bins.start)
    return Tally(counts, n_duplicates, n_left_out)
