"""From the rows that a database keeps of a search to what a report is made of; `db.left.Left` is such rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

from nas.report import read, steps
from nas.report.data import Evidence, KeptArchitecture, KeptRule, KeptTable, ReportData, Step, Trial


class SearchRow(Protocol):
    """See `db.searches.Search`."""

    @property
    def id(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def state(self) -> str: ...
    @property
    def stage(self) -> str | None: ...
    @property
    def reason(self) -> str | None: ...
    @property
    def request(self) -> Mapping[str, Any]: ...
    @property
    def result(self) -> Mapping[str, Any] | None: ...
    @property
    def latency_table_id(self) -> str | None: ...
    @property
    def created_at(self) -> datetime: ...


class TrialRow(Protocol):
    """See `db.trials.Trial`."""

    @property
    def id(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def sample(self) -> int: ...
    @property
    def seed(self) -> int: ...
    @property
    def state(self) -> str: ...
    @property
    def reason(self) -> str | None: ...
    @property
    def n_steps(self) -> int: ...
    @property
    def architecture_id(self) -> str | None: ...


class ArchitectureRow(Protocol):
    """See `db.architectures.StoredArchitecture`."""

    @property
    def id(self) -> str: ...
    @property
    def role(self) -> str: ...
    @property
    def string(self) -> str: ...
    @property
    def trial_id(self) -> str | None: ...
    @property
    def body(self) -> Mapping[str, Any]: ...
    @property
    def predicted_ms(self) -> float | None: ...
    @property
    def is_result(self) -> bool: ...


class RuleRow(Protocol):
    """See `db.rules.StoredRule`."""

    @property
    def id(self) -> str: ...
    @property
    def statement(self) -> str: ...
    @property
    def verdict(self) -> str: ...
    @property
    def body(self) -> Mapping[str, Any]: ...


class Rows(Protocol):
    """See `db.left.Left`."""

    @property
    def search(self) -> SearchRow: ...
    def trials(self) -> Sequence[TrialRow]: ...
    def steps(self, trial_id: str) -> Sequence[int]: ...
    def records(self, trial_id: str, steps: Sequence[int], *, matrices: bool) -> Sequence[Mapping[str, Any]]: ...
    def architectures(self) -> Sequence[ArchitectureRow]: ...
    def rules(self) -> Sequence[RuleRow]: ...
    def table(self, table_id: str) -> Mapping[str, Any] | None: ...
    def warnings(self) -> Sequence[str]: ...


def report_data(rows: Rows, result: Mapping[str, Any] | None = None) -> ReportData:
    """Everything behind a report.

    Args:
        rows: of the search.
        result: that is about to be stored; None takes the stored one.
    """
    search = rows.search
    found = search.result if result is None else result
    sample = read.whole(read.at(found, "search", "sample")) or 0
    n_slots = read.whole(read.at(search.request, "space", "n_slots")) or 1
    return ReportData(
        search_id=search.id,
        name=search.name,
        state=search.state if found is None else "succeeded",
        origin="service",
        request=search.request,
        result=found,
        stage=search.stage,
        reason=search.reason,
        created_at=search.created_at.isoformat(timespec="seconds"),
        trials=tuple(_trial(each, rows, sample, n_slots) for each in rows.trials()),
        architectures=tuple(_architecture(each) for each in rows.architectures()),
        rules=tuple(KeptRule(each.id, each.statement, each.verdict, each.body) for each in rows.rules()),
        tables=_tables(rows, found),
        warnings=tuple(dict.fromkeys(rows.warnings())),
    )


def _trial(row: TrialRow, rows: Rows, sample: int, n_slots: int) -> Trial:
    """With what it reported, where the report draws it: retrainings, and searches of the result's sample."""
    told: tuple[Step, ...] = ()
    evidence = None
    if row.kind != "search" or row.sample == sample:
        taken = steps.chosen(rows.steps(row.id))
        large = set(steps.with_matrices(taken, n_slots) if row.kind == "search" else ())
        small = rows.records(row.id, [step for step in taken if step not in large], matrices=False)
        records = [*small, *rows.records(row.id, sorted(large), matrices=True)]
        told = tuple(sorted((steps.step_of(each) for each in records), key=lambda each: each.step))
        newest = max(records, key=lambda each: int(each["step"]), default={})
        evidence = Evidence.of(newest) if newest.get("probabilities") else None
    return Trial(
        id=row.id,
        kind=row.kind,
        sample=row.sample,
        seed=row.seed,
        state=row.state,
        n_steps=row.n_steps,
        reason=row.reason,
        architecture=row.architecture_id,
        steps=told,
        evidence=evidence,
    )


def _architecture(row: ArchitectureRow) -> KeptArchitecture:
    return KeptArchitecture(
        id=row.id,
        role=row.role,
        string=row.string,
        trial=row.trial_id,
        slots=read.texts(row.body.get("slots")),
        undecided=read.wholes(row.body.get("undecided")),
        predicted_ms=row.predicted_ms,
        is_result=row.is_result,
    )


def _tables(rows: Rows, result: Mapping[str, Any] | None) -> tuple[KeptTable, ...]:
    """The one of the budget first, then those of other serve modes."""
    named = [rows.search.latency_table_id]
    named += [read.text(each.get("id")) for each in read.mappings(read.at(result, "search", "latency_tables"))]
    bodies = {each: rows.table(each) for each in named if each is not None}
    return tuple(KeptTable(own, body) for own, body in bodies.items() if body is not None)
