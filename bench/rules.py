"""Are rules found where there are some, and only there? Goals: planted ones in 95% of reports, false ones in 5%.

Stacks are drawn, not searched: exchangeable ones, whose blocks may stand anywhere, and planted ones, in which a rule
decides where a family stands, and then each of its blocks moves to any slot with the chance that is called noise. A
report is false where any tested statement is better than not supported although nothing was planted; a planted rule is
recovered where its statement is, in the right direction. Ratios are estimates: of them, the share of 95% intervals that
hold the true one is told.

    python -m bench.rules [--n N]
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from nas.statement import Statement
from nas.statements import ratio_interval, state
from nas.verdicts import judge

Families = list[str]
N_SLOTS = 12
SEEDS = (3, 5, 6)
NOISES = (0.0, 0.05, 0.1, 0.2)
GOAL_NOISE, GOAL_SEEDS = 0.05, 6
NAMES = {"A": "attention", "F": "ffn", "S": "sgu", "M": "mgk", ".": "identity"}

# What a seed derives; a longer list is drawn from, seed by seed, so that budgets and searches differ in their counts.
BUDGETS: dict[str, tuple[str, ...]] = {
    "one family, a third": ("AAAAFFFFFFFF",),
    "two families": ("AAAASSFFFFFF",),
    "three families, no FFN left": ("AAAASSSSMMMM",),
    "a tight budget": ("AASSMFF.....",),
    "a very tight budget": ("AAF.........",),
    "uneven by seed": ("AAFFFFFFFF..", "AAAAASSSFFFF", "ASSMMFFF....", "AAAMFFFFFFFF", "SSSSFFFFFFF."),
}


def families(letters: Sequence[str]) -> Families:
    return [NAMES[letter] for letter in letters]


def exchangeable_seed(blocks: Sequence[str], generator: np.random.Generator) -> Families:
    """A stack of one of these, in any order."""
    letters = np.array(list(blocks[generator.integers(len(blocks))]))
    return families([str(letter) for letter in generator.permutation(letters)])


def partly_fixed_seed(generator: np.random.Generator) -> Families:
    """The first slot is fixed to attention and the last two may not hold SGU; all else is in any order."""
    while True:
        rest = [str(letter) for letter in generator.permutation(list("AASSSFFFFF."))]
        if "S" not in rest[-2:]:
            return families(["A", *rest])


PARTLY_FIXED = (0, *[1] * (N_SLOTS - 3), 2, 2)


def early(generator: np.random.Generator) -> Sequence[int]:
    """Four blocks in the first half."""
    return sorted(generator.choice(N_SLOTS // 2, 4, replace=False).tolist())


def late(generator: np.random.Generator) -> Sequence[int]:
    """Four blocks in the last half."""
    return [N_SLOTS - 1 - slot for slot in reversed(early(generator))]


def first_two_thirds(generator: np.random.Generator) -> Sequence[int]:
    """Four blocks anywhere in the first two thirds."""
    return sorted(generator.choice(2 * N_SLOTS // 3, 4, replace=False).tolist())


def even(generator: np.random.Generator) -> Sequence[int]:
    """Four blocks with two others between neighbours, from a slot that differs by seed."""
    first = int(generator.integers(3))
    return [first + 3 * number for number in range(4)]


def clustered(generator: np.random.Generator) -> Sequence[int]:
    """Two pairs of neighbours, far from each other."""
    gap = int(generator.integers(5, 8))
    first = int(generator.integers(N_SLOTS - 2 - gap))
    return [first, first + 1, first + 1 + gap, first + 2 + gap]


Slots = Callable[[np.random.Generator], Sequence[int]]
PLANTED: dict[str, tuple[str, str, Slots]] = {
    "position, early": ("position", "early", early),
    "position, late": ("position", "late", late),
    "cut, first two thirds": ("cut", "first", first_two_thirds),
    "spacing, even": ("spacing", "even", even),
    "spacing, clustered": ("spacing", "clustered", clustered),
}


def planted_seed(slots: Slots, noise: float, generator: np.random.Generator) -> Families:
    """Four attention blocks where the rule says, two SGU anywhere else, and FFN."""
    at = _moved(slots(generator), range(N_SLOTS), noise, generator)
    others = [slot for slot in range(N_SLOTS) if slot not in at]
    sgu = generator.choice(others, 2, replace=False).tolist()
    return ["attention" if slot in at else "sgu" if slot in sgu else "ffn" for slot in range(N_SLOTS)]


def ordered_seed(noise: float, generator: np.random.Generator) -> Families:
    """Two SGU before four attention blocks, in any six slots; noise moves SGU among them."""
    slots = sorted(generator.choice(N_SLOTS, 6, replace=False).tolist())
    sgu = _moved(slots[:2], slots, noise, generator)
    return ["sgu" if slot in sgu else "attention" if slot in slots else "ffn" for slot in range(N_SLOTS)]


def _moved(at: Sequence[int], slots: Sequence[int], noise: float, generator: np.random.Generator) -> list[int]:
    """Each of `at` moves to any free one of the slots by chance."""
    kept = list(at)
    for index in range(len(kept)):
        if generator.random() < noise:
            free = [slot for slot in slots if slot not in kept]
            kept[index] = int(generator.choice(free))
    return kept


def said(statements: Sequence[Statement]) -> list[Statement]:
    """The tested statements that are better than not supported."""
    return [each for each in statements if each.kind != "ratio" and each.verdict != "not supported"]


def false_reports(n: int, n_seeds: int, draw: Callable[[np.random.Generator], Families], groups: Any = None) -> float:
    """Share of reports on nothing that say anything."""
    generator = np.random.default_rng(n_seeds)
    return float(
        np.mean([bool(said(judge(state([draw(generator) for _ in range(n_seeds)], groups)))) for _ in range(n)])
    )


def recovered(
    n: int, n_seeds: int, wanted: tuple[str, str, str], draw: Callable[[np.random.Generator], Families]
) -> tuple[float, float]:
    """Shares of reports that say what was planted, and that say its opposite.

    Args:
        wanted: kind, family and direction of the statement.
    """
    generator = np.random.default_rng(n_seeds)
    found, opposite = 0, 0
    for _ in range(n):
        told = said(judge(state([draw(generator) for _ in range(n_seeds)])))
        directions = {each.direction for each in told if (each.kind, each.family) == wanted[:2]}
        found += wanted[2] in directions
        opposite += bool(directions - {wanted[2]})
    return found / n, opposite / n


COUNTS: dict[str, Mapping[int, float]] = {  # chances of a seed's count of the family, of 12 blocks
    "nearly always 4": {3: 0.2, 4: 0.8},
    "3 or 4": {3: 0.5, 4: 0.5},
    "2 to 5": {2: 0.25, 3: 0.25, 4: 0.25, 5: 0.25},
    "1, now and then 6": {1: 0.8, 6: 0.2},
}


def coverage(n: int, n_seeds: int, counts: Mapping[int, float]) -> float:
    """Share of 95% intervals that hold the true mean share of blocks."""
    generator = np.random.default_rng(n_seeds)
    truth = sum(count * chance for count, chance in counts.items()) / N_SLOTS
    drawn = generator.choice(list(counts), size=(n, n_seeds), p=list(counts.values())) / N_SLOTS
    held = [low <= truth <= high for low, high in (ratio_interval(row.tolist(), [N_SLOTS] * n_seeds) for row in drawn)]
    return float(np.mean(held))


def measured(n: int, seeds: Sequence[int] = SEEDS, noises: Sequence[float] = NOISES) -> dict[str, Any]:
    """All three tables, as JSON."""
    false: dict[str, dict[str, float]] = {}
    for name, blocks in BUDGETS.items():
        false[name] = {str(k): false_reports(n, k, lambda g, b=blocks: exchangeable_seed(b, g)) for k in seeds}
    false["slots fixed and forbidden"] = {str(k): false_reports(n, k, partly_fixed_seed, PARTLY_FIXED) for k in seeds}
    planted: dict[str, dict[str, dict[str, tuple[float, float]]]] = {}
    for name, (kind, direction, slots) in PLANTED.items():
        planted[name] = {
            str(k): {
                str(noise): recovered(
                    n, k, (kind, "attention", direction), lambda g, s=slots, x=noise: planted_seed(s, x, g)
                )
                for noise in noises
            }
            for k in seeds
        }
    planted["order, SGU before attention"] = {
        str(k): {
            str(noise): recovered(n, k, ("order", "attention", "after"), lambda g, x=noise: ordered_seed(x, g))
            for noise in noises
        }
        for k in seeds
    }
    covered = {name: {str(k): coverage(4 * n, k, counts) for k in seeds} for name, counts in COUNTS.items()}
    return {"n": n, "false": false, "planted": planted, "coverage": covered}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=500, metavar="N", help="reports of each cell")
    asked = parser.parse_args(arguments)
    began = time.process_time()
    found = measured(asked.n)
    print(f"reports on nothing that say something, of {asked.n} each; goal: at most 5%")
    print(f"{'blocks of a seed':<32}" + "".join(f"{k:>4} seeds" for k in SEEDS))
    for name, row in found["false"].items():
        print(f"{name:<32}" + "".join(f"{row[str(k)]:>10.1%}" for k in SEEDS))
    print(f"\nplanted rules recovered, of {asked.n} each; goal: 95% with {GOAL_SEEDS} seeds and noise {GOAL_NOISE}")
    print(f"{'rule':<32}seeds" + "".join(f"{f'noise {noise}':>11}" for noise in NOISES) + "  its opposite, at most")
    for name, by_seeds in found["planted"].items():
        for k in SEEDS:
            cells = by_seeds[str(k)]
            opposite = max(cells[str(noise)][1] for noise in NOISES)
            print(f"{name:<32}{k:>5}" + "".join(f"{cells[str(x)][0]:>11.1%}" for x in NOISES) + f"{opposite:>12.1%}")
    print(f"\n95% intervals of a ratio that hold the true one, of {4 * asked.n} each")
    print(f"{'count by seed, of 12 blocks':<32}" + "".join(f"{k:>4} seeds" for k in SEEDS))
    for name, row in found["coverage"].items():
        print(f"{name:<32}" + "".join(f"{row[str(k)]:>10.1%}" for k in SEEDS))
    print(f"\n{time.process_time() - began:.0f} s of one processor")
    print(json.dumps(found))


if __name__ == "__main__":
    main()
