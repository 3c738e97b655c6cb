"""The tables of `bench/par_text.py`: what is there, with how many seeds, and what is missing."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from bench.par_plan import Kept, Run
from nas.data.corpora import fingerprint, read_corpus
from nas.student import critical

LEAST_MARGIN = 0.02  # bits per byte; a smaller difference is not worth a search
POWER = 0.8


@dataclass(frozen=True)
class Difference:
    """Test bits per byte of the derived stack minus another's, paired by seed.

    Args:
        mean: negative where the derived one is better.
        low: lower end of the 95% t interval over seeds.
        high: upper end.
        detectable: the true difference that as many seeds of this spread show in POWER of all cases.
        n: seeds.
    """

    mean: float
    low: float
    high: float
    detectable: float
    n: int

    @property
    def margin(self) -> float:
        return max(LEAST_MARGIN, self.detectable)

    @property
    def verdict(self) -> str:
        """Of the derived stack. Level: whatever the difference is, it is within the margin."""
        if self.high < 0 and self.mean <= -self.margin:
            return "better"
        if self.low > 0 and self.mean >= self.margin:
            return "worse"
        return "level" if -self.margin < self.low and self.high < self.margin else "cannot tell"

    @property
    def sign(self) -> int:
        """Which of the two is better; 0 where the interval holds 0."""
        return (self.low > 0) - (self.high < 0)


def paired(own: Sequence[float], other: Sequence[float]) -> Difference | None:
    """None with fewer than 2 pairs, which tell nothing of the spread."""
    if len(own) < 2:
        return None
    differences = np.subtract(own, other)
    n = len(differences)
    error = float(differences.std(ddof=1)) / math.sqrt(n)
    half = critical(n - 1) * error
    mean = float(differences.mean())
    return Difference(mean, mean - half, mean + half, half + float(stats.t.ppf(POWER, n - 1)) * error, n)


def at_its_latency(verdict: str, ratio: Sequence[float]) -> str:
    """A verdict on the derived stack, with what the interval of its latency takes from it.

    Args:
        verdict: by bits alone.
        ratio: of its latency to the other's, with the ends of the interval.
    """
    _, low, high = ratio
    if verdict == "better" and low > 1:
        return "better, but slower"
    return "worse, but faster" if verdict == "worse" and high < 1 else verdict


def show(kept: Kept) -> None:
    """Print all that is there; the last line is one JSON object."""
    found: dict[str, Any] = {
        "bench": "par_text",
        "dataset": kept.setup.dataset,
        "sha256": fingerprint(read_corpus(kept.setup.dataset)),
        "searches": [kept.searches[seed] for seed in sorted(kept.searches)],
        "trainings": len(kept.rows),
    }
    print(f"{found['dataset']}, sha256 {found['sha256']}; {len(kept.rows)} trainings; bits per byte on test\n")
    for each in found["searches"]:
        said = ", ".join(each["stacks"]) or f"none: {each['reason']}"
        print(f"search {each['seed']}: {said}, undecided slots {each['undecided']}, {each['seconds']:.0f} CPU s")
    found["contenders"] = _contenders(kept)
    found["equal_latency"] = _equal(kept)
    found["random_search"] = _random_search(kept)
    found["long"] = _long(kept)
    found["missing"] = _missing(kept)
    print("missing: " + ("; ".join(found["missing"]) or "nothing"))
    print(json.dumps(json.loads(json.dumps(found), parse_constant=lambda name: None)))  # of what diverged: null


def scored(kept: Kept, run: Run, n: int, steps: int | None = None) -> dict[int, float]:
    """Test bits by seed, of those that are there."""
    return {each.seed: kept.rows[each].test_bits for each in kept.seeds(run, n, steps) if each in kept.rows}


def difference(kept: Kept, run: Run, other: Run, n: int, steps: int | None = None) -> Difference | None:
    own, against = (scored(kept, each, n, steps) for each in (run, other))
    both = sorted(own.keys() & against.keys())
    return paired([own[seed] for seed in both], [against[seed] for seed in both])


def _contenders(kept: Kept) -> list[dict[str, Any]]:
    known = {name: run for name, run in kept.contenders().items() if run is not None}
    derived = known.get("derived")
    rows = []
    print("\n| layout | stack | positions | lr | seeds | bits | derived minus it | margin | derived is | latency |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for name, run in known.items():
        bits = list(scored(kept, run, kept.setup.n_seeds).values())
        row: dict[str, Any] = {"name": name, "stack": run.stack, "positions": run.positions, "lr": run.lr}
        row |= {"seeds": len(bits), "bits": float(np.mean(bits))}
        told = ["", "", "", ""]
        if derived is not None and name != "derived":
            found = difference(kept, derived, run, kept.setup.n_seeds)
            if found is not None:
                row |= vars(found) | {"margin": found.margin, "verdict": found.verdict}
                told[0] = f"{found.mean:+.4f} ({found.low:+.4f} to {found.high:+.4f}; {found.n} seeds)"
                told[1:3] = f"{found.margin:.4f}", found.verdict
            key = f"{derived.stack}/{derived.positions} {run.stack}/{run.positions}"
            latency = kept.latencies.get(key)
            if latency is not None:
                row["latency_ratio"] = [latency[each] for each in ("ratio", "low", "high")]
                told[3] = f"{latency['ratio']:.3f} ({latency['low']:.3f} to {latency['high']:.3f})"
                if "verdict" in row:
                    told[2] = row["verdict"] = at_its_latency(row["verdict"], row["latency_ratio"])
        rows.append(row)
        cells = [name, f"`{run.stack}`", run.positions, f"{run.lr:g}", str(len(bits)), f"{row['bits']:.4f}", *told]
        print(f"| {' | '.join(cells)} |")
    print()
    return rows


def _equal(kept: Kept) -> dict[str, Any] | None:
    """The derived stack among random layouts of its latency, by their mean over the same seeds."""
    derived = kept.derived
    if derived is None:
        return None
    n = kept.setup.n_equal_seeds
    whole = {run.stack: list(scored(kept, run, n).values()) for run in (derived, *kept.equal())}
    means = {stack: float(np.mean(bits)) for stack, bits in whole.items() if len(bits) == n}
    if derived.stack not in means or len(means) < 2:
        return None
    rank = sorted(means, key=means.__getitem__).index(derived.stack) + 1
    print(f"rank of {derived.stack} among it and {len(means) - 1} random layouts of equal latency: {rank}")
    return {"rank": rank, "of": len(means), "seeds": n, "bits": means}


def _random_search(kept: Kept) -> dict[str, Any] | None:
    if kept.derived is None:
        return None
    runs, is_whole = kept.random_search()
    trained = [kept.rows[run] for run in runs if run in kept.rows]
    spent = sum(row.seconds for row in trained)
    print(f"random search: {len(trained)} stacks in {spent:.0f} of {kept.search_seconds:.0f} CPU s of the searches")
    return {"stacks": len(trained), "seconds": spent, "of_seconds": kept.search_seconds, "whole": is_whole}


def _long(kept: Kept) -> dict[str, Any] | None:
    """Derived and parent with more updates; a crossing is a difference of another sign, both beyond doubt."""
    derived, parent = kept.derived, kept.interleaved
    if derived is None or parent is None:
        return None
    setup = kept.setup
    once = difference(kept, derived, parent, setup.n_long_seeds)
    more = difference(kept, derived, parent, setup.n_long_seeds, setup.long_factor * setup.steps)
    if once is None or more is None:
        return None
    crossed = once.sign * more.sign < 0
    told = [f"{each.mean:+.4f} ({each.low:+.4f} to {each.high:+.4f})" for each in (once, more)]
    print(
        f"derived minus interleaved at {setup.steps} updates {told[0]}, at {setup.long_factor} times as many "
        f"{told[1]}, {more.n} seeds: {'they cross' if crossed else 'no crossing is seen'}"
    )
    return {"once": vars(once), "more": vars(more), "crossed": crossed}


def _missing(kept: Kept) -> list[str]:
    lacking = [f"search {seed}" for seed in range(kept.setup.n_searches) if seed not in kept.searches]
    if not lacking and (runs := kept.missing()):
        lacking = [f"{len(runs)} trainings of the present stage, from {runs[0].stack} with seed {runs[0].seed} on"]
    names = [name for name, run in kept.contenders().items() if run is None]
    if names:
        lacking.append(f"the setting of {', '.join(names)}")
    return lacking
