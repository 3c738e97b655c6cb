"""What a list shows of each search beside its row: the strip and the best figure."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from api import views
from db import architectures, reports, searches, standings
from db.engine import transaction
from nas.leading import leading, of_path
from tests.api.running import Claimed, Running, record

DATABASES = ("sqlite", "postgresql")
ROOT = "/api/v1/searches"


def test_the_strip_follows_the_leaders_until_an_architecture_is_chosen(service: Running, claimed: Claimed) -> None:
    address = f"{ROOT}/{claimed.id}"
    before = service.http.get(address).json()
    assert (before["strip"], before["best"]) == (None, None)
    claimed.report([0, 10])
    search = service.http.get(address).json()
    assert search["strip"] == {
        "labels": ["attention", "ffn"],
        "undecided": [1],
        "step": 10,
        "source": "leading",
    }
    assert search["best"] == {"bits_per_byte": 2.25 / math.log(2), "unit": "bits per byte", "what": "validation"}
    (listed,) = service.http.get(ROOT).json()["items"]
    assert (listed["strip"], listed["best"]) == (search["strip"], search["best"])

    body = {"slots": ["ffn", "identity"], "undecided": [0]}
    with transaction(service.engine) as connection:
        put = architectures.put(connection, claimed.lease, role="budget", string="F.", hash="h", body=body)
        architectures.set_result(connection, claimed.lease, put.id)
        searches.set_result(connection, claimed.lease, {"quality": {"derived_bits_per_byte": 2.5}})
        searches.finish(connection, claimed.lease, "succeeded")
    for search in (service.http.get(address).json(), *service.http.get(ROOT).json()["items"]):
        assert search["strip"] == {"labels": body["slots"], "undecided": [0], "step": 10, "source": "derived"}
        assert search["best"] == {"bits_per_byte": 2.5, "unit": "bits per byte", "what": "test"}
    assert service.http.get(address).json()["result"] is not None
    assert service.http.get(ROOT).json()["items"][0]["result"] is None  # long; /report has it


@pytest.mark.parametrize("verb", ["cancel", "resume"])
def test_answers_to_changes_carry_the_strip_too(service: Running, claimed: Claimed, verb: str) -> None:
    claimed.report([0])
    answer: dict[str, Any] = service.http.post(f"{ROOT}/{claimed.id}/{verb}").json()
    assert answer["strip"]["step"] == 0


def test_a_slot_without_numbers_is_undecided() -> None:
    assert leading([[None, None], [None, 0.5], [0.5, None]], [None, None, 0.1]) == ([0, 1, 0], [0])


def test_a_strip_is_made_of_the_labels_of_the_request() -> None:
    stands = replace(standings.NONE, step=30, probabilities=[[0.1, 0.9]], null_gaps=[0.5])
    strip = views._strip(["mine", "other"], stands)
    assert strip is not None
    assert (strip.labels, strip.undecided, strip.step) == (["other"], [], 30)
    assert views._best({}, standings.NONE) is None


def test_behind_the_parsimony_pass_the_strip_is_its_path(service: Running, claimed: Claimed) -> None:
    claimed.report([0, 10])
    pruned = replace(
        record(20),
        phase="prune",
        path=[2, 1],
        effect_nats=[[0.01, None, 0.0], [0.5, 0.0, None]],
        effect_se=[[0.02, None, 0.0], [0.1, 0.0, None]],
    )
    with transaction(service.engine) as connection:
        reports.insert(connection, claimed.lease, [reports.NewReport(claimed.trial, pruned)])
    strip = service.http.get(f"{ROOT}/{claimed.id}").json()["strip"]
    assert strip == {"labels": ["identity", "ffn"], "undecided": [0], "step": 20, "source": "leading"}


@pytest.mark.parametrize(
    ("nats", "errors", "undecided"),
    [
        ([0.0, 0.5, None], [0.0, 0.1, None], False),
        ([0.0, 0.1, None], [0.0, 0.1, None], True),
        ([0.0, -0.5, None], [0.0, 0.1, None], True),  # it gains, but less than what is asked of a dearer block
        ([0.0, 0.5, 0.01], [0.0, 0.1, 0.02], True),
        ([0.0, None, None], [0.0, None, None], True),  # nothing was compared: alpha tells
        (None, None, True),
    ],
    ids=["buys", "at one error", "gains", "one of two ties", "not compared", "no pass yet"],
)
def test_a_slot_of_the_path_is_undecided_where_another_does_as_well(
    nats: list[float | None] | None, errors: list[float | None] | None, undecided: bool
) -> None:
    matrices = (nats and [nats], errors and [errors])
    assert of_path([0], [0], *matrices) == ([0] if undecided else [])
    if nats is None or nats[1:] == [None, None]:
        assert of_path([0], [], *matrices) == []


@pytest.mark.parametrize(
    ("task", "unit", "bits"),
    [
        ({"tokenizer": "words"}, "bits per word", 2.0),
        ({"tokenizer": "bpe", "sizes": {"vocab_size": 300, "tokens_per_byte": 0.25}}, "bits per byte", 0.5),
        ({"dataset": "token-wise", "objective": "token_classification"}, "bits per answer", 2.0),
        ({"objective": "of another version"}, "bits per token", 2.0),
    ],
    ids=["words", "pieces of words", "answers", "unknown"],
)
def test_the_best_figure_is_told_in_the_unit_of_its_task(task: dict[str, Any], unit: str, bits: float) -> None:
    best = views._best({"task": task}, replace(standings.NONE, step=1, val_loss=2 * math.log(2)))
    assert best is not None
    assert (best.unit, best.what) == (unit, "validation")
    assert math.isclose(best.bits_per_byte, bits)
