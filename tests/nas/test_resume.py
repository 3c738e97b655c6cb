"""Searches and retrainings on every kind of data go on to the same bits after a stop, with data opened anew."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import torch

from nas import checkpoint
from nas.architecture import Architecture
from nas.config.request import SearchRequest
from nas.data.encode import encode
from nas.data.encoded import open_encoded
from nas.data.parts import Parts
from nas.data.pin import pin_synthetic
from nas.data.synthetic.generated import synthetic_parts
from nas.retrain import Retraining
from nas.search import Search
from nas.steps import StepRecord
from tests import tiny
from tests.encoding import documents

SPACE = {"n_slots": 2, "d_model": 16, "n_heads": 2, "max_len": 16, "candidates": ["attention", "sgu", "ffn"]}
SERVE = [{"batch": 2, "query_length": 16}]
METHOD = {
    "n_steps": 10, "batch_size": 4, "warmup_share": 0.2, "report_every": 2, "checkpoint_every": 2, "eval_windows": 4,
    "prune_steps": 2, "prune_windows": 8,
}  # fmt: skip
WORDS = ("fine", "great", "poor", "awful", "so", "the")


def labelled(kind: str) -> list[dict[str, Any]]:
    """Documents of 1 to 9 words: most are padded."""
    chance = random.Random(0)
    rows = []
    for number in range(120):
        words = [chance.choice(WORDS) for _ in range(number % 9)] + [f"n{number}"]
        labels = ["good" if word in WORDS[:2] else "bad" for word in words]
        one = {"text": " ".join(words), "label": max(labels)}
        rows.append({"words": words, "labels": labels} if kind == "words" else one)
    return rows


def data_of(kind: str, folder: Path) -> tuple[SearchRequest, Path | None]:
    """A request that knows its data, and where they are."""
    space, task = dict(SPACE), {"train_length": 16, "serve": SERVE, "dataset": "some"}
    if kind == "synthetic":
        task |= {"objective": "token_classification", "dataset": "in-context-recall"}
        space |= {"backbone": {"pooling": "none"}}
        return pin_synthetic(tiny.request(space=space, task=task, method=METHOD)), None
    if kind == "memory":
        space, task = tiny.RECURRENT["space"], {**tiny.RECURRENT["task"], "dataset": "some"}
    elif kind == "words":
        task |= {"objective": "token_classification"}
        space |= {"backbone": {"pooling": "none"}, "causal": False, "positions": "none"}
    else:
        task |= {"objective": "sequence_classification"}
        space |= {"backbone": {"pooling": "mean"}, "causal": False, "positions": "none"}
    fields = {"words": "words", "labels": "labels"} if kind == "words" else {}
    dataset = documents(folder, labelled(kind), **fields)
    request = tiny.request(space=space, task={**task, "tokenizer": "characters"}, method=METHOD)
    found = encode(dataset.path, dataset.card, request.task.tokenizer, folder / "cache")
    return request.with_data(found.fingerprint, found.sizes), found.folder


def opened(request: SearchRequest, folder: Path | None) -> Parts:
    return synthetic_parts(request.task) if folder is None else open_encoded(folder).parts(request.task)


def new(kind: str, request: SearchRequest, folder: Path | None) -> Search | Retraining:
    parts = opened(request, folder)
    if kind == "search":
        return Search(request, parts=parts, table=tiny.table(request.space, request.task.serve[0]))
    labels = request.space.labels
    return Retraining(request, Architecture((labels[0], labels[1]), request.space.candidates), parts=parts)


def comparable(record: StepRecord) -> StepRecord:
    return replace(record, tokens_per_s=None)


ESTIMATORS = ["soft", "straight_through", "single_path", "two_path"]
# Every phase, and everything that has a state: a budget, dropped slots, draws, decay, an early end, a layout, memory.
EVERYTHING: dict[str, Any] = {
    **tiny.RECURRENT,
    "space": {
        **tiny.RECURRENT["space"], "n_slots": 3, "layout_prior": 0.3,
        "layout": [{}, {"present": "ffn", "forbidden": ["identity"]}, {"present": "attention"}],
    },
    "method": {
        "n_steps": 24, "warmup_share": 0.25, "settle_share": 0.25, "alpha_share": 0.4, "alpha_draws": 2,
        "alpha_decay": 1e-3, "alpha_lr": 0.2, "entropy_weight": 1.0, "candidate_dropout": 0.2, "tau_end": 1.0,
        "stop_when_stable": True, "max_identity": 0.1, "prune_steps": 2, "prune_windows": 8,
        "report_every": 3, "checkpoint_every": 5,
    },
    "budget": {"latency": {"ms": 8.0}},
}  # fmt: skip


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_a_search_stopped_at_every_record_of_every_phase_has_the_bits_of_an_undisturbed_one(
    estimator: str, tmp_path: Path
) -> None:
    request = tiny.request(
        **{**EVERYTHING, "method": {**EVERYTHING["method"], "alpha_estimator": estimator}}, trials={"seed": 5}
    )
    parts = tiny.parts(request)

    def begun() -> Search:
        return Search(request, parts=parts, table=tiny.table(request.space, request.task.serve[0]))

    undisturbed, current = begun(), begun()
    expected = [comparable(record) for record in undisturbed.run()]
    assert {record.phase for record in expected} == {"warm-up", "search", "settle", "prune"}
    found = [comparable(record) for record in islice(current.run(), 2)]
    while not found[-1].last:
        current.save(tmp_path / "state.safetensors")
        current = begun()
        current.load(tmp_path / "state.safetensors")
        found += [comparable(record) for record in islice(current.run(), 1)]
    assert found == expected
    undisturbed.save(tmp_path / "one.safetensors")
    current.save(tmp_path / "other.safetensors")
    (one, state), (other, other_state) = (
        checkpoint.read(tmp_path / f"{name}.safetensors") for name in ("one", "other")
    )
    assert {**state, "seconds": 0} == {**other_state, "seconds": 0}
    assert one.keys() == other.keys()
    assert not any(name.startswith("optimiser.") for name in one)  # of no use behind the alternation
    assert all(torch.equal(tensor, other[name]) for name, tensor in one.items())


def test_moments_that_an_older_version_kept_in_its_pass_are_let_go(tmp_path: Path) -> None:
    request = tiny.request(**EVERYTHING)
    parts, path = tiny.parts(request), tmp_path / "state.safetensors"

    def begun() -> Search:
        return Search(request, parts=parts, table=tiny.table(request.space, request.task.serve[0]))

    search = begun()
    for record in search.run():
        if record.phase == "prune":
            search.save(path)
            break
    tensors, state = checkpoint.read(path)
    name, weight = next(iter(search.weights.items()))
    kept = {f"optimiser.{name}.{moment}": torch.zeros_like(weight) for moment in ("exp_avg", "exp_avg_sq")}
    checkpoint.write(path, {**tensors, **kept, f"optimiser.{name}.step": torch.tensor(1.0)}, state)
    again = begun()
    again.load(path)
    assert again.pruning is not None
    assert not again.optimiser.state


@pytest.mark.parametrize("seed", range(3))
def test_a_search_stopped_at_random_and_taken_up_from_its_last_save_goes_the_same_way(
    seed: int, tmp_path: Path
) -> None:
    """As a process that is killed: what it did behind its last save is done again."""
    request = tiny.request(**{**EVERYTHING, "trials": {"seed": seed}})
    parts, chance = tiny.parts(request), random.Random(seed)
    path = tmp_path / "state.safetensors"

    def begun() -> Search:
        return Search(request, parts=parts, table=tiny.table(request.space, request.task.serve[0]))

    expected = {record.step: comparable(record) for record in begun().run()}
    seen: set[int] = set()
    last = False
    while not last:
        current = begun()
        if path.exists():
            current.load(path)
        for number, record in enumerate(islice(current.run(), chance.randint(1, 6))):
            assert comparable(record) == expected[record.step]
            seen.add(record.step)
            last = record.last
            if record.step and (number == 0 or chance.random() < 0.5):  # at step 0 there is nothing to go on from
                current.save(path)
    assert seen == set(expected)


@pytest.mark.parametrize("work", ["search", "retraining"])
@pytest.mark.parametrize("kind", ["documents", "words", "synthetic", "memory"])
def test_what_is_stopped_at_every_report_has_the_bits_of_an_undisturbed_run(
    kind: str, work: str, tmp_path: Path
) -> None:
    request, folder = data_of(kind, tmp_path)
    undisturbed, current = new(work, request, folder), new(work, request, folder)
    expected = [comparable(record) for record in undisturbed.run()]
    found = [comparable(record) for record in islice(current.run(), 2)]  # at step 0 there is nothing to go on from
    while not found[-1].last:
        current.save(tmp_path / "state.safetensors")
        current = new(work, request, folder)
        current.load(tmp_path / "state.safetensors")
        found += [comparable(record) for record in islice(current.run(), 1)]
    assert found == expected
    assert all(torch.equal(parameter, undisturbed.weights[name]) for name, parameter in current.weights.items())
    if isinstance(current, Retraining) and isinstance(undisturbed, Retraining):
        assert current.result == undisturbed.result
