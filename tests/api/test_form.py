"""What the page's form for a new search relies on: its copy of the catalogue, and its checks being none of its own.

The vitest suite runs the form's checks over the same files.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from api.field_errors import field_errors
from api.openapi import catalog
from nas.catalog import TASKS
from nas.config.request import SearchRequest
from nas.presets import DESCRIPTIONS, PRESETS
from tests.api.running import Running

ROOT = Path(__file__).parents[2]
FORM = ROOT / "api" / "web" / "src" / "new"
CASES: list[dict[str, Any]] = json.loads((FORM / "cases.json").read_text())


def changed(document: Any, changes: dict[str, Any]) -> Any:
    copy = json.loads(json.dumps(document))
    for pointer, part in changes.items():
        *way, last = pointer.removeprefix("/").split("/")
        place = copy
        for step in way:
            place = place[int(step)] if isinstance(place, list) else place[step]
        place[last] = part
    return copy


def test_the_catalogue_that_the_form_is_tested_with_is_the_service_s_own(service: Running) -> None:
    stored = json.loads((FORM / "catalog.json").read_text())
    found = service.http.get("/api/v1/catalog").json()
    assert json.loads(catalog()) == found
    if stored != found:
        pytest.fail("api/web/src/new/catalog.json is out of date; make types writes it again")


@pytest.mark.parametrize("case", CASES, ids=[case["what"] for case in CASES])
def test_the_service_refuses_where_the_form_s_cases_say(case: dict[str, Any]) -> None:
    request = changed(SearchRequest.model_validate(PRESETS["quickstart"]).model_dump(mode="json"), case["set"])
    if case["refused_at"] is None:
        SearchRequest.model_validate(request)
        return
    with pytest.raises(ValidationError) as refused:
        SearchRequest.model_validate(request)
    assert case["refused_at"] in [error.pointer for error in field_errors(refused.value.errors())]


@pytest.mark.parametrize("name", TASKS)
def test_a_synthetic_task_is_taken_as_the_form_asks_for_it(name: str) -> None:
    """As api/web/src/new/data.ts has it. Lengths are the user's: long enough for every task here."""
    task = TASKS[name]
    of_tokens = "unroll" if task.unrolled else "none"
    changes = {
        "/task/dataset": name,
        "/task/dataset_options": {},
        "/task/objective": task.objective,
        "/task/tokenizer": {"type": "bytes"},
        "/task/train_length": 2048,
        "/space/max_len": 2048,
        "/space/causal": True if task.causal is None else task.causal,
        "/space/backbone/n_classes": 0,
        "/space/backbone/pooling": of_tokens if task.objective == "token_classification" else "mean",
        "/space/memory_length": 0,
    }
    quickstart = SearchRequest.model_validate(PRESETS["quickstart"]).model_dump(mode="json")
    request = SearchRequest.model_validate(changed(quickstart, changes))
    assert request.task.dataset_options == asdict(task.options())


def test_the_quickstart_preset_is_the_example_and_each_preset_is_described() -> None:
    example = SearchRequest.model_validate_json((ROOT / "examples" / "quickstart.json").read_text())
    assert SearchRequest.model_validate(PRESETS["quickstart"]) == example
    assert list(DESCRIPTIONS) == list(PRESETS)
