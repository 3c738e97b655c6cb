from __future__ import annotations

from typing import Any

import pytest
from rich.console import Console

from api import show
from api.bought import bought_table, held
from api.figures import decimals
from api.looks import looks, strip
from api.result_schemas import Result
from nas.leading import leading

CANDIDATES = [
    {"label": "attention", "block": "attention"},
    {"label": "ffn", "block": "ffn"},
    {"label": "identity", "block": "identity"},
    {"label": "mgk4", "block": "mgk"},
    {"label": "mine", "block": "not-installed-here"},
]


def architecture(role: str, slots: list[str], seed: int | None, undecided: list[int]) -> dict[str, Any]:
    letters = {"attention": "A", "ffn": "F", "identity": ".", "mgk4": "M"}
    return {
        "role": role,
        "string": "".join(letters[label] for label in slots),
        "slots": slots,
        "undecided": undecided,
        "sample": 0 if seed is not None else None,
        "seed": seed,
        "predicted_ms": 1.5,
    }


RESULT: dict[str, Any] = {
    "search": {"id": "x", "name": "tiny", "dataset": "python-docs", "candidates": CANDIDATES},
    "probabilities": [
        {
            "sample": 0,
            "seed": 7,
            "step": 100,
            "labels": [candidate["label"] for candidate in CANDIDATES],
            "probabilities": [[0.6, 0.1, 0.1, 0.1, 0.1], [0.24, 0.26, 0.2, 0.2, 0.1]],
            "null_gaps": [0.2, 0.2],
        }
    ],
    "architectures": [
        architecture("budget", ["attention", "identity"], 7, [1]),
        architecture("parent", ["attention", "ffn"], None, []),
    ],
    "derived": architecture("budget", ["attention", "identity"], 7, [1]),
    "parent": architecture("parent", ["attention", "ffn"], None, []),
    "rule": {"statement": "1 search, 1 seed: suggested; attention in slot 1 of 2", "verdict": "suggested"},
    "quality": {
        "unit": "bits per byte",
        "derived_bits_per_byte": 1.875,
        "parent_bits_per_byte": 1.9,
        "difference": -0.025,
        "low": -0.05,
        "high": 0.01,
        "verdict": "cannot tell",
        "n_windows": 512,
        "n_seeds": 2,
    },
    "latency": {"ratio": 0.91, "low": 0.9, "high": 0.92, "repeatability": 0.005, "derived_ms": 1.0, "parent_ms": 1.1},
    "export": {"file": "export.zip", "sha256": "0" * 64, "logits_max_abs_difference": 1e-7},
    "seconds": {"measuring": 1.2, "searching": 30.0, "total": 60.4},
}


def printed(result: dict[str, Any]) -> str:
    console = Console(record=True, width=140, highlight=False)
    show.print_result(result, console)
    return console.export_text()


def test_a_result_is_printed_with_everything_that_was_found() -> None:
    text = printed(RESULT)
    for line in (
        "probabilities of seed 7 after 100 steps",
        "A attention",
        "1 search, 1 seed: suggested; attention in slot 1 of 2",
        "1.875 bits per byte, parent 1.900: -0.025 (-0.050 to +0.010, 95%; 512 windows, 2 seeds)",
        "cannot tell: the interval holds both better and worse",
        "0.910 of the parent's (0.900 to 0.920; repeatability 0.005): 1.00 ms against 1.10 ms",
        "export.zip, logits equal to the trained model's within 1.0e-07",
        "measuring 1, searching 30, total 60",
    ):
        assert line in text
    undecided = [line for line in text.splitlines() if "undecided" in line]
    assert len(undecided) == 1
    assert undecided[0].split()[0] == "2"


def test_quality_of_a_masked_model_is_told_in_its_own_unit() -> None:
    masked = printed({**RESULT, "quality": {**RESULT["quality"], "unit": "bits per masked byte"}})
    assert "1.875 bits per masked byte, parent 1.900" in masked
    older = {name: value for name, value in RESULT["quality"].items() if name != "unit"}
    assert "1.875 bits per byte, parent 1.900" in printed({**RESULT, "quality": older}), "results from before say bytes"


