"""What a request can ask of the engine, at and beyond its limits: taken, or refused by name in words."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.api.running import TINY, Running

ROOT = "/api/v1/searches"
FREE: dict[str, Any] = {}
VARIED = {"pointer": "/method/lr", "low": 0.001, "high": 0.01}


def changed(path: str, value: Any) -> dict[str, Any]:
    """TINY with one value put in at a dotted path."""
    body: dict[str, Any] = json.loads(json.dumps(TINY))
    place = body
    *parents, last = path.split(".")
    for name in parents:
        place = place.setdefault(name, {})
    place[last] = value
    return body


REFUSED: dict[str, tuple[str, Any, str]] = {
    "a slot too few": ("space.layout", [FREE], "layout has 1 entries and n_slots is 2"),
    "a slot too many": ("space.layout", [FREE] * 3, "layout has 3 entries and n_slots is 2"),
    "513 slots": ("space.layout", [FREE] * 513, "at most 512 items"),
    "an unknown label": ("space.layout", ["mgk", FREE], "layout names label 'mgk' in slot 1; the space has attention"),
    "an unknown label forbidden": ("space.layout", [{"forbidden": ["sgu"]}, FREE], "layout names label 'sgu'"),
    "a path for a label": ("space.layout", ["../../etc/passwd", FREE], "layout names label '../../etc/passwd'"),
    "a long label": ("space.layout", ["x" * 41, FREE], "at most 40 characters"),
    "fixed on nothing": ("space.layout", [{"fixed": True}, FREE], "a fixed slot needs a present label"),
    "fixed and forbidden": (
        "space.layout", [{"present": "ffn", "fixed": True, "forbidden": ["ffn"]}, FREE], "'ffn' is forbidden in its",
    ),
    "all forbidden": (
        "space.layout", [FREE, {"forbidden": ["attention", "ffn", "identity"]}], "forbids every label in slot 2",
    ),
    "33 forbidden": ("space.layout", [{"forbidden": ["ffn"] * 33}, FREE], "at most 32 items"),
    "a prior of 6 nats": ("space.layout_prior", 6, "less than or equal to 5"),
    "a length of 1": ("task.serve_lengths", [1, 16], "serve_lengths has 1; a length must be from 2 to 65536"),
    "a length of 65537": ("task.serve_lengths", [65537], "serve_lengths has 65537"),
    "a length twice": ("task.serve_lengths", [8, 8], "has a length twice"),
    "17 lengths": ("task.serve_lengths", [*range(2, 19)], "at most 16 items"),
    "an unknown mode": ("task.serve", [{"mode": "train"}], "'prefill', 'decode' or 'training'"),
    "nine modes": ("task.serve", [{}] * 9, "at most 8 items"),
    "warm-up and settling are all": ("method", {"warmup_share": 0.6, "settle_share": 0.4}, "their sum must be below 1"),
    "17 draws": ("method.alpha_draws", 17, "less than or equal to 16"),
    "one window to compare on": ("method.prune_windows", 1, "greater than or equal to 2"),
    "endless pruning": ("method.prune_steps", 10**8, "less than or equal to 10000000"),
    "a worse block for ever": ("method.prune_nats", -1, "greater than or equal to 0"),
    "half precision": ("method.precision", "float16", "'float32' or 'bfloat16'"),
    "an empty micro-batch": ("method.micro_batch", 0, "greater than or equal to 1"),
    "an unknown pressure": ("method.pressure", "fbnet", "'dual' or 'hinge'"),
    "an unknown estimator": ("method.alpha_estimator", "reinforce", "'soft', 'straight_through'"),
    "a bound of both kinds": (
        "budget.parameters", {"at_most": 10, "ratio_to_parent": 1}, "exactly one of at_most and ratio_to_parent",
    ),
    "a bound of neither": ("budget.cache_bytes", {}, "exactly one of at_most and ratio_to_parent"),
    "a bound of 0": ("budget.flops", {"at_most": 0}, "greater than 0"),
    "an unknown bound": ("budget.energy", {"at_most": 1}, "energy"),
    "an unknown pruner": ("trials.pruner", "hyperband", "'asha' or 'none'"),
    "257 samples": ("trials", {"n_samples": 257}, "less than or equal to 256"),
    "17 ranges": ("ranges", [VARIED] * 17, "at most 16 items"),
    "a range twice": ("ranges", [VARIED] * 2, "/method/lr stands twice in ranges"),
    "a range of a word": ("ranges", [{**VARIED, "pointer": "/method/pressure"}], "names no number that may vary"),
    "a range of a flag": (
        "ranges", [{**VARIED, "pointer": "/method/stop_when_stable"}], "names no number that may vary",
    ),
    "a range of a path": ("ranges", [{**VARIED, "pointer": "/method/../task"}], "pattern"),
    "a range out of its field": ("ranges", [{**VARIED, "high": 2}], "method cannot take /method/lr = 2"),
    "a range upside down": ("ranges", [{**VARIED, "low": 0.1}], "low must be smaller"),
    "a range of two that do not meet": (
        "ranges",
        [{"pointer": "/method/warmup_share", "low": 0.1, "high": 0.6},
         {"pointer": "/method/settle_share", "low": 0.1, "high": 0.5}],
        "their sum must be below 1",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_no_engine_could_do_is_refused_in_words(service: Running, case: str) -> None:
    path, value, said = REFUSED[case]
    answer = service.http.post(ROOT, json=changed(path, value))
    problem = answer.json()
    assert (answer.status_code, problem["code"]) == (422, "invalid-request"), problem
    assert said in problem["detail"] + json.dumps(problem["errors"], ensure_ascii=False), problem
    assert len(problem["detail"]) < 400
    assert service.http.get(ROOT).json()["items"] == []


TAKEN: dict[str, tuple[str, Any]] = {
    "512 slots around a present model": (
        "space", {**TINY["space"], "n_slots": 512, "layout": [*["ffn", {"present": "attention", "fixed": True}] * 256]},
    ),
    "16 lengths": ("task.serve_lengths", [*range(2, 18)]),
    "no length at all": ("task.serve_lengths", []),
    "16 ranges at most": ("ranges", [VARIED, {"pointer": "/method/prune_steps", "low": 0, "high": 10_000_000}]),
    "every bound": ("budget", {name: {"ratio_to_parent": 1} for name in ("latency", "parameters", "flops")}),
}  # fmt: skip


@pytest.mark.parametrize("case", TAKEN)
def test_what_is_within_the_limits_is_queued_and_read_again(service: Running, case: str) -> None:
    answer = service.http.post(ROOT, json=changed(*TAKEN[case]))
    assert answer.status_code == 201, answer.text
    assert service.http.get(answer.headers["location"]).json()["request"] == answer.json()["request"]
    assert service.http.post(f"{ROOT}:estimate", json=changed(*TAKEN[case])).status_code == 200
