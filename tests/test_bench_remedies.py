"""The bench of remedies runs: each option is one that the method knows, rows are kept, and the last line is JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench import remedies
from bench.planted import METHOD, request_of
from nas.data.enumerated import PLANTED

# Every phase of a search in a second; too short to find anything.
SHORT: dict[str, Any] = {
    **METHOD,
    **{"n_steps": 60, "batch_size": 2, "report_every": 20, "eval_windows": 4, "prune_steps": 1, "prune_windows": 4},
}


def test_each_remedy_changes_the_method_alone_and_no_two_are_alike() -> None:
    plain = request_of(PLANTED[0], 0)
    changed = [request_of(PLANTED[0], 0, {**METHOD, **each}) for each in remedies.REMEDIES.values()]
    assert len({each.method for each in changed}) == len(remedies.REMEDIES)
    assert all(each.model_copy(update={"method": plain.method}) == plain for each in changed)


def test_rows_are_kept_and_not_made_again_and_the_last_line_is_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    names, tasks = [remedies.DEFAULTS, "dropout"], ["token-wise"]
    remedies.fill(tmp_path, names, tasks, 1, SHORT)
    kept = remedies.results_in(tmp_path)
    assert [(each.remedy, each.task, each.seed) for each in kept] == [(name, "token-wise", 0) for name in names]
    assert all(each.leading and each.surplus == remedies.n_blocks(each.leading) for each in kept)  # "..." does
    assert len({each.setup for each in kept}) == 2
    monkeypatch.setattr(remedies, "judged", None)
    remedies.fill(tmp_path, names, tasks, 1, SHORT)
    assert remedies.results_in(tmp_path) == kept
    capsys.readouterr()
    remedies.show(tmp_path, names, tasks, 1, SHORT)
    *_, last = capsys.readouterr().out.splitlines()
    found = json.loads(last)
    assert list(found["remedies"]) == names
    assert found["remedies"]["dropout"]["n"] == 1
    assert found["remedies"]["dropout"]["surplus"] == kept[1].surplus
