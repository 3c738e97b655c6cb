"""Placement rules that a search supports, or does not: a statement, a verdict and the evidence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, insert, select, update

from db import clock, events
from db.errors import NotFound
from db.ids import new_id
from db.lease import Lease, fence
from db.models import rules


@dataclass(frozen=True)
class StoredRule:
    """`statement` is one line for people; `body` the evidence as JSON."""

    id: str
    search_id: str
    statement: str
    verdict: str
    body: dict[str, Any]
    created_at: datetime


def put(connection: Connection, lease: Lease, *, statement: str, verdict: str, body: Mapping[str, Any]) -> StoredRule:
    """The rule of this statement: made, or brought up to date. Event `rule` only if anything changed.

    Raises:
        LeaseLost
    """
    fence(connection, lease)
    one = (rules.c.search_id == lease.search_id, rules.c.statement == statement)
    known = connection.execute(select(rules).where(*one)).one_or_none()
    if known is None:
        connection.execute(
            insert(rules).values(
                id=new_id(),
                search_id=lease.search_id,
                statement=statement,
                verdict=verdict,
                body=dict(body),
                created_at=clock.now(),
            )
        )
    elif (known.verdict, known.body) == (verdict, dict(body)):
        return _rule(known)
    else:
        connection.execute(update(rules).where(*one).values(verdict=verdict, body=dict(body)))
    rule = _rule(connection.execute(select(rules).where(*one)).one())
    data = {"rule": rule.id, "statement": statement, "verdict": verdict}
    events.append(connection, lease, [("rule", data)])
    return rule


def get(connection: Connection, rule_id: str) -> StoredRule:
    """Raises: NotFound: no such rule."""
    row = connection.execute(select(rules).where(rules.c.id == rule_id)).one_or_none()
    if row is None:
        raise NotFound(f"no rule {rule_id!r}")
    return _rule(row)


def _rule(row: Row[Any]) -> StoredRule:
    return StoredRule(row.id, row.search_id, row.statement, row.verdict, row.body, clock.moment(row.created_at))


def of_search(connection: Connection, search_id: str) -> list[StoredRule]:
    """In the order they were made; [] for an unknown search."""
    statement = select(rules).where(rules.c.search_id == search_id).order_by(rules.c.id)
    return [_rule(row) for row in connection.execute(statement)]
