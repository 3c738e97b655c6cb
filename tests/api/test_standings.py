"""What a list shows of each search beside its row: the strip and the best figure."""

from __future__ import annotations

import math
from typing import Any

import pytest

from api import views
from api.leading import leading
from db import architectures, searches, standings
from db.engine import transaction
from db.standings import Standing
from tests.api.running import Claimed, Running

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
    stands = Standing(30, [[0.1, 0.9]], [0.5], None, None, None)
    strip = views._strip(["mine", "other"], stands)
    assert strip is not None
    assert (strip.labels, strip.undecided, strip.step) == (["other"], [], 30)
    assert views._best({}, standings.NONE) is None


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
    best = views._best({"task": task}, Standing(1, None, None, None, 2 * math.log(2), None))
    assert best is not None
    assert (best.unit, best.what) == (unit, "validation")
    assert math.isclose(best.bits_per_byte, bits)
