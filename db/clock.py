"""Database time: leases and time stamps use the database's clock, so that hosts need not agree.

Time stamps are stored as seconds since 1970 (UTC) in a double column: the same arithmetic on SQLite, which has no
time type, and on PostgreSQL.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, overload

from sqlalchemy import Double
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.expression import FunctionElement


class now(FunctionElement[float]):
    """The database's clock when the statement runs, seconds since 1970; not the start of the transaction."""

    type = Double()
    inherit_cache = True


@compiles(now, "sqlite")
def _now_sqlite(element: now, compiler: Any, **options: Any) -> str:
    # 2440587.5 is the Julian day of 1970-01-01; unixepoch('subsec') would need SQLite 3.42, Debian 12 has 3.40.
    # Rounded to the milliseconds that SQLite knows, so that a time survives the way to a datetime and back.
    return "ROUND((julianday('now') - 2440587.5) * 86400.0, 3)"


@compiles(now, "postgresql")
def _now_postgresql(element: now, compiler: Any, **options: Any) -> str:
    return "CAST(EXTRACT(EPOCH FROM clock_timestamp()) AS DOUBLE PRECISION)"


@overload
def moment(seconds: float) -> datetime: ...
@overload
def moment(seconds: None) -> None: ...
@overload
def moment(seconds: float | None) -> datetime | None: ...
def moment(seconds: float | None) -> datetime | None:
    """A stored time stamp as an aware datetime in UTC."""
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