def test_labels_are_of_examples_not_of_windows() -> None:
    search = {**RESULT["search"], "objective": "sequence_classification"}
    assert "95%; 512 examples, 2 seeds)" in printed({**RESULT, "search": search})


def test_a_small_difference_is_not_told_as_0() -> None:
    quality = {**RESULT["quality"], "difference": -0.00012, "low": -0.0002, "high": -0.00004}
    assert "-0.00012 (-0.00020 to -0.00004, 95%;" in printed({**RESULT, "quality": quality})
    assert [decimals(0, value) for value in (0, 2.0, 0.012, -0.0051, 1e-12)] == [3, 3, 3, 4, 6]


def test_the_metrics_of_the_field_stand_beside_what_they_are_held_against() -> None:
    accuracy = {
        "name": "accuracy", "unit": "share of examples", "lower_is_better": False,
        "derived": 0.75, "parent": 0.7, "majority": 0.5, "best": None,
    }  # fmt: skip
    same = {**accuracy, "name": "bits per byte"}
    told = printed({**RESULT, "metrics": [same, accuracy, {**accuracy, "name": "macro F1", "derived": None}]})
    assert "derived 0.75, parent 0.7, majority 0.5 (share of examples)" in told
    assert "parent 0.7, majority 0.5 (share of examples)" in told
    sure = {**accuracy, "difference": 0.05, "low": 0.02, "high": 0.08}
    assert "parent 0.7, derived minus parent +0.050 (95%: +0.020 to +0.080 over seeds), majority" in printed(
        {**RESULT, "metrics": [sure]}
    )
    assert told.count("majority 0.5") == 2, "bits stand as the test quality already"


def test_lengths_are_told_in_one_line_with_what_keeps_a_network_out() -> None:
    score = {"bits": 2.5, "se": 0.01, "why": None}
    why = "candidate 'sgu' cannot run there: its spatial weights are one for each pair of positions"
    lengths = [
        {"length": 32, "derived": score, "parent": {**score, "bits": 2.25}, "difference": {"verdict": "worse"}},
        {"length": 512, "derived": {"bits": None, "se": None, "why": why}, "parent": score, "difference": None},
    ]
    text = " ".join(printed({**RESULT, "lengths": lengths}).split())
    assert f"by length 32 tokens 2.500, parent 2.250 (worse); 512 tokens none: {why}, parent 2.500" in text
    alone = printed({**RESULT, "lengths": [{**lengths[0], "parent": None, "difference": None}]})
    assert "32 tokens 2.500 (" not in alone
    assert "32 tokens 2.500, parent" not in alone


def test_latency_is_told_for_each_serve_mode() -> None:
    timed = {"ratio": 1.5, "low": 1.4, "high": 1.6, "repeatability": 0.01, "derived_ms": 3.0, "parent_ms": 2.0}
    first = {"serve": {"mode": "prefill", "batch": 8, "query_length": 128}, **RESULT["latency"]}
    second = {"serve": {"mode": "decode", "batch": 1, "query_length": 64}, **timed}
    text = " ".join(printed({**RESULT, "latencies": [first, second]}).split())
    assert text.count("of the parent's") == 2
    assert "decode, 1 x 64 tokens 1.500 of the parent's (1.400 to 1.600; repeatability 0.010): 3.00 ms" in text


def test_candidates_of_one_block_are_told_by_their_labels() -> None:
    assert "slots" not in {line.split()[0] for line in printed(RESULT).splitlines() if line.strip()}
    search = {**RESULT["search"], "candidates": [*CANDIDATES, {**CANDIDATES[0], "label": "local"}]}
    text = printed({**RESULT, "search": search})
    assert f" slots         {', '.join(RESULT['derived']['slots'])}" in [line.rstrip() for line in text.splitlines()]


