"""Constraints as configs: what they refuse, in words, and what they mean against a space."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from nas import constrain
from nas.config.base import one_line
from nas.config.constraints import Constraints
from nas.errors import InvalidInput
from tests import tiny


def refusal(body: dict[str, Any]) -> str:
    with pytest.raises(ValidationError) as error:
        Constraints.model_validate(body)
    return one_line(error.value)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"counts": [{"at_most": 1}]}, "counts.0: a count needs exactly one of family and label"),
        (
            {"counts": [{"family": "ffn", "label": "ffn", "at_most": 1}]},
            "counts.0: a count needs exactly one of family and label",
        ),
        ({"counts": [{"family": "ffn"}]}, "counts.0: a count needs at_least, at_most or both"),
        (
            {"counts": [{"family": "ffn", "at_least": 3, "at_most": 2}]},
            "counts.0: a count of at least 3 and at most 2 holds no number",
        ),
        ({"ratios": [{"family": "ffn"}]}, "ratios.0: a ratio needs at_least, at_most or both"),
        (
            {"ratios": [{"family": "identity", "at_least": 2}]},
            "ratios.0: a ratio is of blocks, and a skipped slot is none; count identity instead",
        ),
        (
            {"ratios": [{"family": "ffn", "at_least": 3.5, "at_most": 2}]},
            "ratios.0: a ratio of at least 3.5 and at most 2 holds no number",
        ),
        (
            {"ratios": [{"family": "ffn", "at_least": float("nan")}]},
            "ratios.0.at_least: input should be a finite number",
        ),
        (
            {"forced": [{"labels": ["ffn"], "first": 3, "last": 2}]},
            "forced.0: slots 4 to 3, counted from 1, are none; last must not be below first",
        ),
        ({"cuts": [{"before_slot": 1}]}, "cuts.0: a cut needs exactly one of family and label"),
        (
            {"cuts": [{"family": "ffn"}]},
            "cuts.0: a cut needs exactly one of before_slot, before_share, from_slot and from_share",
        ),
        (
            {"cuts": [{"family": "ffn", "before_slot": 1, "from_slot": 0}]},
            "cuts.0: a cut needs exactly one of before_slot, before_share, from_slot and from_share",
        ),
        ({"apart": True}, "apart: extra inputs are not permitted"),
    ],
    ids=[
        *(
            "nothing named",
            "two names",
            "empty count",
            "no count",
            "empty ratio",
            "ratio of skipped",
            "no ratio",
            "nan",
        ),
        *("no slots", "cut of nothing", "no cut", "two cuts", "unknown"),
    ],
)
def test_a_constraint_that_makes_no_sense_is_refused(body: dict[str, Any], message: str) -> None:
    assert refusal(body) == message


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            {"counts": [{"family": "rnn", "at_most": 1}]},
            "counts/0 names family 'rnn'; the space has attention, ffn, iden",
        ),
        (
            {"ratios": [{"family": "rnn", "at_most": 1}]},
            "ratios/0 names family 'rnn'; the space has attention, ffn, iden",
        ),
        (
            {"cuts": [{"label": "rnn", "before_slot": 1}]},
            "cuts/0 names label 'rnn'; the space has attention, ffn, ident",
        ),
        (
            {"forced": [{"labels": ["rnn"]}]},
            "forced/0 names label 'rnn'; the space has attention, ffn, identity, sgu, m",
        ),
        (
            {"forbidden": [{"labels": ["ffn"], "last": 2}]},
            "forbidden/0 names slot 3, counted from 1; of 2 slots, at most 2 is possible",
        ),
        (
            {"cuts": [{"family": "ffn", "before_slot": 3}]},
            "cuts/0 names slot 4, counted from 1; of 2 slots, at most 3 is possible",
        ),
        (
            {"budget": {"latency": {"ms": 3}}},
            "budget.latency needs a latency table, and there is none; bound what is co",
        ),
    ],
    ids=["count", "ratio", "cut", "forced", "slot", "cut slot", "no table"],
)
def test_what_the_space_lacks_is_told_with_what_it_has(body: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput) as error:
        constrain.read(Constraints.model_validate(body), tiny.request(), None)
    assert str(error.value).startswith(message)


def test_a_ratio_to_the_parent_needs_one() -> None:
    request = tiny.request(space={"candidates": ["ffn", "sgu"]}, retrain={"baselines": [], "n_steps": 1, "n_seeds": 1})
    budget = Constraints.model_validate({"budget": {"parameters": {"ratio_to_parent": 0.5}}})
    with pytest.raises(InvalidInput, match=r"^the interleaved parent needs candidates of families attention and ffn"):
        constrain.read(budget, request, None)


def test_two_thirds_of_the_depth_are_two_thirds_whatever_the_float() -> None:
    request = tiny.request(space={"n_slots": 12})
    for share in (0.6666666666, 2 / 3, 0.6666666667):
        body = {"cuts": [{"family": "attention", "before_share": share}]}
        (cut,) = constrain.read(Constraints.model_validate(body), request, None)
        assert cut.mask is not None
        assert np.flatnonzero(cut.mask[:, 0]).tolist() == list(range(8))
        assert cut.words.startswith("attention only before slot 9, 0.6667 of the depth")


def test_labels_of_one_block_with_one_set_of_options_have_one_code() -> None:
    candidates = [
        "attention",
        {"label": "again", "block": "attention"},
        "identity",
        {"label": "skip", "block": "identity"},
    ]
    request = tiny.request(space={"candidates": candidates}, retrain={"baselines": [], "n_steps": 1, "n_seeds": 1})
    held = constrain.frame(request.space, np.zeros((2, 4)), np.zeros(4))
    assert held.codes == (1, 1, 0, 0)
    assert held.mixers == (True, True, False, False)
