"""What a result tells of each length: figures by hand, and words where a network has none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nas.architecture import Architecture
from nas.config.request import SearchRequest
from nas.lengths import LengthScore
from nas.retrain import Retraining, RetrainResult, read_result
from tests import tiny
from workers.stages.lengths import at_lengths, line
from workers.stages.passed_on import Derived, Retrained

REQUEST = tiny.request()
SEEDS = (0, 1)


def retrained(labels: tuple[str, ...], request: SearchRequest = REQUEST) -> Retrained:
    """Trained for six steps with each seed."""
    architecture = Architecture(labels, request.space.candidates)
    results: dict[int, RetrainResult] = {}
    for seed in SEEDS:
        run = Retraining(request.resolve({}, seed), architecture, parts=tiny.parts(request))
        list(run.run())
        assert run.result is not None
        results[seed] = run.result
    return Retrained(Derived("id", "budget", architecture, {}, 0), results, {}, request.method.lr, ())


@pytest.fixture(scope="module")
def sgu() -> Retrained:
    return retrained(("sgu", "ffn"))


@pytest.fixture(scope="module")
def parent() -> Retrained:
    return retrained(("attention", "ffn"))


def test_each_length_has_both_networks_and_their_difference(sgu: Retrained, parent: Retrained) -> None:
    found = {each["length"]: each for each in at_lengths(REQUEST.task, sgu, parent)}
    assert list(found) == [4, 16, 32, 64]
    nats = [[np.array(seed.lengths[0].nats) for seed in each.in_order] for each in (sgu, parent)]
    bits = [np.mean(each, axis=0) / np.log(2) for each in nats]
    short = found[4]
    assert short["unit"] == "bits per byte"
    assert short["n_windows"] == 32
    assert short["derived"]["bits"] == pytest.approx(bits[0].mean())
    assert short["parent"]["se"] == pytest.approx(bits[1].std(ddof=1) / np.sqrt(32))
    assert short["difference"]["bits"] == pytest.approx((bits[0] - bits[1]).mean())
    assert short["difference"]["low"] <= short["difference"]["bits"] <= short["difference"]["high"]
    assert short["difference"]["verdict"] in ("better", "worse", "cannot tell")
    assert len(short["positions"]["derived"]) == len(short["positions"]["parent"]) == 4
    assert np.mean(short["positions"]["derived"]) == pytest.approx(np.mean(nats[0]), abs=1e-5)


def test_where_one_cannot_run_the_other_is_told_alone(sgu: Retrained, parent: Retrained) -> None:
    long = at_lengths(REQUEST.task, sgu, parent)[3]
    assert long["derived"]["bits"] is None
    assert long["derived"]["why"].startswith("candidate 'sgu' cannot run there: ")
    assert long["parent"]["why"] is None
    assert long["parent"]["bits"] > 0
    assert long["difference"] is None
    assert long["n_windows"] == 2
    assert long["positions"]["derived"] is None
    assert len(long["positions"]["parent"]) == 64


def test_one_line_tells_all_lengths(sgu: Retrained) -> None:
    found = at_lengths(REQUEST.task, sgu, None)
    assert {each["parent"] for each in found} == {None}
    told = line(found)
    assert told.startswith(f"4: {found[0]['derived']['bits']:.3f}; 16: {found[1]['derived']['bits']:.3f}; 32: none, ")
    assert "since candidate 'sgu' cannot run there" in told


def test_trainings_without_lengths_say_so(parent: Retrained) -> None:
    older = replace(parent, results={seed: replace(each, lengths=[]) for seed, each in parent.results.items()})
    found = at_lengths(REQUEST.task, older, None)
    assert {each["derived"]["why"] for each in found} == {
        "the trainings are of an older version, which scored no lengths"
    }


def test_one_window_has_no_spread_and_no_difference(parent: Retrained) -> None:
    task = REQUEST.task.model_copy(update={"serve_lengths": (16,)})
    single = LengthScore(16, nats=[1.0], positions=[1.0])
    one = replace(parent, results={seed: replace(each, lengths=[single]) for seed, each in parent.results.items()})
    (found,) = at_lengths(task, one, one)
    assert (found["derived"]["se"], found["difference"]) == (None, None)


def test_a_result_of_a_checkpoint_tells_the_same_lengths(tmp_path: Path, parent: Retrained) -> None:
    run = Retraining(REQUEST.resolve({}, 0), parent.derived.architecture, parts=tiny.parts(REQUEST))
    list(run.run())
    path = tmp_path / "state.safetensors"
    run.save(path)
    kept = replace(parent, results={0: read_result(path)})
    assert at_lengths(REQUEST.task, kept, None) == at_lengths(
        REQUEST.task, replace(parent, results={0: parent.results[0]}), None
    )
