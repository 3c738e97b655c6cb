"""Memory that would run out is told before it does."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
import torch

from nas import checkpoint, ranks
from nas.allocations import peak_bytes
from nas.architecture import Architecture, interleaved
from nas.config.request import SearchRequest
from nas.config.space import SearchSpace
from nas.config.task import Tokenizer
from nas.cost import LatencyTable
from nas.data.corpora import text_file
from nas.data.encode import encode
from nas.data.parts import Parts
from nas.errors import SearchFailed
from nas.estimate import estimate, held_by_search
from nas.held import held_by_retraining
from nas.retrain import build
from nas.search import Search
from nas.steps import StepRecord
from tests import tiny
from tests.several import several
from workers.memory import _far_too_much, check_room, fitted
from workers.store import Report, TrialKey
from workers.trainable import TrialSpec, run_trial

SPACE = SearchSpace.model_validate({"n_slots": 2, "max_len": 4096, "candidates": ["ffn", "sgu"]})
PARAMETERS = 2 * sum(SPACE.parameters().values())  # N x N weights: 2 * 4096^2 and some


def test_a_supernet_that_does_not_fit_is_refused_with_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    needed = 16 * PARAMETERS
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=needed - 1))
    message = (
        r"^the supernet's 33\.7 million parameters need 0\.5 GB of memory, and 0\.5 GB are free; a smaller "
        r"max_len, d_model or n_slots needs less$"
    )
    with pytest.raises(SearchFailed, match=message):
        check_room(SPACE, "cpu")
    check_room(SPACE, "cuda")  # gradients and moments lie there
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=needed))
    check_room(SPACE, "cpu")
    with pytest.raises(SearchFailed, match=r"need 1\.1 GB of memory"):
        check_room(SPACE, "cpu", n_ranks=2)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=needed // 4 - 1))
    with pytest.raises(SearchFailed, match=r"need 0\.1 GB of memory"):
        check_room(SPACE, "cuda")


def room(monkeypatch: pytest.MonkeyPatch, free: int) -> None:
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=free))


def sized(**method: Any) -> tuple[SearchRequest, Parts, LatencyTable]:
    """A trial whose batch takes much more than its weights."""
    request = tiny.request(
        space={"max_len": 64}, task={"train_length": 64}, method={"batch_size": 32, **method}
    ).resolve({}, 0)
    return request, tiny.parts(request), tiny.table(request.space, request.task.serve[0])


def placed_here(given: tuple[SearchRequest, Parts, LatencyTable], resume: Path | None = None) -> SearchRequest:
    return fitted(given[0], partial(held_by_search, *given, "cpu"), "cpu", resume)


def test_a_batch_without_room_goes_through_in_passes_that_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    given = sized()
    whole = estimate(*given).memory_bytes
    room(monkeypatch, 100 * whole)
    assert placed_here(given) is given[0]
    room(monkeypatch, whole // 3)
    chosen = placed_here(given)
    rows = chosen.method.micro_batch
    assert rows is not None
    assert 4 <= rows <= 16
    assert chosen.method.model_copy(update={"micro_batch": None}) == given[0].method
    assert estimate(chosen, *given[1:]).memory_bytes <= 1.1 * whole // 3


WIDE: dict[str, dict[str, Any]] = {
    "plain": {"block": "attention"},
    "feed-forward": {"block": "ffn", "options": {"ratio": 64}},
    "gated": {"block": "ffn", "options": {"ratio": 48, "activation": "swiglu"}},
    "spatial": {"block": "sgu", "options": {"ratio": 32}},
    "many keys": {"block": "mgk", "options": {"n_keys": 8}},
}


@pytest.mark.parametrize("prune_steps", [0, 8])
@pytest.mark.parametrize("candidate", WIDE.values(), ids=WIDE.keys())
def test_what_a_trial_of_wide_blocks_holds_is_far_below_what_needs_no_measuring(
    candidate: dict[str, Any], prune_steps: int
) -> None:
    request = tiny.request(
        space={"n_slots": 2, "d_model": 64, "n_heads": 4, "max_len": 64,
               "candidates": [{"label": "wide", **candidate}, "identity"]},
        task={"train_length": 64},
        method={"batch_size": 16, "n_steps": 200, "prune_steps": prune_steps},
        retrain={"baselines": []},
    ).resolve({}, 0)  # fmt: skip
    table = tiny.table(request.space, request.task.serve[0])
    assert estimate(request, tiny.parts(request), table).memory_bytes < 0.6 * _far_too_much(request, 16)


def test_what_a_taught_retraining_holds_is_below_it_too_however_large_its_vocabulary() -> None:
    """Logits of two networks, and what compares them."""
    sizes = {"vocab_size": 20_000}
    request = tiny.request(
        task={"dataset": "ids", "tokenizer": {"type": "given"}, "sizes": sizes},
        method={"batch_size": 16},
        retrain={"distil": {"weight": 0.5}},
    ).resolve({}, 0)
    architecture = interleaved(request.space)
    teacher = build(request.network_config(architecture.labels, request.task.vocab_size))
    held = held_by_retraining(request, architecture, tiny.parts(request), "cpu", teacher, 16)
    assert held.peak < 0.7 * _far_too_much(request, 16)


def test_passes_have_room_for_the_parsimony_pass_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its comparisons hold snapshots and fresh moments, more than a step does."""
    given = sized(n_steps=20, report_every=20, checkpoint_every=1000, prune_steps=8, prune_windows=16, prune_share=10)
    free = int(estimate(*given).memory_bytes * 0.6)
    room(monkeypatch, free)
    chosen = placed_here(given)
    assert chosen.method.micro_batch is not None
    held, _ = peak_bytes(lambda: [*Search(chosen, parts=given[1], table=given[2]).run()])
    assert held <= 1.1 * free


