"""What a running search needs kept, and the words it is kept in.

Two stores keep it: `recorder.Recorder` in the database, `folder.FolderStore` in files for a search without server.
Both give the same promise: what `newest` names can be resumed from, and every record up to that step is kept.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

from nas.config.request import SearchRequest
from nas.cost import LatencyTable
from nas.ingest.card import Dataset
from nas.report.data import ReportData
from nas.steps import StepRecord

Stage = Literal["measuring", "searching", "deriving", "retraining", "exporting"]


@dataclass(frozen=True, order=True)
class TrialKey:
    """A trial within its search: ids of our own, the same after any restart.

    Args:
        kind: a supernet search, or the retraining of one architecture.
        sample: number of the hyper-parameter sample; of the architecture for a retraining.
        seed: the trial's own.
    """

    kind: Literal["search", "retrain"]
    sample: int
    seed: int

    def __str__(self) -> str:
        return f"{self.kind}-{self.sample}-{self.seed}"


@dataclass(frozen=True)
class Planned:
    """A trial that is to run.

    Args:
        key: which.
        n_steps: weight updates it will do.
        values: of the hyper-parameters that were drawn, by JSON pointer.
        architecture_id: what a retraining trains, as `Store.architecture` named it.
    """

    key: TrialKey
    n_steps: int
    values: Mapping[str, float]
    architecture_id: str | None = None


@dataclass(frozen=True)
class Saved:
    """A checkpoint file: the whole state of a trial after `step` weight updates; `last` once it has ended."""

    step: int
    path: Path
    sha256: str
    last: bool


@dataclass(frozen=True)
class Report:
    """What a trial sends at a step: the record and, where it saved one, the checkpoint.

    Args:
        record: the state of the trial.
        saved: the checkpoint of this very step.
        device: fingerprint of what it runs on; on an equal one a step that runs again must give the same numbers.
    """

    record: StepRecord
    saved: Saved | None
    device: str

    def to_json(self) -> str:
        saved = asdict(self.saved) | {"path": str(self.saved.path)} if self.saved else None
        return json.dumps({"record": asdict(self.record), "saved": saved, "device": self.device})

    @classmethod
    def from_json(cls, text: str) -> Report:
        data = json.loads(text)
        saved = Saved(**{**data["saved"], "path": Path(data["saved"]["path"])}) if data["saved"] else None
        return cls(StepRecord(**data["record"]), saved, data["device"])


class StopRequested(Exception):
    """The search was asked to stop: by a cancel, or because the service ends."""


class Store(Protocol):
    """Where one search is kept. All calls come from one thread."""

    @property
    def search_id(self) -> str:
        """The search's own id."""

    @property
    def folder(self) -> Path:
        """The search's own folder, absolute."""

    @property
    def attempt(self) -> int:
        """How often the search has been started, from 1; names the trials' folders of this time."""

    def stage(self, name: Stage) -> None:
        """The search enters a stage.

        Raises:
            StopRequested: it was asked to stop.
        """

    def warn(self, text: str) -> None:
        """Something a person should know; kept once."""

    @property
    def cache(self) -> Path:
        """Folder of encoded data, shared by who may share it."""

    def dataset(self, name: str, fingerprint: str | None) -> Dataset:
        """A dataset, or an uploaded tokenizer, by name.

        Raises:
            InvalidInput: no such one.
            DataError: it cannot be read.
        """

    def table(self, key: str) -> LatencyTable | None:
        """The newest table measured under this key, if any."""

    def table_by_id(self, table_id: str) -> LatencyTable:
        """Raises: InvalidInput: no such table."""

    def table_beside(self, key: str) -> LatencyTable | None:
        """The newest table of another serve mode than the first measured under this key, if any."""

    def keep_table(self, table: LatencyTable, key: str) -> None:
        """Keep a table of another serve mode under its key."""

    def inputs(self, request: SearchRequest, table: LatencyTable, key: str) -> None:
        """Keep the request, which now names the data's fingerprint and the table, and the table under its key."""

    def estimate(self, found: Mapping[str, Any]) -> None:
        """Tell what a search trial is estimated to take, once per search: a restart says it again."""

    def power(self, found: Mapping[str, Any]) -> None:
        """Tell what a comparison can show before it runs, once: a restart says it again."""

    def plan(self, trials: Sequence[Planned]) -> None:
        """These trials will run; those known from before are left as they are."""

    def trial_id(self, key: TrialKey) -> str:
        """What a planned trial is named elsewhere: its id in the database, or its key where there is none."""

    def begin(self, key: TrialKey) -> None:
        """A planned trial starts, or starts again."""

    def report(self, key: TrialKey, report: Report) -> None:
        """Keep one report. A checkpoint counts once `newest` names it, which may be a moment later.

        Raises:
            SearchFailed: a step that ran again on an equal device gave other numbers.
        """

    def fail(self, key: TrialKey, reason: str) -> None:
        """The trial ended without its last step."""

    def prune(self, key: TrialKey, reason: str) -> None:
        """The trial ends where it is: its sample is given up. Told once, however often it is said."""

    def newest(self, key: TrialKey) -> Saved | None:
        """The newest acknowledged checkpoint whose file is whole; all that was reported so far is kept by then."""

    def tidy(self, key: TrialKey) -> None:
        """Remove what the trial has written and nothing acknowledged names; only while it does not run."""

    def records(self, key: TrialKey) -> list[StepRecord]:
        """All kept records in the order of their steps."""

    def architecture(self, entry: Mapping[str, Any], body: Mapping[str, Any], trial: TrialKey | None) -> str:
        """Keep one architecture of the result, once; returns its id.

        Args:
            entry: as in result.json: role, string, predicted_ms, ...
            body: `Architecture.to_json()`.
            trial: what it was derived from; None for a parent.
        """

    def chosen(self, architecture_id: str) -> None:
        """This architecture is the search's result."""

    def rule(self, statement: Mapping[str, Any]) -> str | None:
        """Keep a rule with its evidence, once; returns the id of its row, None where there are no rows."""

    def artifact(self, kind: str, path: Path, sha256: str, media_type: str) -> None:
        """Keep a file of the search's folder for download, once."""

    def report_data(self, result: Mapping[str, Any]) -> ReportData:
        """All that is kept of the search, for a report of the result that is about to be kept."""

    def result(self, result: Mapping[str, Any], path: Path, sha256: str) -> None:
        """Keep the final result, and with it its file for download."""

    def finished(self) -> dict[str, Any] | None:
        """The result, where it is kept already: the search was cut off just before its end."""
