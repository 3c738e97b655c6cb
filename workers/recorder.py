"""The store of a search that a server runs: everything goes to the database, fenced by the lease.

Reports are queued and written in batches by a thread, because they arrive in Tune's control loop, where a slow write
would stall scheduling. A checkpoint is acknowledged in the transaction that writes all reports before it.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from sqlalchemy import Connection, Engine
from sqlalchemy.exc import OperationalError

from db import architectures, artifacts, checkpoints, datasets, events, latency_tables, reports, rules, searches
from db import trials as trial_rows
from db.engine import reading, transaction
from db.errors import LeaseLost, NotFound
from db.lease import Lease
from db.left import Left
from nas.catalog import DATASETS
from nas.config.base import one_line
from nas.config.request import SearchRequest
from nas.cost import LatencyTable
from nas.data.corpora import built_in
from nas.errors import InvalidInput, SearchFailed
from nas.ingest.card import Card, Dataset
from nas.report.data import ReportData
from nas.report.rows import report_data
from nas.steps import StepRecord
from workers.folder import first_whole, remove_files, remove_others
from workers.store import Planned, Report, Saved, Stage, StopRequested, TrialKey

_BATCH = 50  # reports of one transaction, which must stay under 200 ms
_GATHER_S = 0.1  # how long a first report waits for company
_RETRY_S = 0.5
_KEPT_CHECKPOINTS = 2

_Entry = tuple[TrialKey, Report]
_STORED = tuple(field.name for field in fields(StepRecord) if field.name not in ("last", "checkpoint"))


class Recorder:
    """Writes one search as the runner that holds its lease.

    Args:
        engine: of this process; the heartbeat has one of its own.
        lease: fences every write.
        data_dir: what paths in the database are relative to.
        attempt: number of this claim.
        stop: set when the search was asked to stop.
        on_lease_lost: ends this process; called from the writing thread.
    """

    def __init__(
        self,
        engine: Engine,
        lease: Lease,
        data_dir: Path,
        attempt: int,
        stop: threading.Event,
        on_lease_lost: Callable[[], None],
    ) -> None:
        self._engine = engine
        self._lease = lease
        self._data_dir = data_dir
        self._attempt = attempt
        self._stop = stop
        self._on_lease_lost = on_lease_lost
        self._ids: dict[TrialKey, str] = {}
        self._queue: queue.Queue[_Entry] = queue.Queue()
        self._failure: Exception | None = None  # of the thread, raised in the main one
        self._closing = threading.Event()
        self._folder = data_dir / "searches" / lease.search_id
        self._folder.mkdir(parents=True, exist_ok=True)
        self._thread = threading.Thread(target=self._write_batches, name="recorder", daemon=True)
        self._thread.start()

    # -- the store ----------------------------------------------------------------------------------------------------

    @property
    def search_id(self) -> str:
        return self._lease.search_id

    @property
    def folder(self) -> Path:
        return self._folder

    @property
    def attempt(self) -> int:
        return self._attempt

    def stage(self, name: Stage) -> None:
        if self._stop.is_set():
            raise StopRequested
        with transaction(self._engine) as connection:
            searches.set_stage(connection, self._lease, name)

    def warn(self, text: str) -> None:
        told = {"message": text}
        with transaction(self._engine) as connection:
            known = events.warnings(connection, self._lease.search_id)
            if told not in [each.data for each in known]:  # else an earlier start has told it
                events.append(connection, self._lease, [("warning", told)])

    @property
    def cache(self) -> Path:
        return self._data_dir / "encoded"

    def dataset(self, name: str, fingerprint: str | None) -> Dataset:
        if name in DATASETS:
            found = built_in(name, self.cache)
            with transaction(self._engine) as connection:
                datasets.register(
                    connection,
                    name=name,
                    fingerprint=found.card.fingerprint,
                    n_bytes=found.card.n_bytes,
                    card=found.card.to_json(),
                )
            return found
        try:
            with reading(self._engine) as connection:
                row = datasets.get(connection, name, fingerprint)
        except NotFound as error:
            raise InvalidInput(str(error)) from None
        assert row.path is not None
        card = Card.of_text(row.fingerprint, row.n_bytes) if row.card is None else Card.from_json(row.card)
        return Dataset(self._data_dir / row.path, card)

    def table(self, key: str) -> LatencyTable | None:
        with reading(self._engine) as connection:
            row = latency_tables.newest(connection, key)
        return LatencyTable.model_validate(row.body) if row else None

    def table_by_id(self, table_id: str) -> LatencyTable:
        try:
            with reading(self._engine) as connection:
                return LatencyTable.model_validate(latency_tables.get(connection, table_id).body)
        except NotFound as error:
            raise InvalidInput(str(error)) from None
        except ValidationError as error:  # brought to an older version, which looked less closely
            raise InvalidInput(
                f"latency table {table_id} cannot be used: {one_line(error)}; measure it again"
            ) from None

    def table_beside(self, key: str) -> LatencyTable | None:
        return self.table(key)

    def keep_table(self, table: LatencyTable, key: str) -> None:
        with transaction(self._engine) as connection:
            latency_tables.put(connection, self._lease, table_id=table.id, key=key, body=table.model_dump(mode="json"))

    def inputs(self, request: SearchRequest, table: LatencyTable, key: str) -> None:
        written_out, slot_ms = request.model_dump(mode="json"), table.slot_ms(request.space)
        with transaction(self._engine) as connection:
            before = searches.get(connection, self._lease.search_id)
            if (before.latency_table_id, before.request, before.slot_ms) == (table.id, written_out, tuple(slot_ms)):
                return  # kept by an earlier attempt, and told then
            latency_tables.put(connection, self._lease, table_id=table.id, key=key, body=table.model_dump(mode="json"))
            searches.set_inputs(
                connection,
                self._lease,
                request=written_out,
                latency_table_id=table.id,
                slot_ms=slot_ms,
            )

    def estimate(self, found: Mapping[str, Any]) -> None:
        with transaction(self._engine) as connection:
            if events.first(connection, self._lease.search_id, "estimate") is None:  # else an earlier attempt told it
                events.append(connection, self._lease, [("estimate", found)])

    def power(self, found: Mapping[str, Any]) -> None:
        with transaction(self._engine) as connection:
            told = events.newest(connection, self._lease.search_id, "power")
            if all(event.data != found for event in told):  # else an earlier attempt told it
                events.append(connection, self._lease, [("power", found)])

    def plan(self, trials: Sequence[Planned]) -> None:
        wanted = [
            trial_rows.NewTrial(
                each.key.kind, each.key.sample, each.key.seed, each.n_steps, each.values, each.architecture_id
            )
            for each in trials
        ]
        with transaction(self._engine) as connection:
            rows = trial_rows.ensure(connection, self._lease, wanted)
        self._ids.update({each.key: row.id for each, row in zip(trials, rows, strict=True)})

    def trial_id(self, key: TrialKey) -> str:
        return self._ids[key]

    def begin(self, key: TrialKey) -> None:
        with transaction(self._engine) as connection:
            trial_rows.start(connection, self._lease, self._ids[key], attempt=self._attempt)

    def report(self, key: TrialKey, report: Report) -> None:
        self._raise_failure()
        self._queue.put((key, report))

    def fail(self, key: TrialKey, reason: str) -> None:
        self.flush()
        with transaction(self._engine) as connection:
            trial_rows.finish(connection, self._lease, self._ids[key], "failed", reason=reason)

    def prune(self, key: TrialKey, reason: str) -> None:
        self.flush()
        with transaction(self._engine) as connection:
            before = trial_rows.get(connection, self._ids[key])
            if (before.state, before.reason) != ("cancelled", reason):  # else an earlier attempt has told it
                trial_rows.finish(connection, self._lease, self._ids[key], "cancelled", reason=reason)

    def newest(self, key: TrialKey) -> Saved | None:
        self.flush()
        with reading(self._engine) as connection:
            rows = checkpoints.of_trial(connection, self._ids[key])
            ended = trial_rows.get(connection, self._ids[key]).state == "succeeded"
        newest_step = rows[0].step if rows else 0
        return first_whole(
            Saved(row.step, self._data_dir / row.path, row.sha256, ended and row.step == newest_step) for row in rows
        )

    def tidy(self, key: TrialKey) -> None:
        self.flush()
        with reading(self._engine) as connection:
            rows = checkpoints.of_trial(connection, self._ids[key])
            ended = trial_rows.get(connection, self._ids[key]).state == "succeeded"
        saved = [Saved(row.step, self._data_dir / row.path, row.sha256, last=False) for row in rows]
        # Before the end an older one may be the only whole one.
        remove_others(self._folder / "trials" / str(key), saved[:_KEPT_CHECKPOINTS] if ended else saved)

    def records(self, key: TrialKey) -> list[StepRecord]:
        self.flush()
        with reading(self._engine) as connection:
            rows = reports.between(connection, self._ids[key], 0, 2**31 - 1)
        return [_record(row, matrices) for row, matrices in rows]

    def architecture(self, entry: Mapping[str, Any], body: Mapping[str, Any], trial: TrialKey | None) -> str:
        from nas.architecture import Architecture

        with transaction(self._engine) as connection:
            row = architectures.put(
                connection,
                self._lease,
                role=entry["role"],
                string=entry["string"],
                hash=Architecture.from_json(dict(body)).hash,
                body=body,
                trial_id=self._ids[trial] if trial else None,
                predicted_ms=entry["predicted_ms"],
            )
        return row.id

    def chosen(self, architecture_id: str) -> None:
        with transaction(self._engine) as connection:
            architectures.set_result(connection, self._lease, architecture_id)

    def rule(self, statement: Mapping[str, Any]) -> str | None:
        with transaction(self._engine) as connection:
            row = rules.put(
                connection,
                self._lease,
                statement=statement["statement"],
                verdict=statement["verdict"],
                body=statement,
            )
        return row.id

    def artifact(self, kind: str, path: Path, sha256: str, media_type: str) -> None:
        with transaction(self._engine) as connection:
            self._put_artifact(connection, kind, path, sha256, media_type)

    def _put_artifact(self, connection: Connection, kind: str, path: Path, sha256: str, media_type: str) -> None:
        artifacts.put(
            connection,
            self._lease,
            kind=kind,
            name=path.name,
            path=path.relative_to(self._data_dir).as_posix(),
            sha256=sha256,
            n_bytes=path.stat().st_size,
            media_type=media_type,
        )

    def report_data(self, result: Mapping[str, Any]) -> ReportData:
        self.flush()
        with reading(self._engine) as connection:
            return report_data(Left(connection, self._lease.search_id), result)

    def result(self, result: Mapping[str, Any], path: Path, sha256: str) -> None:
        with transaction(self._engine) as connection:
            self._put_artifact(connection, "result", path, sha256, "application/json")
            searches.set_result(connection, self._lease, result)

    def finished(self) -> dict[str, Any] | None:
        with reading(self._engine) as connection:
            return searches.get(connection, self._lease.search_id).result

    # -- the writing thread -------------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Return when everything reported so far is written."""
        self._queue.join()
        self._raise_failure()

    def close(self) -> None:
        """Write what is queued and end the thread; the connection pool stays the caller's."""
        self._closing.set()
        self._thread.join()

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _write_batches(self) -> None:
        while not (self._closing.is_set() and self._queue.empty()):
            try:
                batch = [self._queue.get(timeout=_GATHER_S)]
            except queue.Empty:
                continue
            time.sleep(_GATHER_S)
            while len(batch) < _BATCH and not self._queue.empty():
                batch.append(self._queue.get())
            try:
                if self._failure is None:
                    self._write(batch)
            except Exception as error:  # noqa: BLE001 - raised in the main thread, which would wait for this one forever
                self._failure = error  # later reports are dropped: the search ends with this reason
            finally:
                for _ in batch:
                    self._queue.task_done()

    def _write(self, batch: Sequence[_Entry]) -> None:
        """Write in order; each checkpoint with all reports before it. A database out of reach is waited for: the
        heartbeat ends this process when the lease is over."""
        waiting: list[_Entry] = []
        for entry in batch:
            waiting.append(entry)
            if entry[1].saved is not None:
                self._write_when_reachable(waiting)
                waiting = []
        if waiting:
            self._write_when_reachable(waiting)

    def _write_when_reachable(self, entries: Sequence[_Entry]) -> None:
        while True:
            try:
                self._write_once(entries)
                break
            except OperationalError:
                time.sleep(_RETRY_S)
            except LeaseLost:
                self._on_lease_lost()
                raise SearchFailed("the search belongs to another runner now") from None
        key, report = entries[-1]
        if report.saved is not None:
            self._remove_older(key, report.saved.step)

    def _write_once(self, entries: Sequence[_Entry]) -> None:
        new = [reports.NewReport(self._ids[key], report.record, report.device) for key, report in entries]
        key, last = entries[-1]
        saved = last.saved
        with transaction(self._engine) as connection:
            if saved is None:
                inserted = reports.insert(connection, self._lease, new)
            else:
                inserted = checkpoints.acknowledge(
                    connection,
                    self._lease,
                    new,
                    trial_id=self._ids[key],
                    step=saved.step,
                    path=saved.path.relative_to(self._data_dir).as_posix(),
                    sha256=saved.sha256,
                    attempt=self._attempt,
                )
                if saved.last:
                    trial_rows.finish(connection, self._lease, self._ids[key], "succeeded")
            for conflict in inserted.conflicts:
                if conflict.same_device:  # inside: a checkpoint of other bits is not acknowledged
                    raise SearchFailed(str(conflict))
                events.append(connection, self._lease, [("warning", {"message": str(conflict)})])

    def _remove_older(self, key: TrialKey, step: int) -> None:
        """Keep the checkpoint of `step` and those just before it. Later ones were damaged, or this would not run."""
        try:
            with reading(self._engine) as connection:
                rows = checkpoints.of_trial(connection, self._ids[key])
        except OperationalError:
            return  # the next checkpoint removes them
        saved = [Saved(row.step, self._data_dir / row.path, row.sha256, last=False) for row in rows if row.step <= step]
        remove_files(saved[_KEPT_CHECKPOINTS:], saved[:_KEPT_CHECKPOINTS])


def _record(row: reports.Report, matrices: reports.Matrices) -> StepRecord:
    """A record as it was sent; cells that were not finite are None, which derive refuses."""
    columns = {**vars(row), **vars(matrices)}
    return StepRecord(**{name: columns[name] for name in _STORED})
