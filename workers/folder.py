"""A search kept in files: the store of `--local`. Every file is written beside and renamed, or only appended to."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from nas.config.request import SearchRequest
from nas.cost import LatencyTable
from nas.data.corpora import built_in
from nas.errors import InvalidInput, SearchFailed
from nas.ingest.card import Dataset
from nas.report.data import ReportData
from nas.steps import StepRecord
from workers import left_in_folder
from workers.store import Planned, Report, Saved, Stage, TrialKey
from workers.trainable import file_sha256

_KEPT_CHECKPOINTS = 2


class FolderStore:
    """The files of one search: state.json, table.json, warnings.json, result.json, trials/KEY/{...}.

    Args:
        folder: the search's own; a second store on it takes up what the first one left.
        files: registered datasets and tokenizers by name.
        on_event: told of everything that happens, in the event types of the database.
        given_table: what `table_by_id` may name.
    """

    def __init__(
        self,
        folder: Path,
        files: Mapping[str, Dataset],
        on_event: Callable[[str, dict[str, Any]], None],
        given_table: LatencyTable | None = None,
    ) -> None:
        self._folder = folder.resolve()
        self._files = files
        self._on_event = on_event
        self._given_table = given_table
        self._trials: dict[TrialKey, _Trial] = {}
        self._rules: list[dict[str, Any]] = []  # that were told since this start
        self._folder.mkdir(parents=True, exist_ok=True)
        state = self._folder / "state.json"
        self._attempt: int = 1 + (json.loads(state.read_text())["attempt"] if state.exists() else 0)
        write_json(state, {"attempt": self._attempt})

    @property
    def search_id(self) -> str:
        return self._folder.name

    @property
    def folder(self) -> Path:
        return self._folder

    @property
    def attempt(self) -> int:
        return self._attempt

    def stage(self, name: Stage) -> None:
        self._on_event("stage", {"stage": name})

    def warn(self, text: str) -> None:
        path = self._folder / left_in_folder.WARNINGS
        told: list[str] = json.loads(path.read_text()) if path.exists() else []
        if text not in told:  # else an earlier start has told it
            write_json(path, [*told, text])
        self._on_event("warning", {"message": text})

    @property
    def cache(self) -> Path:
        return self._folder / "encoded"

    def dataset(self, name: str, fingerprint: str | None) -> Dataset:
        if name in self._files:
            return self._files[name]
        return built_in(name, self.cache, known=self._files)

    def table(self, key: str) -> LatencyTable | None:
        path = self._folder / "table.json"
        # Whatever the key: the table is an input of this search, and a restart on another machine keeps it.
        return LatencyTable.model_validate_json(path.read_text()) if path.exists() else None

    def table_by_id(self, table_id: str) -> LatencyTable:
        if self._given_table is None or self._given_table.id != table_id:
            raise InvalidInput(f"unknown latency table {table_id!r}; without a server, give the table itself")
        return self._given_table

    def table_beside(self, key: str) -> LatencyTable | None:
        path = self._folder / "tables" / f"{key}.json"
        return LatencyTable.model_validate_json(path.read_text()) if path.exists() else None

    def keep_table(self, table: LatencyTable, key: str) -> None:
        path = self._folder / "tables" / f"{key}.json"
        path.parent.mkdir(exist_ok=True)
        write_json(path, table.model_dump(mode="json"))

    def inputs(self, request: SearchRequest, table: LatencyTable, key: str) -> None:
        write_json(self._folder / "table.json", table.model_dump(mode="json"))
        self._on_event("latency_table", {"id": table.id})

    def estimate(self, found: Mapping[str, Any]) -> None:
        self._on_event("estimate", dict(found))

    def power(self, found: Mapping[str, Any]) -> None:
        self._on_event("power", dict(found))

    def plan(self, trials: Sequence[Planned]) -> None:
        for trial in trials:
            state = "succeeded" if any(saved.last for saved in self._trial(trial.key).saved) else "queued"
            details = {**asdict(trial.key), "n_steps": trial.n_steps, "values": dict(trial.values)}
            self._on_event("trial", {"trial": str(trial.key), "state": state, **details})

    def trial_id(self, key: TrialKey) -> str:
        return str(key)

    def begin(self, key: TrialKey) -> None:
        self._trial(key)
        self._on_event("trial", {"trial": str(key), "state": "running"})

    def report(self, key: TrialKey, report: Report) -> None:
        trial = self._trial(key)
        record = report.record
        if record.step not in trial.records:
            trial.append(record, report.device)
            self._on_event("reports", {"trial": str(key), "record": asdict(record)})
            for line in (record.warning or "").splitlines():
                self._on_event("warning", {"message": line, "trial": str(key), "step": record.step})
        else:
            before, device = trial.records[record.step]
            name = first_difference(before, record)
            if name is not None:
                text = f"trial {key}: {name} of step {record.step} is not what it was before the restart"
                if name == "phase" and before.phase is None:
                    raise SearchFailed(
                        f"trial {key}: step {record.step} was reported by an older version of Blockwright, whose steps "
                        "this one cannot repeat; submit the search again"
                    )
                if device == report.device:
                    raise SearchFailed(f"{text}, on an equal device")
                self.warn(f"{text}; the device is another one")
        if report.saved is not None:
            trial.acknowledge(report.saved)
            self._on_event("checkpoint", {"trial": str(key), "step": report.saved.step})
        if record.last:
            self._on_event("trial", {"trial": str(key), "state": "succeeded"})

    def fail(self, key: TrialKey, reason: str) -> None:
        self._on_event("trial", {"trial": str(key), "state": "failed", "reason": reason})

    def prune(self, key: TrialKey, reason: str) -> None:
        self._on_event("trial", {"trial": str(key), "state": "cancelled", "reason": reason})

    def newest(self, key: TrialKey) -> Saved | None:
        return first_whole(reversed(self._trial(key).saved))

    def tidy(self, key: TrialKey) -> None:
        remove_others(self._folder / "trials" / str(key), self._trial(key).saved)

    def records(self, key: TrialKey) -> list[StepRecord]:
        return [record for _, (record, _) in sorted(self._trial(key).records.items())]

    def architecture(self, entry: Mapping[str, Any], body: Mapping[str, Any], trial: TrialKey | None) -> str:
        self._on_event("architecture", {**entry, "trial": str(trial) if trial else None})
        return f"{entry['role']}-{trial}" if trial else str(entry["role"])

    def chosen(self, architecture_id: str) -> None:
        self._on_event("architecture", {"id": architecture_id, "result": True})

    def rule(self, statement: Mapping[str, Any]) -> str | None:
        if statement not in self._rules:
            self._rules.append(dict(statement))
            self._on_event("rule", dict(statement))
        return None

    def artifact(self, kind: str, path: Path, sha256: str, media_type: str) -> None:
        self._on_event("artifact", {"kind": kind, "name": path.name, "sha256": sha256})

    def report_data(self, result: Mapping[str, Any]) -> ReportData:
        return left_in_folder.report_data(self._folder, result)

    def result(self, result: Mapping[str, Any], path: Path, sha256: str) -> None:
        self.artifact("result", path, sha256, "application/json")
        self._on_event("result", dict(result))

    def finished(self) -> dict[str, Any] | None:
        path = self._folder / "result.json"
        if not path.exists():
            return None
        result: dict[str, Any] = json.loads(path.read_text())
        self._on_event("result", result)
        return result

    def _trial(self, key: TrialKey) -> _Trial:
        if key not in self._trials:
            self._trials[key] = _Trial(self._folder / "trials" / str(key))
        return self._trials[key]


class _Trial:
    """reports.jsonl and checkpoints.json of one trial."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._reports_file = folder / "reports.jsonl"
        self._checkpoints_file = folder / "checkpoints.json"
        self.records: dict[int, tuple[StepRecord, str]] = {}  # by step, with the device
        self.saved: list[Saved] = []
        if self._reports_file.exists():
            whole = self._reports_file.read_bytes()
            kept = whole[: whole.rfind(b"\n") + 1]  # a line that was cut off runs again from its checkpoint
            os.truncate(self._reports_file, len(kept))
            for line in kept.splitlines():
                data = json.loads(line)
                self.records[data["record"]["step"]] = StepRecord(**data["record"]), data["device"]
        if self._checkpoints_file.exists():
            saved = json.loads(self._checkpoints_file.read_text())
            self.saved = [Saved(**{**each, "path": folder / each["path"]}) for each in saved]
        self._folder = folder

    def append(self, record: StepRecord, device: str) -> None:
        with self._reports_file.open("a") as file:
            file.write(json.dumps({"device": device, "record": asdict(record)}) + "\n")
            file.flush()
            if record.checkpoint:  # the records must not be younger than the checkpoint that stands for them
                os.fsync(file.fileno())
        self.records[record.step] = record, device

    def acknowledge(self, saved: Saved) -> None:
        self.saved = [*self.saved, saved]
        kept = self.saved[-_KEPT_CHECKPOINTS:]
        entries = [{**asdict(each), "path": str(each.path.relative_to(self._folder))} for each in kept]
        write_json(self._checkpoints_file, entries)
        remove_files(self.saved, kept)
        self.saved = kept


