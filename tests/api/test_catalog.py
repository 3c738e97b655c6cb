from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Annotated, Any, get_args

import pytest
from pydantic import Field

from api.examples import REQUEST
from api.routes.catalog import options_schema
from db import datasets, events, latency_tables, searches
from db.engine import transaction
from nas import catalog
from nas.config.request import SearchRequest
from nas.config.space import SearchSpace
from nas.config.task import Tokenizer
from nas.cost import LatencyTable
from nas.presets import PRESETS
from tests import tiny
from tests.api.running import TINY, Claimed, Running
from tests.api.standing import TABLE


def test_the_catalogue_lists_every_block_with_letter_colour_and_options(service: Running) -> None:
    found = service.http.get("/api/v1/catalog").json()
    blocks = {block["name"]: block for block in found["blocks"]}
    assert list(blocks) == list(catalog.blocks())
    assert (blocks["mgk"]["letter"], blocks["mgk"]["colour"], blocks["mgk"]["family"]) == ("M", "#AA3377", "mgk")
    assert blocks["mgk"]["options"]["properties"]["n_keys"]["default"] == 2
    assert found["request_schema"] == SearchRequest.model_json_schema()
    assert found["families"] == list(catalog.FAMILIES)
    assert found["objectives"] == ["causal_lm", "masked_lm", "sequence_classification", "token_classification"]
    assert blocks["ffn"]["cache_known"]
    assert blocks["sgu"]["reach"]["longest"] == SearchSpace().max_len
    assert blocks["ffn"]["reach"] == {"longest": None, "why": "it reads each token alone, so any length will do"}


def test_options_are_told_with_choices_switches_and_ranges() -> None:
    (attention, sgu) = (options_schema(catalog.block(name).options)["properties"] for name in ("attention", "sgu"))
    assert attention["kind"]["enum"] == ["softmax", "linear"]
    assert attention["bias"]["type"] == "boolean"
    assert attention["window"]["anyOf"] == [{"type": "integer", "minimum": 1, "maximum": 65536}, {"type": "null"}]
    assert (sgu["ratio"]["minimum"], sgu["ratio"]["maximum"]) == (1, 64)
    assert sgu["attention_width"]["minimum"] == 0


@dataclass(frozen=True)
class PluggedOptions:
    width: Annotated[int, Field(ge=2)] = 4
    free: int = 1
    odd: int = 3
    share: float = 0.5

    def __post_init__(self) -> None:
        if not self.odd % 2 or self.odd < 0:
            raise ValueError(f"odd is {self.odd}; it must be odd")


def test_the_catalogue_lists_synthetic_tasks_and_tokenizers(service: Running) -> None:
    found = service.http.get("/api/v1/catalog").json()
    tasks = {task["name"]: task for task in found["tasks"]}
    assert list(tasks) == list(catalog.TASKS)
    for name, task in tasks.items():
        spec = catalog.TASKS[name]
        assert (task["objective"], task["causal"], task["source"]) == (spec.objective, spec.causal, spec.source)
        assert (task["best_accuracy"], task["best_why"]) == spec.best
        assert task["options"]["properties"].keys() == {each.name for each in fields(spec.options)}
    listed = [each["type"] for each in found["tokenizers"]]
    assert listed == list(get_args(Tokenizer.model_fields["type"].annotation))


def test_a_synthetic_task_is_shown_as_a_dataset_without_content(service: Running) -> None:
    for name, spec in catalog.TASKS.items():
        found = service.http.get(f"/api/v1/datasets/{name}").json()
        assert (found["kind"], found["built_in"], found["description"]) == ("synthetic", True, spec.description)
        assert (found["fingerprint"], found["card"], found["excerpt"], found["encodings"]) == (None, None, None, [])
        assert service.http.delete(f"/api/v1/datasets/{name}").json()["code"] == "built-in"


def test_a_range_that_options_do_not_state_is_not_made_up() -> None:
    told = options_schema(PluggedOptions)["properties"]
    assert {name: each.keys() & {"minimum", "maximum"} for name, each in told.items()} == {
        "width": {"minimum"}, "free": set(), "odd": set(), "share": set(),
    }  # fmt: skip


