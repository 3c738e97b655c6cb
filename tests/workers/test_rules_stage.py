"""The rules of a search: kept with their verdicts, and confirmed by trainings on seeds that nobody has used."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nas.architecture import Architecture
from nas.config.request import SearchRequest
from nas.data.corpora import text_file
from nas.ingest.card import Dataset
from tests import tiny
from workers.folder import FolderStore
from workers.inline import InlineTrials
from workers.stages.compare import describe_layouts
from workers.stages.measure import measure
from workers.stages.passed_on import Derived, Inputs, Retrained, Searched, Trained
from workers.stages.retrain import retrain
from workers.stages.rules import Confirmed, confirm_statements, infer_statements, keep_rules
from workers.store import TrialKey

Events = list[tuple[str, dict[str, Any]]]
EARLY = "AAFFFF"


def request(n_slots: int = 6, layout: Any = (), **retrain: Any) -> SearchRequest:
    return tiny.request(
        space={"n_slots": n_slots, "d_model": 16, "n_heads": 2, "max_len": 16, "layout": layout},
        task={"dataset": "letters", "train_length": 16, "serve": [{"batch": 2, "query_length": 16}]},
        trials={"n_seeds": 5},
        retrain={"n_steps": 4, "n_seeds": 1, "test_windows": 8, **retrain},
    )


class Running:
    """A search up to its derivation, which is given: real stages, real trainings."""

    def __init__(self, folder: Path, files: dict[str, Dataset], asked: SearchRequest, seeds: list[str]) -> None:
        self.events: Events = []
        table = tiny.table(asked.space)
        asked = asked.model_copy(update={"latency_table": table.id})
        self.store = FolderStore(folder, files, lambda kind, data: self.events.append((kind, data)), table)
        self.trials = InlineTrials()
        self.inputs: Inputs = measure(asked, self.store, self.trials)
        self.searched = Searched(0, {}, {})
        letters = {each.letter: each.label for each in asked.space.candidates}
        self.derived = []
        for seed, string in enumerate(seeds):
            architecture = Architecture(tuple(letters[x] for x in string), asked.space.candidates)
            key = TrialKey("search", 0, seed)
            entry = {"role": "budget", "string": string, "slots": [*architecture.labels], "seed": seed, "bounds": []}
            self.derived.append(Derived(f"budget-{key}", "budget", architecture, entry, seed))

    def confirmed(self) -> Confirmed:
        said = infer_statements(self.inputs, self.derived)
        self.line = keep_rules(self.inputs, self.derived, said, self.store)
        trained = retrain(self.inputs, self.searched, self.derived, self.store, self.trials)
        return confirm_statements(self.inputs, self.searched, said, trained, self.store, self.trials)

    def rules(self) -> list[dict[str, Any]]:
        return self.confirmed().statements

    def kept(self) -> dict[str, str]:
        """The last verdict of each statement that was kept."""
        return {data["statement"]: data["verdict"] for kind, data in self.events if kind == "rule"}

    def warnings(self) -> list[str]:
        return [data["message"] for kind, data in self.events if kind == "warning"]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Dataset]:
    return {"letters": text_file(tiny.text(), tmp_path_factory.mktemp("data"))}


def position(found: list[dict[str, Any]]) -> dict[str, Any]:
    (one,) = [each for each in found if each["kind"] == "position"]
    return one


def test_rules_are_kept_with_verdict_reason_and_where_they_were_found(tmp_path: Path, files: Any) -> None:
    search = Running(tmp_path, files, request(), [EARLY] * 5)
    found = search.rules()
    assert [each["kind"] for each in found] == ["ratio", "position", "cut"]
    assert {each["verdict"] for each in found} == {"suggested"}
    assert position(found)["reason"].endswith("has not been retrained against others of the same cost")
    assert position(found)["found_at"]["n_slots"] == 6
    assert search.kept() == {each["statement"]: "suggested" for each in (search.line, *found)}
    assert search.line["statement"].startswith("1 search, 5 seeds: suggested; attention in slots 1-2 of 6 ")
    assert search.line["reason"] == "3 of 3 statements about attention that are tested can be suggested"
    assert search.line["found_at"] == position(found)["found_at"]


def test_what_retraining_says_decides(tmp_path: Path, files: Any) -> None:
    baselines = ["interleaved", "sandwich", "random"]
    asked = request(confirm_seeds=3, confirm_placements=4, baselines=baselines, n_random=1)
    search = Running(tmp_path, files, asked, [EARLY] * 5)
    said = search.confirmed()
    found, layouts = said.statements, said.layouts
    told = position(found)["confirmation"]
    assert told["layout"] in ("AAFFFF", "AFAFFF")
    assert [label[0].upper() for label in told["slots"]] == [*told["layout"]]
    assert (told["seeds"], told["n_random"], told["margin"], told["unit"]) == ([5, 6, 7], 4, 0.02, "bits per byte")
    assert told["random"]["low"] <= told["random"]["mean"] <= told["random"]["high"]
    assert told["placement"] in ("better", "worse", "cannot tell")
    assert search.kept() == {each["statement"]: each["verdict"] for each in (search.line, *found)}
    trials = [data["trial"] for kind, data in search.events if kind == "trial" and data["state"] == "succeeded"]
    fresh = [each for each in trials if each.endswith(("-5", "-6", "-7"))]
    assert len(fresh) == 3 * 7
    (told_before,) = said.power
    assert told_before["message"].startswith("confirming rules: 3 paired seeds show a difference")
    assert told_before in [data for kind, data in search.events if kind == "power"]
    rows = {each["name"]: each for each in describe_layouts(search.inputs, layouts)}
    assert [*rows] == ["rule", *(f"rule random {n}" for n in range(1, 5)), "rule parent", "rule sandwich"]
    assert sorted(trial for row in rows.values() for trial in row["trials"]) == sorted(fresh)
    mean = rows["rule"]["mean"] - rows["rule parent"]["mean"]
    assert mean == pytest.approx(told["parent"]["mean"]), "figures can be traced to the rows that they are of"
    n_reports = len([data for kind, data in search.events if kind == "reports"])
    assert search.rules() == found
    again = [data for kind, data in search.events if kind == "reports"]
    assert len(again) == n_reports, "what was trained is not trained again"


def test_rules_of_few_seeds_are_not_retrained(tmp_path: Path, files: Any) -> None:
    search = Running(tmp_path, files, request(confirm_seeds=3), [EARLY] * 4)
    assert {each["confirmation"] for each in search.rules()} == {None}


def test_a_layout_that_the_space_does_not_allow_is_told(tmp_path: Path, files: Any) -> None:
    layout = [{}, {}, {"forbidden": ["ffn"]}, {}, {}, {}]
    search = Running(tmp_path, files, request(layout=layout, confirm_seeds=3), ["AFSFFF"] * 5)
    assert {each["confirmation"] for each in search.rules()} == {None}
    assert [each for each in search.warnings() if each.startswith("the rules were not confirmed: ")] == [
        "the rules were not confirmed: their layout has 'ffn' in slot 3, where the space does not allow it"
    ]


def test_a_confirmation_that_does_not_train_leaves_what_was_found(
    tmp_path: Path, files: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    search = Running(tmp_path, files, request(confirm_seeds=3), [EARLY] * 5)
    said = infer_statements(search.inputs, search.derived)
    trained = retrain(search.inputs, search.searched, search.derived, search.store, search.trials)
    monkeypatch.setattr("nas.retrain.learning_rate", lambda step, n_steps, method: math.nan)
    outcome = confirm_statements(search.inputs, search.searched, said, trained, search.store, search.trials)
    found, layouts = outcome.statements, outcome.layouts
    assert layouts == {}
    assert {(each["verdict"], each["confirmation"]) for each in found} == {("suggested", None)}
    (warning,) = search.warnings()[-1:]
    assert re.match(r"the rules were not confirmed: trial retrain-\d-5 failed: training diverged", warning)


def test_blocks_without_other_placements_are_told(tmp_path: Path, files: Any) -> None:
    search = Running(tmp_path, files, request(n_slots=2, confirm_seeds=3), ["AF"] * 5)
    said = search.confirmed()
    assert search.warnings() == [], "a ratio alone is worth confirming here, and needs no placements"
    assert [*said.layouts] == ["rule", "rule parent"]
    (ratio,) = [each for each in said.statements if each["kind"] == "ratio"]
    assert (ratio["confirmation"]["random"], ratio["confirmation"]["n_random"]) == (None, 0)
    assert ratio["verdict"] == "supported", "the layout is the parent itself"


@pytest.mark.parametrize(
    ("kind", "seeds", "chosen", "lack"),
    [
        ("position", ["SSFFFF"] * 5 + ["AFAFFF"], "AFAFFF", "has 0 blocks of sgu; it takes 1"),
        ("order", ["SSAAFF"] * 5 + ["AFAFFF"], "AFAFFF", "has 0 blocks of sgu; it takes 1"),
        ("spacing", ["AFAFAF"] * 5 + ["AFFFFA"], "AFFFFA", "has 2 blocks of attention; it takes 3"),
    ],
    ids=["no such block", "one of two", "too few for gaps"],
)
def test_a_placement_is_not_confirmed_by_blocks_that_cannot_show_it(
    tmp_path: Path, files: Any, kind: str, seeds: list[str], chosen: str, lack: str
) -> None:
    search = Running(tmp_path, files, request(confirm_seeds=3), seeds)
    said = [each for each in infer_statements(search.inputs, search.derived) if each.kind == kind]
    said = [
        replace(each, verdict="suggested") for each in said if "sgu" in (each.family, each.other) or kind == "spacing"
    ]
    derived = next(each for each in search.derived if str(each.architecture) == chosen)
    trained = Trained({"derived": Retrained(derived, {}, {}, 0.1, ())}, None, ())
    outcome = confirm_statements(search.inputs, search.searched, said, trained, search.store, search.trials)
    found, layouts = outcome.statements, outcome.layouts
    assert layouts == {}
    assert [(each["verdict"], each["confirmation"]) for each in found] == [("suggested", None)]
    family = said[0].family
    assert search.warnings() == [f"the {kind} of {family} was not confirmed: the derived architecture {lack}"]


def test_a_statement_that_the_common_layout_breaks_is_not_confirmed(tmp_path: Path, files: Any) -> None:
    search = Running(tmp_path, files, request(confirm_seeds=3), ["AAAAAF"] * 5)
    said = {each.kind: each for each in infer_statements(search.inputs, search.derived)}
    late = replace(said["position"], direction="late", at=0.6, verdict="suggested")
    cut = replace(said["position"], kind="cut", direction="first", at=1.0, verdict="suggested")
    trained = Trained({"derived": Retrained(search.derived[0], {}, {}, 0.1, ())}, None, ())
    outcome = confirm_statements(search.inputs, search.searched, [late, cut], trained, search.store, search.trials)
    late_told, cut_told = outcome.statements
    assert late_told["confirmation"]["layout"] == "FAAAAA", "made without the one that it would break"
    assert (cut_told["verdict"], cut_told["confirmation"]) == ("suggested", None)
    assert search.warnings() == [
        "the cut of attention was not confirmed: its layout has 60% of attention in the first two thirds, 100% is "
        "stated"
    ]


@pytest.mark.parametrize(
    ("seeds", "chosen", "lack"),
    [
        (
            ["AFFFFF"] * 5 + ["AAAFFF"],
            "AAAFFF",
            "the ratio of attention was not confirmed: 3 of 6 blocks of the derived architecture are attention, which "
            "is not within",
        ),
        (
            ["AAAAFF"] * 5,
            "AAAAFF",
            "the ratio of attention was not confirmed: the derived architecture costs more than the parent that it is "
            "held against, ",
        ),
    ],
    ids=["another ratio", "a cheaper parent"],
)
def test_a_ratio_is_not_confirmed_by_what_has_another_or_costs_more(
    tmp_path: Path, files: Any, seeds: list[str], chosen: str, lack: str
) -> None:
    search = Running(tmp_path, files, request(confirm_seeds=3), seeds)
    said = [each for each in infer_statements(search.inputs, search.derived) if each.kind == "ratio"]
    derived = next(each for each in search.derived if str(each.architecture) == chosen)
    trained = Trained({"derived": Retrained(derived, {}, {}, 0.1, ())}, None, ())
    outcome = confirm_statements(search.inputs, search.searched, said, trained, search.store, search.trials)
    found, layouts = outcome.statements, outcome.layouts
    assert layouts == {}
    assert [(each["verdict"], each["confirmation"]) for each in found] == [("suggested", None)]
    (warning,) = search.warnings()
    assert warning.startswith(lack)
