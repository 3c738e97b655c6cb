"""The first stage of a search: which latency tables it measures, keeps, takes again and refuses."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from nas.config.request import SearchRequest
from nas.config.task import ServeMode
from nas.cost import LatencyTable
from nas.data.corpora import text_file
from nas.errors import Infeasible, InvalidInput
from tests import tiny
from workers.folder import FolderStore
from workers.inline import InlineTrials
from workers.stages.measure import measure

PREFILL = {"batch": 2, "query_length": 16}
DECODE = {"mode": "decode", "batch": 2, "query_length": 15}
TRAINING = {"mode": "training", "batch": 2, "query_length": 16}


def of(serve: list[dict[str, Any]], **overrides: Any) -> SearchRequest:
    task = {"dataset": "letters", "train_length": 16, "serve": serve}
    return tiny.request(space={"candidates": ["attention", "ffn", "identity"]}, task=task, **overrides)


def store_in(folder: Path, table: LatencyTable | None = None) -> FolderStore:
    return FolderStore(folder, {"letters": text_file(tiny.text(), folder)}, lambda kind, data: None, table)


def test_every_serve_mode_gets_a_table_and_the_first_is_the_searches(tmp_path: Path) -> None:
    request = of([PREFILL, DECODE, TRAINING])
    inputs = measure(request, store_in(tmp_path), InlineTrials())
    assert [table.serve for table in inputs.tables] == list(request.task.serve)
    assert inputs.table == inputs.tables[0]
    assert inputs.table.device == inputs.device
    assert inputs.request.latency_table == inputs.table.id
    assert len(list((tmp_path / "tables").iterdir())) == 2
    again = measure(request, store_in(tmp_path), InlineTrials())
    assert [table.id for table in again.tables] == [table.id for table in inputs.tables], "taken, not measured again"


def test_a_table_that_is_named_is_used_and_one_of_another_mode_is_refused(tmp_path: Path) -> None:
    request = of([PREFILL])
    table = tiny.table(request.space)
    named = request.model_copy(update={"latency_table": table.id})
    assert measure(named, store_in(tmp_path, table), InlineTrials()).table == table
    other = tiny.table(request.space, ServeMode(mode="decode", batch=2, query_length=15))
    named = request.model_copy(update={"latency_table": other.id})
    message = f"latency table {other.id} holds for decode of 2 x 15 tokens; the request serves prefill of 2 x 16 tokens"
    with pytest.raises(InvalidInput, match=f"^{re.escape(message)} first$"):
        measure(named, store_in(tmp_path, other), InlineTrials())


@pytest.mark.parametrize("name", ["latency", "parameters", "flops", "cache_bytes"])
def test_a_bound_that_nothing_meets_is_refused_before_training(name: str, tmp_path: Path) -> None:
    request = of([PREFILL], budget={name: {"ratio_to_parent": 0.001}})
    request = request.model_copy(
        update={"space": request.space.model_copy(update={"candidates": request.space.candidates[:2]})}
    )
    table = tiny.table(request.space)
    request = request.model_copy(update={"latency_table": table.id})
    if name == "cache_bytes":  # ffn keeps nothing
        assert measure(request, store_in(tmp_path, table), InlineTrials())
        return
    with pytest.raises(Infeasible, match=rf"^budget\.{name} allows .*; the smallest architecture has "):
        measure(request, store_in(tmp_path, table), InlineTrials())
