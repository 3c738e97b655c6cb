"""What a search has left, read piece by piece as it is asked for: the rows behind a report.

One of these reads over one connection, so that all pieces are of one moment.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, select

from db import architectures, events, latency_tables, rules, searches, trials
from db.architectures import StoredArchitecture
from db.errors import NotFound
from db.models import reports
from db.rules import StoredRule
from db.trials import Trial

_MOST = 500  # steps named in one statement


class Left:
    """The rows of one search.

    Raises:
        NotFound: no such search.
    """

    def __init__(self, connection: Connection, search_id: str) -> None:
        self._connection = connection
        self.search = searches.get(connection, search_id)

    def trials(self) -> list[Trial]:
        return trials.of_search(self._connection, self.search.id)

    def steps(self, trial_id: str) -> list[int]:
        """That a trial has reported, in order."""
        statement = select(reports.c.step).where(reports.c.trial_id == trial_id).order_by(reports.c.step)
        return list(self._connection.scalars(statement))

    def records(self, trial_id: str, steps: Sequence[int], *, matrices: bool) -> list[Mapping[str, Any]]:
        """Reports by the names of their columns, in order of steps; the large ones only with `matrices`."""
        large = {column.name for column in reports.c if column.type.python_type is dict}
        columns = [column for column in reports.c if matrices or column.name not in large]
        found: list[Mapping[str, Any]] = []
        for first in range(0, len(steps), _MOST):
            some = steps[first : first + _MOST]
            statement = select(*columns).where(reports.c.trial_id == trial_id, reports.c.step.in_(some))
            found += [dict(row) for row in self._connection.execute(statement.order_by(reports.c.step)).mappings()]
        return found

    def architectures(self) -> list[StoredArchitecture]:
        return architectures.of_search(self._connection, self.search.id)

    def rules(self) -> list[StoredRule]:
        return rules.of_search(self._connection, self.search.id)

    def table(self, table_id: str) -> Mapping[str, Any] | None:
        """The JSON of a latency table; None where there is none of this id."""
        try:
            return latency_tables.get(self._connection, table_id).body
        except NotFound:
            return None

    def warnings(self) -> list[str]:
        """The newest that were told, oldest first."""
        return [str(each.data.get("message", "")) for each in events.warnings(self._connection, self.search.id)]