def test_passes_that_were_asked_for_and_do_not_fit_are_refused_with_those_that_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given = sized(micro_batch=32)
    room(monkeypatch, estimate(*given).memory_bytes // 3)
    message = r"^method\.micro_batch is 32, and in the 0\.0 GB that are free there is room for \d+; leave it out to"
    with pytest.raises(SearchFailed, match=message):
        placed_here(given)


def test_a_search_whose_every_window_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    given = sized()
    room(monkeypatch, 1000)
    message = r"^a trial of this size needs 0\.0 GB of memory with one window at a time, and 0\.0 GB are free; a small"
    with pytest.raises(SearchFailed, match=message):
        placed_here(given)


def fitted_where_the_others_have_room(free: int) -> int | None:
    given = sized()
    available = free if ranks.now().is_first else 10**12
    with pytest.MonkeyPatch.context() as patch:
        room(patch, available)
        return placed_here(given).method.micro_batch


def test_of_several_ranks_the_first_one_s_room_decides(tmp_path: Path) -> None:
    """Of 32 windows each rank has 16."""
    whole = estimate(*sized()).memory_bytes
    (rows, other) = several(2, tmp_path, fitted_where_the_others_have_room, whole // 3)
    assert rows == other
    assert rows is not None
    assert 4 <= rows < 16


def placed(folder: Path, **method: Any) -> TrialSpec:
    """`sized` as a trial of its own."""
    request, _, table = sized(**method)
    letters = text_file(tiny.text(), folder)
    data = encode(letters.path, letters.card, Tokenizer(), folder)
    request = request.with_data(data.fingerprint, data.sizes)
    body, costs = request.model_dump(mode="json"), table.model_dump(mode="json")
    return TrialSpec(TrialKey("search", 0, 0), body, costs, None, str(data.folder), str(folder), None)


def test_a_trial_that_is_taken_up_makes_the_passes_it_began_with(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """To the bit, whatever is free by then."""
    spec, whole = placed(tmp_path), estimate(*sized()).memory_bytes

    def run(free: int, resume: str | None = None) -> dict[int, StepRecord]:
        room(monkeypatch, free)
        reports: list[Report] = []
        run_trial(replace(spec, resume=resume), reports.append)
        return {each.record.step: replace(each.record, tokens_per_s=None, warning=None) for each in reports}

    begun, kept = run(whole // 3), str(tmp_path / "step-4.safetensors")
    for free in (whole // 2, 100 * whole):
        went_on = run(free, kept)
        assert went_on == {step: record for step, record in begun.items() if step > 4}
    message = (
        r"^the trial began with passes of \d+ windows, and in the 0\.0 GB that are free there is room for \d; resu"
    )
    with pytest.raises(SearchFailed, match=message):
        run(whole // 6, kept)


def test_a_retraining_goes_in_passes_too_and_goes_on_with_those_it_began_with(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """With the loss of whole batches, up to rounding."""
    spec = placed(tmp_path)
    request, parts, _ = sized()
    architecture = Architecture(("attention", "ffn"), request.space.candidates)
    spec = replace(spec, key=TrialKey("derived", 0, 0), table=None, architecture=architecture.to_json())
    whole = held_by_retraining(request, architecture, parts, "cpu", None, 32).peak

    def run(free: int, resume: str | None = None) -> list[StepRecord]:
        room(monkeypatch, free)
        reports: list[Report] = []
        run_trial(replace(spec, resume=resume), reports.append)
        return [replace(each.record, tokens_per_s=None) for each in reports]

    at_once, in_passes = run(100 * whole), run(whole // 3)
    assert at_once[0].warning is None
    assert in_passes[0].warning is not None
    found = re.search(
        r"^a batch of 32 windows has no room in memory: it goes through in passes of (\d+) \(", in_passes[0].warning
    )
    assert found is not None
    assert 4 <= int(found[1]) <= 16
    for one, other in zip(at_once, in_passes, strict=True):
        assert other.val_loss == pytest.approx(one.val_loss, abs=1e-3)
    again = run(100 * whole, str(tmp_path / "step-4.safetensors"))
    assert [replace(each, warning=None) for each in again] == [each for each in in_passes if each.step > 4]
    room(monkeypatch, 1000)
    with pytest.raises(SearchFailed, match=r"^a trial of this size needs 0\.0 GB of memory with one window at a time"):
        run_trial(spec, lambda _: None)


def test_a_trial_of_before_passes_were_kept_is_fitted_anew(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    given, path = sized(), tmp_path / "older.safetensors"
    checkpoint.write(path, {"a": torch.zeros(1)}, {"kind": "search"})
    room(monkeypatch, estimate(*given).memory_bytes // 3)
    assert placed_here(given, path) == placed_here(given)


def test_passes_that_were_chosen_are_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    spec = placed(tmp_path, n_steps=2, report_every=1)
    free = [10**12]
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=free[0]))
    told = []
    for free[0] in (10**12, 1_500_000):
        reports: list[Report] = []
        run_trial(spec, reports.append)
        told.append([each.record.warning for each in reports[:-1]])  # the last says that so few steps taught nothing
    assert told[0] == [None, None]
    first, *rest = told[1]
    assert first is not None
    assert re.search(r"^a batch of 32 windows has no room in memory: it goes through in passes of \d+ \(method", first)
    assert rest == [None]