def test_the_printed_result_is_what_the_service_describes() -> None:
    assert Result.model_validate(RESULT).model_dump(exclude_unset=True) == RESULT


def test_a_result_without_a_parent_has_no_comparison() -> None:
    text = printed({**RESULT, "parent": None, "quality": None, "latency": None})
    assert "architecture" in text
    assert "parent" not in text
    assert "verdict" not in text


def test_a_strip_has_a_letter_a_slot_in_the_colour_of_its_family() -> None:
    drawn = strip(["attention", "identity", "mgk4", "mine"], looks(CANDIDATES), undecided=[1])
    assert drawn.plain == " A  .? M  ? "
    assert [str(span.style) for span in drawn.spans] == [
        "bold #000000 on #4477AA",
        "bold #000000 on #BBBBBB",
        "bold #000000 on #AA3377",
        "bold #000000 on #BBBBBB",
    ]


@pytest.mark.parametrize(
    ("row", "gap", "leader", "undecided"),
    [
        ([0.5, 0.3, 0.2], 0.1, 0, False),
        ([0.34, 0.33, 0.33], 0.1, 0, True),
        ([0.5, 0.5, 0.0], 0.0, 0, True),
        ([0.0, 1.0, 0.0], 5.0, 1, False),
        ([None, 0.7, 0.3], 0.1, 1, False),
        ([None, None, None], 0.1, 0, True),
        ([1.0], 0.1, 0, False),
    ],
)
def test_a_slot_is_undecided_where_its_leader_is_within_chance(
    row: list[float | None], gap: float, leader: int, undecided: bool
) -> None:
    assert leading([row], [gap]) == ([leader], [0] if undecided else [])


def test_a_strip_under_way_names_no_candidate_where_the_slot_is_undecided() -> None:
    labels = [candidate["label"] for candidate in CANDIDATES]
    equal, clear = [0.2] * 5, [0.6, 0.1, 0.1, 0.1, 0.1]
    row = {"probabilities": [equal, clear], "null_gaps": [0.0, 0.5]}
    drawn = show.leading_strip(labels, looks(CANDIDATES), row)
    assert drawn.plain.split() == ["?", "A"]


def test_a_result_tells_what_each_block_buys_and_what_it_takes() -> None:
    labels = RESULT["probabilities"][0]["labels"]
    (seed,) = RESULT["probabilities"]
    evidence: dict[str, Any] = {
        "z": [[-3.25, 0.0, 0.5, None, 0.0], [0.0] * 5],
        "path": [0, 2],
        "effect_nats": [[0.0, None, 0.125, None, None], [-0.001, None, 0.0, None, None]],
        "effect_se": [[0.0, None, 0.01, None, None], [0.002, None, 0.0, None, None]],
    }
    search = {**RESULT["search"], "slot_ms": dict(zip(labels, (0.5, 0.25, 0.0, 0.25, 0.25), strict=True))}
    whole = {**RESULT, "search": search, "probabilities": [{**seed, **evidence}]}
    rows = [" ".join(line.split()) for line in printed(whole).splitlines()]
    assert "what each block of seed 7 buys after 100 steps" in rows
    assert "1 A attention +0.1250 ± 0.0100 +0.500 -3.2 identity" in rows
    assert "each comparison was made with the other slots as they stood then" in " ".join(rows)
    assert "2 . identity -0.0010 ± 0.0020 -0.500 +0.0 attention undecided" in rows
    assert "1 0.600 -3.2 0.100 +0.0 0.100 +0.5 0.100 - 0.100 +0.0" in rows
    assert Result.model_validate(whole).model_dump(exclude_unset=True) == whole


def test_a_result_says_which_trials_time_ended() -> None:
    line = "trial retrain-0-7: the retraining ended after 1 of 6 weight updates: max_minutes is 60"
    whole = {**RESULT, "cut_short": [line]}
    assert f"time was up {line}" in [" ".join(row.split()) for row in printed(whole).splitlines()]
    assert Result.model_validate(whole).cut_short == [line]
    assert "time was up" not in printed(RESULT)