# max_minutes ends a trial at another step in a rerun, and the last record says more in words
_BY_THE_CLOCK = ("tokens_per_s", "last", "warning", "not_learnt", "cut_short", "checkpoint")


def first_difference(before: StepRecord, again: StepRecord) -> str | None:
    """The first field that a step must reproduce and did not."""
    for name in StepRecord.__dataclass_fields__:
        if name not in _BY_THE_CLOCK and getattr(before, name) != getattr(again, name):
            return name
    return None


def first_whole(newest_first: Iterable[Saved]) -> Saved | None:
    """The first checkpoint whose file is there and is what was acknowledged."""
    for saved in newest_first:
        if saved.path.exists() and file_sha256(saved.path) == saved.sha256:
            return saved
    return None


def remove_files(saved: Sequence[Saved], kept: Sequence[Saved]) -> None:
    """Remove the files of checkpoints that are not kept."""
    paths = {each.path for each in kept}
    for each in saved:
        if each.path not in paths:
            each.path.unlink(missing_ok=True)


def remove_others(folder: Path, kept: Sequence[Saved]) -> None:
    """Remove every file of a trial's attempts but these: what was being written, or not acknowledged, at a crash."""
    paths = {each.path for each in kept}
    for attempt in folder.glob("attempt-*"):
        for path in attempt.iterdir():
            if path not in paths:
                path.unlink(missing_ok=True)
        with suppress(OSError):  # not empty, maybe of what a trial of a runner that was thought dead writes just now
            attempt.rmdir()


def write_json(path: Path, value: Any) -> None:
    """Write atomically: a reader sees the old text or the new one."""
    part = path.with_name(f".{path.name}.{os.getpid()}")
    with part.open("w") as file:
        json.dump(value, file, indent=1, allow_nan=False)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)
