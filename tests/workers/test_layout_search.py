"""A whole search around a present model: what is fixed stays, what is forbidden never comes, the model is trained."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nas.applied import fixed
from nas.config.request import SearchRequest
from nas.data.corpora import text_file
from nas.layout import around
from tests import tiny
from workers.inline import run_local

Events = list[tuple[str, dict[str, Any]]]
N_SEEDS = 2


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[SearchRequest, dict[str, Any], Events]:
    folder = tmp_path_factory.mktemp("around")
    plain = tiny.request(
        task={"dataset": "letters", "train_length": 16, "serve": [{"batch": 2, "query_length": 16}]},
        space={"n_slots": 3},
        method={
            "n_steps": 60, "lr": 8e-3, "warmup_share": 0.2, "alpha_share": 0.5, "alpha_lr": 0.15, "report_every": 20,
            "checkpoint_every": 100, "prune_steps": 2, "prune_windows": 16,
        },
        trials={"n_seeds": N_SEEDS},
    )  # fmt: skip
    request = SearchRequest.model_validate(around(plain.model_dump(mode="json"), "A!FS", ["mgk", "sgu@2-3"]))
    request = request.model_copy(
        update={"retrain": request.retrain.model_copy(update={"baselines": ("interleaved", "present")})}
    )
    files = {"letters": text_file(tiny.text(), folder)}
    events: Events = []
    result = run_local(
        request, folder / "search", files, lambda kind, data: events.append((kind, data)), tiny.table(request.space)
    )
    return request, result, events


def test_no_seed_takes_what_is_forbidden_or_leaves_what_is_fixed(
    finished: tuple[SearchRequest, dict[str, Any], Events],
) -> None:
    _, result, _ = finished
    derived = [each for each in result["architectures"] if each["role"] in ("argmax", "budget")]
    assert len(derived) == 2 * N_SEEDS
    for each in derived:
        assert each["slots"][0] == "attention"
        assert not {"mgk", "sgu"} & {*each["slots"][1:]}
        assert 0 not in each["undecided"]  # nothing was to be decided there


def test_nothing_that_is_forbidden_is_ever_probable_or_trained(
    finished: tuple[SearchRequest, dict[str, Any], Events],
) -> None:
    request, _, events = finished
    records = [data["record"] for kind, data in events if kind == "reports" and data["trial"].startswith("search")]
    assert {record["phase"] for record in records} == {"warm-up", "search", "settle", "prune"}
    for record in records:
        for slot, row in enumerate(request.space.allowed):
            for candidate, may in enumerate(row):
                assert may or (record["probabilities"][slot][candidate], record["updates"][slot][candidate]) == (0, 0)
    first = records[0]["probabilities"]
    assert first[0][request.space.labels.index("attention")] == 1
    assert max(range(5), key=lambda k: first[1][k]) == request.space.labels.index("ffn")  # the prior


def test_the_present_model_is_trained_beside_and_is_what_the_derived_one_is_held_against(
    finished: tuple[SearchRequest, dict[str, Any], Events],
) -> None:
    _, result, events = finished
    baselines = {each["role"]: each["string"] for each in result["architectures"][2 * N_SEEDS :]}
    assert baselines == {"parent": "AFA", "present": "AFS"}
    assert (result["parent"]["role"], result["parent"]["string"]) == ("present", "AFS")
    assert result["quality"] is not None
    trained = {data["trial"] for kind, data in events if kind == "reports" and data["trial"].startswith("retrain")}
    derived = {each["string"] for each in result["architectures"] if each["role"] == "budget"}
    assert len(trained) == len(derived | {"AFA", "AFS"})


def test_a_layout_that_leaves_nothing_to_choose_is_trained_without_a_search(tmp_path: Path) -> None:
    asked = fixed(
        tiny.request(task={"dataset": "letters", "train_length": 16, "serve": [{"batch": 2, "query_length": 16}]}),
        ("ffn", "identity", "attention"),
    )
    files = {"letters": text_file(tiny.text(), tmp_path)}
    events: Events = []
    result = run_local(
        asked, tmp_path / "search", files, lambda kind, data: events.append((kind, data)), tiny.table(asked.space)
    )
    assert [each["step"] for each in result["probabilities"]] == [1]
    assert result["derived"]["slots"] == ["ffn", "identity", "attention"]
    assert [each["name"] for each in result["retrained"]] == ["derived", "interleaved"]
    assert not [data for kind, data in events if kind == "warning" and "learnt" in data["message"]]
