"""What searches leave, made by hand for reports: with everything, and with as little as older versions kept."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from nas.report.data import Evidence, KeptArchitecture, KeptRule, KeptTable, ReportData, Step, Trial

LABELS = ("attention", "ffn", "identity", "sgu", "mgk")
SEARCH = "0190a000-0000-7000-8000-000000000001"
TABLE = "a1" * 16
HOSTILE = (
    "</title><script>alert('x')</script>|`*_[a](http://evil.example)\n# \x1b[31m\u202e<img src=x onerror=alert(1)>"
)
_WORDS = ("0190a000", "a1a1", "budget", "parent")  # what the program itself writes


def own_id(number: int) -> str:
    """An id as the database makes them."""
    return f"0190a000-0000-7000-8000-{number:012x}"


def probabilities(n_slots: int, lead: float, n_candidates: int = 5) -> list[list[float]]:
    """(L, K): slot i leads with candidate i modulo K."""
    rest = (1 - lead) / (n_candidates - 1)
    return [[lead if k == slot % n_candidates else rest for k in range(n_candidates)] for slot in range(n_slots)]


def request(n_slots: int, **task: Any) -> dict[str, Any]:
    return {
        "name": "made up",
        "space": {"n_slots": n_slots, "d_model": 64, "candidates": [{"label": x, "block": x} for x in LABELS]},
        "task": {"objective": "causal_lm", "dataset": "python-stdlib", "train_length": 128, **task},
        "trials": {"n_seeds": 6},
        "retrain": {"n_steps": 800, "n_seeds": 6},
    }


def comparison(first: str, second: str, difference: float, half: float, **changes: Any) -> dict[str, Any]:
    low, high = difference - half, difference + half
    verdict = "better" if high < 0 else "worse" if low > 0 else "cannot tell"
    return {
        "first": first, "second": second, "unit": "bits per byte", "difference": difference, "low": low, "high": high,
        "verdict": verdict, "n_seeds": 6, "detectable": 0.03, "latency": {"ratio": 0.9, "low": 0.88, "high": 0.93},
        **changes,
    }  # fmt: skip


def retrained(name: str, number: int, mean: float, cost: float, n_slots: int) -> dict[str, Any]:
    seeds = list(range(6))
    return {
        "name": name, "role": "budget" if name == "derived" else name, "string": "AF" * (n_slots // 2),
        "slots": [LABELS[(slot + number) % 2] for slot in range(n_slots)], "architecture": own_id(200 + number),
        "trials": [own_id(1000 + 10 * number + seed) for seed in seeds], "lr": 0.002, "seeds": seeds,
        "val_loss": [mean - 0.01 + 0.001 * seed for seed in seeds],
        "test": {str(seed): mean + 0.002 * (seed - 2.5) for seed in seeds},
        "mean": mean, "low": mean - 0.01, "high": mean + 0.01, "predicted_ms": cost, "parameters": 1_234_567,
        "flops": 98_765_432, "cache_bytes": 65_536,
    }  # fmt: skip


STATEMENTS: list[dict[str, Any]] = [
    {
        "id": own_id(300), "kind": "ratio", "family": "attention", "statement": "1 of 4 blocks is attention",
        "verdict": "suggested", "reason": "it was found by 6 seeds and not retrained", "statistic": 4.0, "p": None,
        "p_corrected": None, "low": 3.25, "high": 4.75, "n_seeds": 6, "by_seed": [4, 4, 3, 5, 4, None], "at": 4.0,
        "found_at": {"n_slots": 6, "d_model": 64, "train_length": 128, "dataset": "python-stdlib", "n_steps": 1200,
                     "budget": {"latency": None}},
        "confirmation": None,
    },
    {
        "kind": "position", "family": "attention", "statement": "attention stands early", "verdict": "supported",
        "reason": "its layout was better than layouts of equal cost on fresh seeds", "statistic": -2.5, "p": 0.001,
        "p_corrected": 0.004, "low": None, "high": None, "n_seeds": 6, "by_seed": [1, 1, 2, 1, 1, 1], "found_at": {},
        "confirmation": {"difference": -0.03, "low": -0.05, "high": -0.01, "verdict": "better", "n_seeds": 6},
    },
    {
        "kind": "cut", "family": "sgu", "statement": "no sgu in the last third", "verdict": "not supported",
        "reason": "slots permuted by chance do as well", "statistic": 0.4, "p": 0.4, "p_corrected": 1.0, "low": None,
        "high": None, "n_seeds": 6, "by_seed": [0, 1, 0, 0, 1, 1], "found_at": {}, "confirmation": None,
    },
]  # fmt: skip


def search_trial(seed: int, n_slots: int, reports: int = 9) -> Trial:
    steps = tuple(
        Step(
            step=100 * number,
            train_loss=3.0 - 0.1 * number if number else None,
            val_loss_soft=2.9 - 0.1 * number,
            val_loss_argmax=2.95 - 0.1 * number - 0.01 * seed,
            tau=5.0 * 0.7**number,
            expected_ms=10.0 + number / 10,
            probabilities=probabilities(n_slots, 0.2 + 0.08 * number),
        )
        for number in range(reports)
    )
    evidence = Evidence(steps[-1].step, steps[-1].probabilities)
    return Trial(own_id(100 + seed), "search", 0, seed, "succeeded", 800, steps=steps, evidence=evidence)


def entry(seed: int, n_slots: int) -> dict[str, Any]:
    """Of `probabilities` in a result, with a parsimony pass: each block is dearer and better than identity."""
    path = [slot % 5 for slot in range(n_slots)]
    nats = [
        [0.0 if k == own else 0.01 + 0.001 * slot if k == 2 else None for k in range(5)]
        for slot, own in enumerate(path)
    ]
    errors = [[None if value is None else 0.002 for value in row] for row in nats]
    return {
        "sample": 0, "seed": seed, "step": 800, "labels": list(LABELS), "probabilities": probabilities(n_slots, 0.84),
        "null_gaps": [0.7] * n_slots, "z": [[-3.5, 0.5, 1.0, -0.5, 2.0]] * n_slots, "path": path, "effect_nats": nats,
        "effect_se": errors,
    }  # fmt: skip


def lengths(unit: str = "bits per byte") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [
        {
            "length": length, "unit": unit, "n_windows": 512, "derived": {"bits": bits, "se": 0.01, "why": None},
            "parent": {"bits": bits + 0.03, "se": 0.01, "why": None},
            "difference": {"bits": -0.03, "low": -0.045, "high": -0.0125, "verdict": "better"},
            "positions": {"width": 8, "derived": [3.0, 2.0], "parent": [3.1, 2.1]},
        }
        for length, bits in ((32, 2.6), (128, 2.4))
    ]  # fmt: skip
    why = "candidate 'sgu' cannot run there: it was made for 128 tokens"
    found.append({**found[1], "length": 512, "derived": {"bits": None, "se": None, "why": why}, "difference": None})
    return found


def result(n_slots: int = 6, n_seeds: int = 6) -> dict[str, Any]:
    """Of a search with everything in it."""
    slots = [LABELS[slot % 5] for slot in range(n_slots)]
    derived = {
        "role": "budget", "string": "AF.SM", "slots": slots, "undecided": [2], "sample": 0, "seed": 0,
        "predicted_ms": 8.5, "expected_ms": 9.0,
        "bounds": [{"name": "latency", "unit": "ms", "target": 9.5, "predicted": 8.5, "expected": 9.0, "measured": 8.6,
                    "low": 8.4, "high": 8.9, "verdict": "within"}],
    }  # fmt: skip
    parent = {**derived, "role": "parent", "slots": [LABELS[slot % 2] for slot in range(n_slots)], "undecided": [],
              "sample": None, "seed": None, "predicted_ms": 11.0, "bounds": []}  # fmt: skip
    timing = {"ratio": 0.774, "low": 0.75, "high": 0.806, "repeatability": 0.018, "derived_ms": 6.85, "parent_ms": 8.86}
    serve = {"mode": "prefill", "batch": 8, "query_length": 128, "memory_length": 0}
    names = ("derived", "interleaved", "sandwich", "random 1", "rule: ratio")
    return {
        "search": {
            "id": SEARCH, "name": "made up", "dataset": "python-stdlib", "dataset_fingerprint": "f" * 64,
            "latency_table": TABLE, "device": {"processor": "made up", "threads": "1", "torch": "2.13.0"},
            "software": {"blockwright": "0.1.0"}, "objective": "causal_lm", "train_length": 128, "serve": [serve],
            "candidates": [{"label": x, "block": x} for x in LABELS],
            "slot_ms": {"attention": 2.0, "ffn": 1.5, "identity": 0.0, "sgu": 1.75, "mgk": 2.5}, "sample": 0,
            "values": {},
        },
        "probabilities": [entry(seed, n_slots) for seed in range(n_seeds)],
        "architectures": [*({**derived, "seed": seed} for seed in range(n_seeds)), parent],
        "derived": derived, "parent": parent,
        "rule": {"statement": "1 search, 6 seeds; attention in slots 1, 6 of 6", "verdict": "suggested", "n_seeds": 6},
        "rules": STATEMENTS,
        "quality": {"unit": "bits per byte", "derived_bits_per_byte": 2.371, "parent_bits_per_byte": 2.42,
                    "difference": -0.049, "low": -0.063, "high": -0.0365, "verdict": "better", "n_windows": 512,
                    "n_seeds": 6},
        "latency": timing, "latencies": [{"serve": serve, **timing}],
        "advice": {"take": "derived", "sentence": "Take what was derived: it is better by 0.049 bits per byte."},
        "comparisons": [
            comparison("derived", "interleaved", -0.049, 0.012),
            comparison("derived", "sandwich", 0.001, 0.02, latency=None),
            comparison("derived", "random 1", -0.02, 0.015, detectable=None),
            comparison("rule: ratio", "interleaved", 0.04, 0.012),
        ],
        "power": [{"message": "6 paired seeds find differences of 0.0300 bits per byte 8 times in 10", "n_seeds": 6}],
        "retrained": [retrained(name, n, 2.371 + 0.012 * n, 6.85 + n, n_slots) for n, name in enumerate(names)],
        "metrics": [{"name": "bits per byte", "unit": "bits", "derived": 2.371, "parent": 2.42}],
        "lengths": lengths(), "positions": {"derived": [5.0, 3.0, 2.5], "parent": [5.1, None, 2.6]},
        "samples": [
            {"sample": 0, "values": {"/method/lr": 0.002}, "state": "succeeded", "reason": None, "seeds": [0, 1],
             "losses": [2.1, 2.2], "loss": 2.15, "sd": 0.07, "cost": None},
            {"sample": 1, "values": {"/method/lr": 0.01}, "state": "pruned", "reason": "behind at step 400",
             "seeds": [0, 1], "losses": [], "loss": None, "sd": None, "cost": None},
        ],
        "winner": {"sample": 0, "values": {}, "sentence": "cannot tell sample 0 from sample 1"},
        "export": {"file": "export.zip", "sha256": "e" * 64, "logits_max_abs_difference": 0.0},
        "cut_short": ["search 0, seed 1: ended at step 700 of 800: max_minutes is 60"],
        "seconds": {"measuring": 7.2, "searching": 83.0, "total": 182.1},
    }  # fmt: skip


def everything(n_slots: int = 6, n_seeds: int = 6, reports: int = 9) -> ReportData:
    """A search that has succeeded, with all that today's version leaves."""
    trials = tuple(search_trial(seed, n_slots, reports) for seed in range(n_seeds))
    trained = tuple(
        Trial(
            own_id(1000 + 10 * number + seed), "retrain", number, seed, "succeeded", 800,
            architecture=own_id(200 + number),
            steps=tuple(Step(step, val_loss=2.5 - step / 1000 + number / 10) for step in (0, 200, 400)),
        )
        for number in range(5)
        for seed in range(6)
    )  # fmt: skip
    slots = tuple(LABELS[slot % 5] for slot in range(n_slots))
    return ReportData(
        search_id=SEARCH,
        name="made up",
        state="succeeded",
        origin="service",
        request=request(n_slots),
        result=result(n_slots, n_seeds),
        created_at="2026-11-30T12:00:00.000Z",
        trials=(*trials, *trained),
        architectures=(
            KeptArchitecture(own_id(200), "budget", "AF.SM", trials[0].id, slots, (2,), 8.5, True),
            KeptArchitecture(own_id(201), "parent", "AFAFA", None, slots, (), 11.0),
        ),
        rules=(KeptRule(own_id(300), "1 of 4 blocks is attention", "suggested"),),
        tables=(KeptTable(TABLE, {
            "device": {"processor": "made up"}, "offset_ms": 0.5, "scale": 1.01, "error_median": 0.018,
            "error_p95": 0.08, "n_networks": 10,
            "serve": {"mode": "prefill", "batch": 8, "query_length": 128, "memory_length": 0},
            "entries": {"k": {"block": "ffn", "options": {"ratio": 4}, "median_ms": 1.5, "iqr_ms": 0.1, "n_runs": 72}},
        }),),
        warnings=("seed 1: the ranking flipped in slot 2 while settling",),
    )  # fmt: skip


def hostile(value: Any) -> Any:
    """Every text of a JSON value with an attack behind it; ids, letters and names of fields stay."""
    if isinstance(value, Mapping):
        return {name: hostile(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(hostile(each) for each in value)
    return f"{value}{HOSTILE}" if isinstance(value, str) and not value.startswith(_WORDS) else value


def without_numbers(value: Any) -> Any:
    """Every number of a JSON value as NaN."""
    if isinstance(value, Mapping):
        return {name: without_numbers(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(without_numbers(each) for each in value)
    return math.nan if isinstance(value, float) else value
