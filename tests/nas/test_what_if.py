"""What a stored record says under other constraints, and how far seeds agree."""

from __future__ import annotations

import math
from typing import Any

import pytest

from nas import constrain, what_if
from nas.architecture import Architecture
from nas.config.constraints import Constraints
from nas.config.request import SearchRequest
from nas.errors import Infeasible, InvalidInput
from nas.steps import StepRecord
from nas.what_if import Answers, agreement, all_costs, answers
from tests import tiny

RECORD = StepRecord(9, probabilities=[[0.5, 0.2, 0.1, 0.1, 0.1], [0.1, 0.2, 0.5, 0.1, 0.1]], null_gaps=[0.1, 0.1])


def asked(request: SearchRequest | None = None, body: dict[str, Any] | None = None, **options: Any) -> Answers:
    request = request or tiny.request()
    table = tiny.table(request.space)
    constraints = constrain.read(Constraints.model_validate(body or {}), request, table)
    return answers(request, all_costs(request, table), RECORD, constraints, **options)


@pytest.mark.parametrize("k", [0, 101])
def test_a_number_of_architectures_out_of_range_is_refused(k: int) -> None:
    with pytest.raises(InvalidInput, match=rf"^k is {k}; it must be from 1 to 100$"):
        asked(k=k)


def test_a_front_against_an_unknown_cost_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"^front\.cost is 'money'; of this search are known: latency, param"):
        asked(front=("money", 5))


def test_nats_need_a_pass() -> None:
    with pytest.raises(InvalidInput, match=r"^no parsimony pass has measured nats by step 9; rank by probability, or"):
        asked(objective="nats")


def test_an_infeasible_request_is_explained_by_the_answer_and_by_the_check() -> None:
    message = r"^no architecture has at least 3 slots of ffn \(2 slots can be met\)$"
    with pytest.raises(Infeasible, match=message):
        asked(body={"counts": [{"family": "ffn", "at_least": 3}]})
    request = tiny.request()
    constraints = constrain.read(
        Constraints.model_validate({"counts": [{"family": "ffn", "at_least": 3}]}), request, None
    )
    with pytest.raises(Infeasible, match=message):
        what_if.check(request, constraints)


def test_costs_are_the_tables_and_the_formulas_own() -> None:
    request = tiny.request()
    table = tiny.table(request.space)
    found = asked().best[0]
    assert str(found.architecture) == "A."
    assert found.costs["latency"] == table.predict_ms(found.architecture, request.space)
    assert found.log_probability == pytest.approx(math.log(0.25))
    assert set(found.costs) == set(what_if.UNITS)


def test_an_encoder_has_no_cache_and_a_space_without_a_table_no_latency() -> None:
    request = tiny.request(space={"causal": False}, task={"objective": "masked_lm", "train_length": 16})
    assert set(all_costs(request, None)) == {"parameters", "flops"}


def test_agreement_counts_seeds_and_networks_and_makes_no_architecture() -> None:
    request = tiny.request(space={"n_slots": 3})
    letters = {candidate.letter: candidate.label for candidate in request.space.candidates}
    seeds = [Architecture(tuple(letters[x] for x in text), request.space.candidates) for text in ("A.F", ".AF", "AFF")]
    found = agreement(request, seeds)
    assert (found.n_seeds, found.n_networks) == (3, 2)
    assert found.labels == ("attention", "attention", "ffn")
    assert found.n_agree == (2, 1, 3)
    assert found.families["identity"] == (0, 1)