@pytest.mark.parametrize(
    ("estimate", "told"),
    [
        (
            {"memory_bytes": 1_234_000_000, "seconds": 5520.0, "prune_seconds": 0.0, "measured": None},
            "about 92 min and 1.2 GB a trial",
        ),
        (
            {
                "memory_bytes": 210_000_000, "seconds": 85.2, "prune_seconds": 40.4,
                "measured": {"seconds": 83.4, "prune_seconds": 7.25},
            },
            "about 85 s and 210 MB a trial, parsimony pass about 40 s more; measured 83 s, parsimony pass 7.2 s",
        ),
        (
            {"reason": "trials differ", "measured": {"seconds": 3.0, "prune_seconds": 0.0}},
            "no estimate of a trial: trials differ; measured 3.0 s",
        ),
    ],
    ids=["not measured", "measured", "no estimate"],
)  # fmt: skip
def test_a_result_tells_what_a_trial_was_estimated_to_take_and_took(estimate: dict[str, Any], told: str) -> None:
    whole = {**RESULT, "estimate": estimate}
    assert f"a search trial {told}" in [" ".join(row.split()) for row in printed(whole).splitlines()]
    assert Result.model_validate(whole).model_dump(exclude_unset=True) == whole
    assert "a search trial" not in printed(RESULT)


def test_what_was_never_compared_has_no_figure() -> None:
    found = held({"path": [0, 2], "z": None, "effect_nats": None, "effect_se": None}, by_chance=[1])
    assert found is not None
    assert found.undecided == [1]
    console = Console(record=True, width=140, highlight=False)
    console.print(bought_table(["attention", "ffn", "mgk4"], looks(CANDIDATES), found, None, "title"))
    rows = [" ".join(line.split()) for line in console.export_text().splitlines()]
    assert "1 A attention - - - nothing" in rows
    assert "2 M mgk4 - - - nothing undecided" in rows
    assert held({"path": None}, by_chance=[]) is None


def test_every_layout_is_told_against_the_derived_one_with_what_few_seeds_cannot_show() -> None:
    layouts = [
        {"name": "derived", "string": "A.", "slots": ["attention", "identity"]},
        {"name": "all-ffn", "string": "FF", "slots": ["ffn", "ffn"]},
    ]
    compared = {
        "first": "derived", "second": "all-ffn", "unit": "bits per byte", "difference": -0.01, "low": -0.05,
        "high": 0.03, "verdict": "cannot tell", "n_seeds": 3, "detectable": 0.0342,
        "latency": {"ratio": 0.8, "low": 0.7, "high": 0.9},
    }  # fmt: skip
    power = [{"message": "retraining: 3 paired seeds show a difference from 0.034 bits per byte on"}]
    text = printed({**RESULT, "retrained": layouts, "comparisons": [compared], "power": power})
    words = " ".join(text.split())
    assert "all-ffn FF" in words
    assert (
        "against all-ffn -0.010 bits per byte (-0.050 to +0.030, 95%; 3 seeds): cannot tell; 0.034 or more would be "
        "seen 8 times in 10; latency 0.800 of its (0.700 to 0.900)"
    ) in words
    assert "told before retraining: 3 paired seeds show a difference from 0.034 bits per byte on" in words
    of_parent = printed({**RESULT, "comparisons": [{**compared, "second": "interleaved"}]})
    assert "against interleaved" not in of_parent
    assert "both better and worse; 0.034 or more would be seen 8 times in 10" in " ".join(of_parent.split())
    one = {**compared, "n_seeds": 1, "detectable": None, "latency": None}
    words = " ".join(printed({**RESULT, "comparisons": [one]}).split())
    assert "(-0.050 to +0.030, 95%; 1 seed, so of the windows alone): cannot tell" in words
    assert "8 times in 10" not in words


