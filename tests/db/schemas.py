"""What a database is made of, as each engine itself tells it: columns, constraints, indices, views."""

from __future__ import annotations

from sqlalchemy import text

from db.engine import make_engine, reading

_SQLITE = "SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL"
_POSTGRESQL = """
SELECT relname AS name, format('%s %s %s', attname, format_type(atttypid, atttypmod), attnotnull) AS sql
FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
WHERE attnum > 0 AND NOT attisdropped AND relkind IN ('r', 'v') AND relnamespace = 'public'::regnamespace
UNION ALL
SELECT relname, format('%s %s', conname, pg_get_constraintdef(pg_constraint.oid))
FROM pg_constraint JOIN pg_class ON pg_class.oid = conrelid WHERE connamespace = 'public'::regnamespace
UNION ALL
SELECT tablename, indexdef FROM pg_indexes WHERE schemaname = 'public'
UNION ALL
SELECT viewname, definition FROM pg_views WHERE schemaname = 'public'
"""


def schema(url: str) -> dict[str, set[str]]:
    """By table, index or view: its words. Constraints and columns may stand in another order.

    A table that SQLite has copied has its name in quotes, which says nothing.
    """
    engine = make_engine(url)
    with reading(engine) as connection:
        rows = connection.execute(text(_SQLITE if engine.name == "sqlite" else _POSTGRESQL)).all()
    engine.dispose()
    found: dict[str, set[str]] = {}
    for name, sql in rows:
        plain = sql.replace(f'CREATE TABLE "{name}"', f"CREATE TABLE {name}")
        found.setdefault(name, set()).update(line.strip(" ,") for line in plain.splitlines())
    return found