def test_a_package_brings_its_own_family(service: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = replace(catalog.block("ffn"), name="conv", family="conv", letter="C", cache_bytes=None)
    monkeypatch.setattr(catalog, "_own", {"conv": spec})
    found = service.http.get("/api/v1/catalog").json()
    assert found["families"][-1] == found["blocks"][-1]["name"] == "conv"
    assert not found["blocks"][-1]["cache_known"]


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_a_preset_is_a_request_that_can_be_sent(service: Running, name: str) -> None:
    preset = service.http.get("/api/v1/catalog").json()["presets"][name]
    assert service.http.post("/api/v1/searches", json=preset).status_code == 201


def test_the_catalogue_is_sent_once(service: Running) -> None:
    etag = service.http.get("/api/v1/catalog").headers["etag"]
    assert service.http.get("/api/v1/catalog", headers={"If-None-Match": etag}).status_code == 304


def test_datasets_are_the_built_in_ones_and_the_registered(service: Running) -> None:
    with transaction(service.engine) as connection:
        datasets.register(connection, name="novels", fingerprint="ab" * 32, n_bytes=10, path="datasets/novels")
        datasets.register(connection, name="python-docs", fingerprint="cd" * 32, n_bytes=20)
    found = {each["name"]: each for each in service.http.get("/api/v1/datasets").json()["items"]}
    assert list(found) == ["python-docs", "python-stdlib", *catalog.TASKS, "novels"]
    assert [found[name]["kind"] for name in ("python-docs", "novels")] == ["text", "text"]
    assert (found["python-docs"]["built_in"], found["python-docs"]["fingerprint"]) == (True, "cd" * 32)
    assert (found["python-stdlib"]["built_in"], found["python-stdlib"]["fingerprint"]) == (True, None)
    assert (found["novels"]["built_in"], found["novels"]["n_bytes"]) == (False, 10)


def test_measured_tables_are_listed_and_read_by_id(service: Running, claimed: Claimed) -> None:
    with transaction(service.engine) as connection:
        latency_tables.put(connection, claimed.lease, table_id="a" * 32, key="k", body=TABLE)
        request = SearchRequest.model_validate(REQUEST).model_dump(mode="json")
        searches.set_inputs(connection, claimed.lease, request=request, latency_table_id="a" * 32, slot_ms=[])
    (row,) = service.http.get("/api/v1/latency-tables").json()["items"]
    assert (row["id"], row["n_entries"], row["error_median"]) == ("a" * 32, 0, 0.01)
    assert service.http.get(f"/api/v1/latency-tables/{'a' * 32}").json() == TABLE
    assert service.http.get(f"/api/v1/searches/{claimed.id}").json()["latency_table"] == "a" * 32


def test_a_search_tells_what_a_trial_was_estimated_to_take(service: Running, claimed: Claimed) -> None:
    path = f"/api/v1/searches/{claimed.id}"
    assert service.http.get(path).json()["estimate"] is None
    with transaction(service.engine) as connection:
        events.append(
            connection, claimed.lease, [("estimate", {"memory_bytes": 8, "seconds": 1.5, "prune_seconds": 0.5})]
        )
    assert service.http.get(path).json()["estimate"] == {
        "memory_bytes": 8, "seconds": 1.5, "prune_seconds": 0.5, "reason": None, "measured": None,
    }  # fmt: skip
    (listed,) = service.http.get("/api/v1/searches").json()["items"]
    assert listed["estimate"] is None


def test_a_table_from_elsewhere_can_be_brought_and_named_in_a_request(service: Running) -> None:
    request = SearchRequest.model_validate(TINY)
    table = tiny.table(request.space, request.task.serve[0])
    for _ in range(2):
        answer = service.http.post("/api/v1/latency-tables", json=table.model_dump(mode="json"))
        assert (answer.status_code, answer.json()["id"]) == (201, table.id)
    assert len(service.http.get("/api/v1/latency-tables").json()["items"]) == 1
    stored = service.http.get(answer.headers["location"]).json()
    assert LatencyTable.model_validate(stored).id == table.id
    assert service.http.post("/api/v1/searches", json={**TINY, "latency_table": table.id}).status_code == 201


@pytest.mark.parametrize(
    ("change", "pointer"),
    [({"scale": 0}, "/scale"), ({"rows": []}, "/rows"), ({"entries": {"x": {"block": "ffn"}}}, "/entries/x/options")],
)
def test_a_table_that_is_none_is_refused(service: Running, change: dict[str, Any], pointer: str) -> None:
    answer = service.http.post("/api/v1/latency-tables", json={**TABLE, **change})
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, pointer)


def test_an_unknown_table_is_not_found_and_a_bad_id_is_refused(service: Running) -> None:
    assert service.http.get(f"/api/v1/latency-tables/{'b' * 32}").json()["code"] == "not-found"
    assert service.http.get("/api/v1/latency-tables/..%2fx").status_code == 404
    assert service.http.get("/api/v1/latency-tables/x").json()["errors"][0]["pointer"] == "{table_id}"