def test_what_to_take_stands_beneath_the_verdict() -> None:
    sentence = "Keep the interleaved parent: nothing shows what was derived to be better."
    lines = printed({**RESULT, "advice": {"take": "interleaved", "sentence": sentence}}).splitlines()
    (so,) = [number for number, line in enumerate(lines) if line.split()[:1] == ["so"]]
    assert sentence in lines[so]
    assert any(line.split()[:1] == ["verdict"] for line in lines[:so])
    assert "Keep" not in printed({**RESULT, "advice": None})


def test_a_ratio_is_told_with_its_range_over_the_seeds() -> None:
    ratio = {
        "kind": "ratio", "family": "attention", "statement": "one block in 2.7 is attention", "verdict": "suggested",
        "reason": "six seeds", "range_low": 2.0, "range_high": 4.0, "n_seeds": 6, "by_seed": [2, 2, 2, 4, 4, 4],
    }  # fmt: skip
    without = {**ratio, "range_low": None, "range_high": None, "by_seed": [2, 2, 2, 4, 4, None]}
    place = {**ratio, "kind": "position", "statement": "attention stands early"}
    told = [" ".join(row.split()) for row in printed({**RESULT, "rules": [ratio, without, place]}).splitlines()]
    assert "suggested: one block in 2.7 is attention, 2 : 1 to 4 : 1 over the seeds" in told
    assert "suggested: one block in 2.7 is attention, 2 : 1 to none over the seeds" in told
    assert "suggested: attention stands early" in told


def test_samples_and_bounds_are_told_with_their_verdicts() -> None:
    samples = [
        {"sample": 0, "values": {"/method/lr": 0.002}, "state": "succeeded", "reason": None, "seeds": [0, 1],
         "losses": [2.0, 2.5], "loss": 2.25, "sd": 0.35, "cost": 1.5},
        {"sample": 1, "values": {"/method/lr": 0.2}, "state": "pruned", "reason": "pruned at step 4: behind 1 of 1",
         "seeds": [0], "losses": [3.0], "loss": 3.0, "sd": None, "cost": None},
        {"sample": 2, "values": {"/method/lr": 1.0}, "state": "failed", "reason": "diverged", "seeds": [0, 1],
         "losses": [], "loss": None, "sd": None, "cost": None},
    ]  # fmt: skip
    bound = {
        "name": "cache_bytes", "unit": "bytes", "target": 4096, "predicted": 2048, "expected": 3000.5,
        "measured": None, "low": None, "high": None, "verdict": "within",
    }  # fmt: skip
    timed = {**bound, "name": "latency", "unit": "ms", "measured": 1.25, "low": 1.0, "high": 1.5}
    won = {
        "sample": 0, "values": {"/method/lr": 0.002}, "runner_up": None, "margin": None, "se": None, "low": None,
        "high": None, "clear": False, "sentence": "sample 0 (lr 0.002) is the only one of 3 that came to its end",
    }  # fmt: skip
    untimed = {**bound, "name": "latency", "unit": "ms", "verdict": "cannot tell", "reason": "of another device"}
    derived = {**RESULT["derived"], "bounds": [bound, timed, untimed]}
    whole = {**RESULT, "samples": samples, "winner": won, "derived": derived}
    assert Result.model_validate(whole).model_dump(exclude_unset=True) == whole
    text = " ".join(printed(whole).split())
    assert "sample 0 lr 0.002: 2.2500 nats per token (sd 0.3500 over 2 seeds), costs 1.5" in text
    assert "sample 1 lr 0.2: 3.0000 nats per token; pruned at step 4: behind 1 of 1" in text
    assert "sample 2 lr 1: failed, diverged" in text
    assert f"best sample {won['sentence']}" in text
    assert "budget, cache bytes within: at most 4096 bytes; predicted 2048, 3000.5 expected when the search" in text
    assert "measured 1.25 (1 to 1.5, 95%)" in text
    assert "budget, latency cannot tell: at most 4096 ms; predicted 2048, 3000.5 expected when the search" in text
    assert "ended; of another device" in text
