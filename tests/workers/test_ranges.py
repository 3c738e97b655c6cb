"""Samples of hyper-parameters through the search stage: who ends early, and that nothing else changes it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from nas.config.request import SearchRequest
from nas.data.corpora import text_file
from nas.ingest.card import Dataset
from nas.steps import StepRecord
from tests import tiny
from workers import rungs
from workers.folder import FolderStore
from workers.inline import InlineTrials
from workers.samples import Told
from workers.stages.measure import measure
from workers.stages.passed_on import Searched
from workers.stages.search import search
from workers.store import Store, TrialKey
from workers.trainable import TrialSpec

Files = dict[str, Dataset]
Events = list[tuple[str, dict[str, Any]]]
N_SAMPLES, N_SEEDS, N_STEPS = 5, 2, 13


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    return {"letters": text_file(tiny.text(), tmp_path_factory.mktemp("data"))}


def wanted(**trials: Any) -> SearchRequest:
    request = tiny.request(
        task={"dataset": "letters", "train_length": 16, "serve": [{"batch": 2, "query_length": 16}]},
        method={"n_steps": N_STEPS, "report_every": 2, "checkpoint_every": 100, "warmup_share": 0.4},
        trials={"n_seeds": N_SEEDS, "n_samples": N_SAMPLES, **trials},
        ranges=[{"pointer": "/method/lr", "low": 1e-5, "high": 3e-2, "log": True}],
    )
    return request.model_copy(update={"latency_table": tiny.table(request.space).id})


class Kept(FolderStore):
    """A store that remembers what it told, and is interrupted at one report."""

    def __init__(self, folder: Path, files: Files, interrupted_at: int | None = None) -> None:
        self.told: Events = []
        self.interrupted_at = interrupted_at
        super().__init__(folder, files, self._tell, tiny.table(wanted().space))

    def _tell(self, kind: str, data: dict[str, Any]) -> None:
        self.told.append((kind, data))
        if len(self.reported()) == self.interrupted_at:
            self.interrupted_at = None
            raise KeyboardInterrupt

    def reported(self) -> list[tuple[str, int]]:
        return [(data["trial"], data["record"]["step"]) for kind, data in self.told if kind == "reports"]

    def states(self, trial: str) -> list[tuple[str, str | None]]:
        found = [data for kind, data in self.told if kind == "trial" and data["trial"] == trial]
        return [(data["state"], data.get("reason")) for data in found]


def run(request: SearchRequest, store: Store, trials: InlineTrials | None = None) -> Searched:
    runner = trials or InlineTrials()
    return search(measure(request, store, runner), store, runner)


def records(store: Store, sample: int) -> list[list[StepRecord]]:
    """Of each seed, but for what goes by the clock, and where a trial was saved."""
    each = [store.records(TrialKey("search", sample, seed)) for seed in range(N_SEEDS)]
    return [[dataclasses.replace(one, tokens_per_s=None, checkpoint=False) for one in found] for found in each]


@pytest.fixture(scope="module")
def pruned(tmp_path_factory: pytest.TempPathFactory, files: Files) -> tuple[Searched, Kept]:
    store = Kept(tmp_path_factory.mktemp("pruned"), files)
    return run(wanted(), store), store


def test_samples_that_are_behind_end_with_all_their_seeds_and_a_reason(pruned: tuple[Searched, Kept]) -> None:
    searched, store = pruned
    told = searched.told
    first_wave = [fmean(rungs.judged_loss(seed[3]) for seed in records(store, sample)) for sample in range(4)]
    behind = {sample: sum(other < loss for other in first_wave) for sample, loss in enumerate(first_wave)}
    for sample in range(4):
        seeds = records(store, sample)
        assert seeds[0][3].step == 6  # the first report from a third of 13 on
        if behind[sample] < 2:
            assert [found[-1].step for found in seeds] == [N_STEPS] * N_SEEDS
            assert told[sample].state == "succeeded"
        else:
            reason = f"pruned at step 6: behind {behind[sample]} of 3 other samples"
            assert told[sample] == Told(told[sample].values, "pruned", told[sample].losses, None, 1, reason)
            assert [found[-1].step for found in seeds] == [6] * N_SEEDS
            assert told[sample].loss == pytest.approx(first_wave[sample])
            for seed in range(N_SEEDS):
                assert store.states(f"search-{sample}-{seed}")[-1] == ("cancelled", reason)
    assert len(told) == N_SAMPLES


def test_the_winner_ended_with_the_least_mean_loss(pruned: tuple[Searched, Kept]) -> None:
    searched, store = pruned
    ended = [number for number, each in enumerate(searched.told) if each.state == "succeeded"]
    last = {number: [found[-1] for found in records(store, number)] for number in ended}
    losses = {number: fmean(each.val_loss_argmax or 0.0 for each in found) for number, found in last.items()}
    assert searched.sample == min(losses, key=lambda number: losses[number])
    assert searched.values == searched.told[searched.sample].values
    assert [searched.last[seed].step for seed in range(N_SEEDS)] == [N_STEPS] * N_SEEDS


class LastFirst(InlineTrials):
    def run(self, specs: Sequence[TrialSpec], store: Store) -> dict[str, str]:
        return super().run(specs[::-1], store)


def test_the_order_in_which_trials_end_changes_nothing(
    pruned: tuple[Searched, Kept], files: Files, tmp_path: Path
) -> None:
    assert run(wanted(), Kept(tmp_path, files), LastFirst()).told == pruned[0].told


@pytest.mark.parametrize("n_reports", [5, 33, 45], ids=lambda n: f"after {n} reports")
def test_a_search_that_is_taken_up_drops_the_same_samples(
    n_reports: int, pruned: tuple[Searched, Kept], files: Files, tmp_path: Path
) -> None:
    first = Kept(tmp_path, files, n_reports)
    with pytest.raises(KeyboardInterrupt):
        run(wanted(), first)
    second = Kept(tmp_path, files)
    assert run(wanted(), second).told == pruned[0].told
    for sample in range(N_SAMPLES):
        assert records(second, sample) == records(pruned[1], sample)
    assert sorted(first.reported() + second.reported()) == sorted(pruned[1].reported())


def test_without_a_pruner_all_samples_end_and_those_that_were_not_dropped_as_they_did(
    pruned: tuple[Searched, Kept], files: Files, tmp_path: Path
) -> None:
    store = Kept(tmp_path, files)
    told = run(wanted(pruner="none"), store).told
    assert [each.state for each in told[:4]] == ["succeeded"] * 4
    for sample in range(4):  # later ones are drawn from what was told
        there = records(pruned[1], sample)
        assert [found[: len(each)] for found, each in zip(records(store, sample), there, strict=True)] == there


class WithoutData(InlineTrials):
    """One seed of one sample does not find its data."""

    def run(self, specs: Sequence[TrialSpec], store: Store) -> dict[str, str]:
        lost = TrialKey("search", 1, 0)
        return super().run(
            [dataclasses.replace(spec, data="/nowhere") if spec.key == lost else spec for spec in specs], store
        )


def test_a_sample_with_a_seed_that_fails_is_given_up_and_the_others_go_on(files: Files, tmp_path: Path) -> None:
    store = Kept(tmp_path, files)
    searched = run(wanted(), store, WithoutData())
    reason = "trial search-1-0 failed: encoded data are damaged: card.json is missing"
    assert searched.told[1].state == "failed"
    assert (searched.told[1].reason or "").startswith(reason)
    state, told = store.states("search-1-1")[-1]
    assert state == "cancelled"
    assert (told or "").startswith(f"another seed of its sample failed: {reason}")
    assert [each.state for each in searched.told].count("succeeded") >= 2
