from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import Engine, select

from db import events, models, searches, stored, trials
from db.engine import reading, transaction
from tests.db.rows import get, started

UNFIT = "no \0 in \udcff\ud800 here"
FIT = "no \ufffd in \ufffd\ufffd here"


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        pytest.param(
            {"a": [UNFIT, 1, None], UNFIT: {"b": (UNFIT,)}}, {"a": [FIT, 1, None], FIT: {"b": [FIT]}}, id="unfit"
        ),
        pytest.param({"path": "C:\\u0000", "tab": "\t\x01"}, {"path": "C:\\u0000", "tab": "\t\x01"}, id="looks unfit"),
        pytest.param(
            {"emoji": "\U0001f600", "word": "größer"}, {"emoji": "\U0001f600", "word": "größer"}, id="unicode"
        ),
        pytest.param(
            {"seed": 2**200, "lr": 1e-300, "n": -0.0}, {"seed": 2**200, "lr": 1e-300, "n": -0.0}, id="wide numbers"
        ),
    ],
)
def test_json_comes_back_as_it_was_but_for_what_cannot_be_kept(engine: Engine, value: Any, kept: Any) -> None:
    run = started(engine)
    with transaction(engine) as connection:
        events.append(connection, run.lease, [("warning", value)])
        searches.set_result(connection, run.lease, value)
    with reading(engine) as connection:
        assert events.after(connection, run.search_id, 4, limit=1)[0].data == kept
    assert get(engine, run.search_id).result == kept


def test_what_was_kept_can_be_read_by_the_database_too(engine: Engine) -> None:
    run = started(engine)
    with transaction(engine) as connection:
        searches.set_result(connection, run.lease, {"said": UNFIT})
    with reading(engine) as connection:
        assert connection.scalar(select(models.searches.c.result["said"].as_string())) == FIT


def test_a_reason_may_quote_anything(engine: Engine) -> None:
    run = started(engine)
    with transaction(engine) as connection:
        trials.finish(connection, run.lease, run.trial_id, "failed", reason=UNFIT)
        searches.finish(connection, run.lease, "failed", reason=UNFIT)
    with reading(engine) as connection:
        (trial,) = trials.of_search(connection, run.search_id)
        assert [event.data.get("reason") for event in events.after(connection, run.search_id, 4)] == [FIT, FIT]
    assert (get(engine, run.search_id).reason, trial.reason) == (FIT, FIT)


def test_what_is_no_number_is_no_json() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        stored.dumps({"lr": float("inf")})
