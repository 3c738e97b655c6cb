"""The retraining stage: baselines, a grid of learning rates, warm starts and a teacher, in whole tiny searches."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from api.layouts import Power, RetrainedLayout
from nas.architecture import Architecture
from nas.config.budget import Budget
from nas.config.request import SearchRequest
from nas.data.corpora import text_file
from nas.errors import SearchFailed
from nas.exact import labels
from nas.ingest.card import Dataset
from nas.retrain import load_network
from tests import tiny
from workers.folder import FolderStore
from workers.inline import InlineTrials
from workers.stages.compare import compare, compare_layouts, describe_layouts
from workers.stages.derive import derive_all, keep
from workers.stages.measure import measure
from workers.stages.numbering import Numbering
from workers.stages.passed_on import Inputs, Retrained, Searched, Trained
from workers.stages.retrain import retrain, train_layouts
from workers.stages.search import search
from workers.store import TrialKey

Files = dict[str, Dataset]
Events = list[tuple[str, dict[str, Any]]]
Tell = Callable[[str, dict[str, Any]], None]
ALL: dict[str, Any] = {"baselines": ["interleaved", "sandwich", "random"], "n_random": 1, "lrs": [0.1, 1.0]}


def request(**retrain: Any) -> SearchRequest:
    return tiny.request(
        space={"n_slots": 4, "d_model": 16, "n_heads": 2, "max_len": 16},
        task={
            "dataset": "letters", "train_length": 16, "serve": [{"batch": 2, "query_length": 16}],
            "serve_lengths": [16],
        },
        method={
            "n_steps": 40, "lr": 8e-3, "warmup_share": 0.2, "alpha_share": 0.5, "alpha_lr": 0.15,
            "report_every": 10, "checkpoint_every": 10,
        },
        trials={"n_seeds": 2},
        retrain={"n_steps": 6, "n_seeds": 2, "test_windows": 8, **retrain},
    )  # fmt: skip


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    return {"letters": text_file(tiny.text(), tmp_path_factory.mktemp("data"))}


class Stages:
    """A search up to its retraining, without comparison and export."""

    def __init__(
        self,
        asked: SearchRequest,
        folder: Path,
        files: Files,
        also: Tell | None = None,
    ) -> None:
        self.events: Events = []

        def tell(kind: str, data: dict[str, Any]) -> None:
            self.events.append((kind, data))
            if also is not None:
                also(kind, data)

        table = tiny.table(asked.space)
        asked = asked.model_copy(update={"latency_table": table.id})
        self.trials = InlineTrials()
        self.store = FolderStore(folder, files, tell, table)
        self.inputs: Inputs = measure(asked, self.store, self.trials)
        self.searched: Searched = search(self.inputs, self.store, self.trials)
        self.derived = derive_all(self.inputs, self.searched, self.store, self.trials)

    def retrain(self) -> Trained:
        return retrain(self.inputs, self.searched, self.derived, self.store, self.trials)

    def queued(self) -> list[str]:
        """Retrainings in the order in which they were planned."""
        told = [data["trial"] for kind, data in self.events if kind == "trial" and data["state"] == "queued"]
        return [trial for trial in told if trial.startswith("retrain-")]


def nats_of(trained: Trained, name: str) -> list[list[float]]:
    return [each.test_nats for each in trained.layouts[name].in_order]


@pytest.fixture(scope="module", autouse=True)
def _short_timings() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys.modules["workers.stages.compare"], "_LATENCY_ROUNDS", 16)  # the reported figure takes 200
        yield


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, files: Files) -> tuple[Stages, Trained]:
    upto = Stages(request(**ALL), tmp_path_factory.mktemp("searches") / "all", files)
    return upto, upto.retrain()


def test_every_baseline_is_trained_and_held_against_the_derived_one(finished: tuple[Stages, Trained]) -> None:
    upto, trained = finished
    layouts = {each["name"]: each for each in describe_layouts(upto.inputs, trained.layouts)}
    baselines = ["interleaved", "sandwich", "random 1"]
    assert [name for name in layouts if not name.startswith("derived")] == baselines
    assert layouts["sandwich"]["string"] == "AAFF"
    others = [name for name in layouts if name != "derived"]
    compared = compare_layouts(
        upto.inputs, "derived", others, trained.layouts, upto.store, upto.trials, untimed=trained.runners_up
    )
    assert [each["second"] for each in compared] == others
    for each in compared:
        name = each["second"]
        assert (each["first"], each["n_seeds"]) == ("derived", 2)
        difference = layouts["derived"]["mean"] - layouts[name]["mean"]
        assert each["difference"] == pytest.approx(difference, abs=1e-6)
        assert each["low"] <= each["difference"] <= each["high"]
        assert each["detectable"] >= 0
        assert (each["latency"] is None) == name.startswith("derived ")
    quality = compare(upto.inputs, trained, upto.store, upto.trials)
    assert quality is not None
    (same,) = [each for each in compared if each["second"] == "interleaved"]
    assert (same["difference"], same["low"], same["high"]) == (
        quality.quality.mean_bits, quality.quality.low, quality.quality.high,
    )  # fmt: skip
    assert same["latency"]["ratio"] == quality.latency.ratio  # timed once


def test_a_layout_tells_its_trials_costs_and_intervals(finished: tuple[Stages, Trained]) -> None:
    upto, trained = finished
    described = describe_layouts(upto.inputs, trained.layouts)
    ended = {data["trial"] for kind, data in upto.events if kind == "trial" and data["state"] == "succeeded"}
    for each in described:
        assert each["seeds"] == [0, 1]
        assert len(each["trials"]) == 2
        assert set(each["trials"]) <= ended
        assert each["lr"] in (pytest.approx(8e-4), 8e-3)
        assert len(each["val_loss"]) == len(each["test"]) == 2
        assert each["low"] < each["mean"] < each["high"]
        assert RetrainedLayout.model_validate(each).name == each["name"]
    layouts = {each["name"]: each for each in described}
    for cost in ("parameters", "flops", "cache_bytes", "predicted_ms"):  # the same blocks in another order
        assert layouts["sandwich"][cost] == layouts["interleaved"][cost] > 0


def test_a_random_stack_costs_what_the_derived_one_does(finished: tuple[Stages, Trained]) -> None:
    _, trained = finished
    derived, drawn = (trained.layouts[name].derived for name in ("derived", "random 1"))
    assert drawn.entry["predicted_ms"] == pytest.approx(derived.entry["predicted_ms"], rel=0.05)
    assert drawn.architecture.word != derived.architecture.word


def test_each_architecture_takes_the_rate_that_validates_best_with_the_first_seed(
    finished: tuple[Stages, Trained],
) -> None:
    upto, trained = finished
    losses: dict[str, float] = {}
    values: dict[str, dict[str, float]] = {}
    for kind, data in upto.events:
        if kind == "reports" and data["record"]["last"]:
            losses[data["trial"]] = data["record"]["val_loss"]
        if kind == "trial" and data["state"] == "queued":
            values[data["trial"]] = data["values"]
    known = json.loads((upto.store.folder / "retrainings.json").read_text())
    for each in trained.layouts.values():
        number = int(each.trials[0].split("-")[1])
        network = known[number]["network"]
        tried = {n: losses[f"retrain-{n}-0"] for n, entry in enumerate(known) if entry["network"] == network}
        assert len(tried) == 2
        assert number == min(tried, key=lambda n: tried[n])
        assert values[each.trials[0]]["/method/lr"] == pytest.approx(each.lr)
        assert not any(f"retrain-{n}-1" in losses for n in tried if n != number)  # what lost gets no other seed


def test_several_seeds_choose_a_rate_together(files: Files, tmp_path: Path) -> None:
    upto = Stages(request(lrs=[0.5, 1.0], lr_seeds=2, n_steps=3), tmp_path, files)
    layouts = upto.retrain().layouts
    losses: dict[str, float] = {}
    for kind, data in upto.events:
        if kind == "reports" and data["record"]["last"]:
            losses[data["trial"]] = data["record"]["val_loss"]
    known = json.loads((upto.store.folder / "retrainings.json").read_text())
    for each in layouts.values():
        number = int(each.trials[0].split("-")[1])
        network = known[number]["network"]
        means = {
            n: (losses[f"retrain-{n}-0"] + losses[f"retrain-{n}-1"]) / 2
            for n, entry in enumerate(known)
            if entry["network"] == network
        }
        assert len(means) == 2
        assert number == min(means, key=lambda n: means[n])


def test_what_can_be_shown_is_told_before_any_retraining_and_again_before_the_random_ones(
    finished: tuple[Stages, Trained],
) -> None:
    upto, trained = finished
    told = [number for number, (kind, _) in enumerate(upto.events) if kind == "power"]
    queued = [
        number
        for number, (kind, data) in enumerate(upto.events)
        if kind == "trial" and data["state"] == "queued" and data["trial"].startswith("retrain-")
    ]
    assert len(told) == 2
    assert told[0] < queued[0]
    assert told[1] < queued[-1]
    assert [data for kind, data in upto.events if kind == "power"] == trained.power
    first, second = trained.power
    assert first["source"] == "the losses of 2 search seeds, which are not paired"
    assert first["message"].startswith("retraining: 2 paired seeds show a difference from ")
    assert second["source"].endswith("networks retrained before, on validation")
    assert first["unit"] == second["unit"] == "bits per byte"
    assert Power.model_validate(first).detectable == first["detectable"]


@pytest.mark.parametrize("after", [3, 13], ids=["in the grid", "in the random stack"])
def test_stopped_anywhere_it_goes_on_with_the_same_trials_and_numbers(
    after: int, finished: tuple[Stages, Trained], files: Files, tmp_path: Path
) -> None:
    undisturbed, expected = finished
    ended: list[str] = []

    def interrupt(kind: str, data: dict[str, Any]) -> None:
        if kind == "trial" and data["state"] == "succeeded" and data["trial"].startswith("retrain-"):
            ended.append(data["trial"])
            if len(ended) == after:
                raise KeyboardInterrupt

    folder = tmp_path / "stopped"
    with pytest.raises(KeyboardInterrupt):
        Stages(request(**ALL), folder, files, interrupt).retrain()
    again = Stages(request(**ALL), folder, files)
    trained = again.retrain()
    numbers = [upto.store.folder / "retrainings.json" for upto in (again, undisturbed)]
    assert numbers[0].read_text() == numbers[1].read_text()
    found, before = (describe_layouts(again.inputs, each.layouts) for each in (trained, expected))
    assert found == before
    started = {data["trial"] for kind, data in again.events if kind == "trial" and data["state"] == "running"}
    assert not started & {*ended}  # what had ended is not run again
    assert started | {*ended} == {
        data["trial"] for kind, data in undisturbed.events if kind == "trial" and data["state"] == "succeeded"
    } - {"search-0-0", "search-0-1"}


def test_later_stages_train_layouts_of_their_own_and_only_what_is_new(files: Files, tmp_path: Path) -> None:
    asked = request()
    upto = Stages(asked, tmp_path / "one", files)
    trained = upto.retrain()
    known = len({trial.split("-")[1] for trial in upto.queued()})
    candidates = asked.space.candidates
    layouts = {
        "rule: ratio": Architecture(("sgu", "sgu", "attention", "mgk"), candidates),
        "again": Architecture(("sgu", "sgu", "attention", "mgk"), candidates),
        "interleaved": trained.layouts["interleaved"].derived.architecture,
    }

    def train(seeds: list[int]) -> dict[str, Retrained]:
        return train_layouts(upto.inputs, layouts, seeds, upto.searched.values, upto.store, upto.trials, sample=0)

    found = train([0, 1])
    assert {name: list(each.trials) for name, each in found.items()} == {
        "rule: ratio": [f"retrain-{known}-0", f"retrain-{known}-1"],
        "again": [f"retrain-{known}-0", f"retrain-{known}-1"],
        "interleaved": list(trained.layouts["interleaved"].trials),
    }
    assert found["interleaved"].results == trained.layouts["interleaved"].results
    assert [each.derived.role for each in found.values()] == ["rule: ratio", "again", "interleaved"]
    fresh = train([7, 8])
    assert list(fresh["rule: ratio"].trials) == [f"retrain-{known}-7", f"retrain-{known}-8"]
    before = len(upto.queued())
    assert train([7, 8]) == fresh
    assert len(upto.queued()) == before
    (compared,) = compare_layouts(upto.inputs, "rule: ratio", ["interleaved"], fresh, upto.store, upto.trials)
    assert (compared["first"], compared["second"], compared["n_seeds"]) == ("rule: ratio", "interleaved", 2)


@pytest.mark.parametrize(("start", "n_trained"), [("scratch", 2), ("supernet", 3)])
def test_one_network_in_other_slots_is_trained_once(files: Files, tmp_path: Path, start: str, n_trained: int) -> None:
    upto = Stages(request(start=start, n_seeds=1), tmp_path, files)
    labels = {"A": "attention", "F": "ffn", ".": "identity"}
    placements = iter(["A.F.", ".AF."])
    upto.derived = [
        replace(
            each,
            architecture=Architecture(
                tuple(labels[letter] for letter in next(placements)), each.architecture.candidates
            ),
        )
        if each.role == "budget"
        else each
        for each in upto.derived
    ]
    trained = upto.retrain()
    assert len(upto.queued()) == n_trained  # beside the parent
    assert ("derived 2" in trained.layouts) == (start == "supernet")
    winner = trained.derived
    config = upto.inputs.request.network_config(winner.derived.architecture.labels, upto.inputs.request.task.vocab_size)
    load_network(winner.best.path, config)  # its weights are of its own slots


def test_a_warm_start_begins_lower_and_is_told(files: Files, tmp_path: Path) -> None:
    cold, warm = (Stages(request(start=start), tmp_path / start, files) for start in ("scratch", "supernet"))
    before, after = cold.retrain(), warm.retrain()
    for name in ("derived", "interleaved"):
        assert after.layouts[name].val_loss < before.layouts[name].val_loss - 0.1
    warnings = [data["message"] for kind, data in warm.events if kind == "warning"]
    assert any(each.startswith("retrain.start is supernet: the search trained the blocks") for each in warnings)
    assert not any("are not independent" in each for each in warnings)


def test_seeds_that_share_a_supernet_are_told(files: Files, tmp_path: Path) -> None:
    upto = Stages(request(start="supernet", n_seeds=3, n_steps=1, baselines=[]), tmp_path / "shared", files)
    upto.retrain()
    assert [data["message"] for kind, data in upto.events if kind == "warning"][-1] == (
        "retrain.start is supernet and retrain.n_seeds is 3, but trials.n_seeds is 2: seeds that begin with weights of "
        "the same search are not independent, so intervals over them are too narrow; give at most 2"
    )


def test_everything_learns_from_the_parent_which_is_trained_first_and_by_itself(files: Files, tmp_path: Path) -> None:
    upto = Stages(request(distil={"weight": 0.9}), tmp_path / "taught", files)
    taught = upto.retrain()
    plain = Stages(request(), tmp_path / "plain", files).retrain()
    assert taught.layouts["teacher"].derived.architecture == taught.layouts["interleaved"].derived.architecture
    assert nats_of(taught, "teacher") == nats_of(plain, "interleaved")
    assert nats_of(taught, "interleaved") != nats_of(plain, "interleaved")
    assert nats_of(taught, "derived") != nats_of(plain, "derived")
    assert upto.queued()[0] == taught.layouts["teacher"].trials[0] == "retrain-0-0"


def test_a_rate_at_which_training_diverges_is_out_of_the_running(
    files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nas.retrain.learning_rate", lambda _, n, method: math.nan if method.lr > 0.02 else method.lr)
    trained = Stages(request(lrs=[1, 100]), tmp_path / "one", files).retrain()
    assert {each.lr for each in trained.layouts.values()} == {8e-3}
    message = r"^trial retrain-1-0 failed, as with every other of retrain.lrs: training diverged"
    with pytest.raises(SearchFailed, match=message):
        Stages(request(lrs=[50, 100]), tmp_path / "none", files).retrain()


def test_the_next_best_of_each_seed_are_trained_too(files: Files, tmp_path: Path) -> None:
    upto = Stages(request(k_best=3, baselines=[], n_seeds=1, n_steps=2), tmp_path / "best", files)
    roles = [each.role for each in upto.derived]
    assert roles == ["argmax", "budget", "budget 2", "budget 3"] * 2
    trained = upto.retrain()
    networks = {each.architecture.network for each in upto.derived if each.role != "argmax"}
    assert [*trained.layouts] == ["derived", *(f"derived {place}" for place in range(2, len(networks) + 1))]
    losses = [each.val_loss for each in trained.layouts.values()]
    assert losses == sorted(losses)
    again = Stages(request(k_best=3, baselines=[], n_seeds=1, n_steps=2), tmp_path / "best", files)
    assert [each.architecture for each in again.derived] == [each.architecture for each in upto.derived]


def test_where_the_next_best_cannot_be_told_the_best_alone_is_derived(
    files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As of deep stacks of which most slots are undecided, under two bounds.
    monkeypatch.setattr(labels, "MOST_LABELS", 1)
    two = {"parameters": {"ratio_to_parent": 1.0}, "flops": {"ratio_to_parent": 1.0}}
    asked = request(k_best=3, baselines=[], n_seeds=1, n_steps=2)
    asked = asked.model_copy(update={"budget": Budget.model_validate(two)})
    upto = Stages(asked, tmp_path / "ties", files)
    assert [each.role for each in upto.derived] == ["argmax", "budget"] * 2
    warnings = [data["message"] for kind, data in upto.events if kind == "warning"]
    assert [each.partition(":")[2] for each in warnings if "k_best" in each] == [
        " retrain.k_best is 3, but only the best is derived: too many architectures are as good as the 9 best to tell "
        "which these are; ask for one, or set tighter constraints"
    ] * 2


@pytest.mark.parametrize(("verdicts", "first", "n_warned"), [(["over", "within"], 1, 0), (["over", "over"], 0, 1)])
def test_what_is_over_a_bound_comes_behind_what_is_not(
    files: Files, tmp_path: Path, verdicts: list[str], first: int, n_warned: int
) -> None:
    upto = Stages(request(baselines=[], n_seeds=1), tmp_path / "over", files)
    space = upto.inputs.request.space
    stacks = (("attention", "attention", "ffn", "ffn"), ("ffn", "identity", "identity", "identity"))
    upto.derived = [
        keep(role, Architecture(labels, space.candidates), upto.inputs, upto.store, TrialKey("search", 0, 1))
        for role, labels in zip(("budget", "budget 2"), stacks, strict=True)
    ]
    for each, verdict in zip(upto.derived, verdicts, strict=True):
        each.entry["bounds"] = [{"name": "parameters", "verdict": "within"}, {"name": "latency", "verdict": verdict}]
    trained = upto.retrain()
    assert trained.layouts["derived"].val_loss != trained.layouts["derived 2"].val_loss
    better = [each.derived.id for each in sorted(trained.layouts.values(), key=lambda each: each.val_loss)]
    assert better[0] == upto.derived[0].id, "the one over the bound validates best"
    assert trained.derived.derived.id == upto.derived[first].id
    warnings = [data["message"] for kind, data in upto.events if kind == "warning"]
    told = "no derived architecture is within all bounds of the budget; the one that validates best is over"
    assert warnings.count(told) == n_warned


def test_one_seed_is_told_to_show_nothing(files: Files, tmp_path: Path) -> None:
    upto = Stages(request(n_seeds=1), tmp_path / "one", files)
    trained = upto.retrain()
    (told,) = trained.power
    assert told["message"].startswith("retraining: one seed of each network cannot show that a difference holds")
    assert told["detectable"] is None
    described = describe_layouts(upto.inputs, trained.layouts)
    assert {each["low"] for each in described} == {None}


def test_a_space_with_few_stacks_says_so_and_trains_those_there_are(files: Files, tmp_path: Path) -> None:
    asked = request(baselines=["random"], n_random=64, n_seeds=1, n_steps=1)
    space = asked.space.model_copy(update={"n_slots": 2})
    upto = Stages(asked.model_copy(update={"space": space}), tmp_path / "few", files)
    trained = upto.retrain()
    n = sum(name.startswith("random") for name in trained.layouts)
    assert n < 64
    assert any(
        data["message"].startswith(f"retrain.n_random is 64, but the space holds {n} other stacks within 5% of")
        for kind, data in upto.events
        if kind == "warning"
    )


def test_numbers_are_given_once_and_found_again(tmp_path: Path) -> None:
    numbering = Numbering(tmp_path)
    first = numbering.give("a", {"/method/lr": 0.1}, False, "id of a")
    assert numbering.give("a", {"/method/lr": 0.2}, False, "id of a").number == 1
    assert numbering.give("a", {"/method/lr": 0.1}, True, "id of a").number == 2
    numbering.save()
    again = Numbering(tmp_path)
    assert again.give("a", {"/method/lr": 0.1}, False, "another id") == first
    assert again.architecture_of("a") == "id of a"
    assert again.architecture_of("b") is None
    assert again.give("b", {}, False, "id of b").number == 3
