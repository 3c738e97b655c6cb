"""Data sets by name and fingerprint; uploaded tokenizers are kept in the same way.

An uploaded one is one row: its name means this content until it is removed. A built-in corpus, which has no path, may
have several, one for each Python that has read it; its newest is what a new request gets.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, delete, func, or_, select, text, union, update

from db import clock
from db.engine import insert_into
from db.errors import DatasetInUse, NameTaken, NotFound
from db.files import relative
from db.models import datasets, searches

IN_USE = ("queued", "running")  # states of searches that still need the text


@dataclass(frozen=True)
class Dataset:
    """`path` is relative to the data folder; None for a built-in corpus. `fingerprint` is the sha256 of the content.

    `card` is what reading it told, the JSON of a `nas.ingest.card.Card`; None where nobody has read it since cards are
    kept.
    """

    name: str
    fingerprint: str
    n_bytes: int
    path: str | None
    created_at: datetime
    card: dict[str, Any] | None


@dataclass(frozen=True)
class Added:
    """`is_new` is False when the name stood for the same text before."""

    dataset: Dataset
    is_new: bool


def register(
    connection: Connection,
    *,
    name: str,
    fingerprint: str,
    n_bytes: int,
    path: str | None = None,
    card: Mapping[str, Any] | None = None,
) -> Dataset:
    """Make a data set known; the same (name, fingerprint) again adds at most its card. Harmless, so not fenced.

    Raises:
        ValueError: path is absolute or leaves the data folder.
    """
    connection.execute(
        insert_into(connection, datasets)
        .values(
            name=name,
            fingerprint=fingerprint,
            n_bytes=n_bytes,
            path=None if path is None else relative(path),
            created_at=clock.now(),
            card=None if card is None else dict(card),
        )
        .on_conflict_do_nothing(index_elements=["name", "fingerprint"])
    )
    if card is not None:
        known = (datasets.c.name == name, datasets.c.fingerprint == fingerprint, datasets.c.card.is_(None))
        connection.execute(update(datasets).where(*known).values(card=dict(card)))
    return get(connection, name, fingerprint)


def add(
    connection: Connection,
    *,
    name: str,
    fingerprint: str,
    n_bytes: int,
    path: str,
    card: Mapping[str, Any] | None = None,
    put_in_place: Callable[[], None] = lambda: None,
) -> Added:
    """Make an upload known under a name that nothing else has.

    Args:
        card: what reading it told; added to a row that has none.
        put_in_place: brings the file to its path; called while nobody else adds or removes, so that a file that
            several names share is never removed under a name that is just being added.

    Raises:
        NameTaken: the name stands for another content.
        ValueError: path is absolute or leaves the data folder.
    """
    _alone(connection)
    taken = connection.execute(select(datasets).where(datasets.c.name == name)).first()
    if taken is not None and taken.fingerprint != fingerprint:
        raise NameTaken(
            f"dataset {name!r} holds other content (sha256 {taken.fingerprint[:12]}); take another name, or remove it "
            "first"
        )
    put_in_place()  # of a text that is known as well: a file that was lost is there again
    added = register(connection, name=name, fingerprint=fingerprint, n_bytes=n_bytes, path=path, card=card)
    return Added(added, taken is None)


def remove(connection: Connection, name: str) -> Dataset:
    """Forget an uploaded text; its file goes once nothing else holds it (`unused`).

    Raises:
        NotFound: no uploaded text has the name.
        DatasetInUse: a queued or running search names it.
    """
    _alone(connection)
    # Locked against `for_use`: a search is submitted before this and counts, or after it and finds no text.
    uploaded = (datasets.c.name == name, datasets.c.path.is_not(None))
    row = connection.execute(select(datasets).where(*uploaded).with_for_update()).first()
    if row is None:
        raise NotFound(f"no dataset {name!r}")
    users = in_use_by(connection, name)
    if users:
        raise DatasetInUse(
            f"dataset {name!r} is in use by {len(users)} queued or running search{'es' if len(users) > 1 else ''}, "
            f"such as {users[0]}; cancel them or wait for their end"
        )
    connection.execute(delete(datasets).where(datasets.c.name == name))
    return _dataset(row)


def unused(connection: Connection, fingerprint: str) -> bool:
    """Whether no uploaded text has these bytes; nobody adds one until the transaction ends, so its file may go."""
    _alone(connection)
    held = select(datasets.c.name).where(datasets.c.fingerprint == fingerprint, datasets.c.path.is_not(None)).limit(1)
    return connection.scalar(held) is None


def _alone(connection: Connection) -> None:
    """One at a time among those who add and remove; who reads is not kept waiting. On SQLite writers are alone."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("LOCK TABLE datasets IN SHARE ROW EXCLUSIVE MODE"))


def get(connection: Connection, name: str, fingerprint: str | None = None) -> Dataset:
    """The newest of this name, or the one with this fingerprint.

    Raises:
        NotFound: there is none.
    """
    return _get(connection, name, fingerprint, for_use=False)


def for_use(connection: Connection, name: str, fingerprint: str | None = None) -> Dataset:
    """As `get`, and it is not removed before the transaction ends: for one that queues a search which names it."""
    return _get(connection, name, fingerprint, for_use=True)


def _get(connection: Connection, name: str, fingerprint: str | None, *, for_use: bool) -> Dataset:
    statement = select(datasets).where(datasets.c.name == name).order_by(datasets.c.created_at.desc()).limit(1)
    if fingerprint is not None:
        statement = statement.where(datasets.c.fingerprint == fingerprint)
    if for_use:
        statement = statement.with_for_update(read=True)  # FOR SHARE; left out on SQLite
    row = connection.execute(statement).one_or_none()
    if row is None:
        raise NotFound(f"no dataset {name!r}" + (f" with fingerprint {fingerprint}" if fingerprint else ""))
    return _dataset(row)


def in_use_by(connection: Connection, name: str) -> tuple[str, ...]:
    """Ids of the queued and running searches that name it, as dataset or tokenizer, oldest first."""
    named = or_(searches.c.dataset == name, searches.c.tokenizer == name)
    statement = select(searches.c.id).where(named, searches.c.state.in_(IN_USE))
    return tuple(connection.scalars(statement.order_by(searches.c.id)))


def uses(connection: Connection) -> Mapping[str, int]:
    """How many queued and running searches name each data set; those that none names are left out."""
    active = searches.c.state.in_(IN_USE)
    named = union(  # by id: a search that names one twice uses it once
        select(searches.c.id, searches.c.dataset.label("name")).where(active),
        select(searches.c.id, searches.c.tokenizer).where(active, searches.c.tokenizer.is_not(None)),
    ).subquery()
    statement = select(named.c.name, func.count()).group_by(named.c.name)
    return {row[0]: row[1] for row in connection.execute(statement)}


def _dataset(row: Row[Any]) -> Dataset:
    return Dataset(row.name, row.fingerprint, row.n_bytes, row.path, clock.moment(row.created_at), row.card)


def list(connection: Connection) -> tuple[Dataset, ...]:
    """The newest of each name, by name."""
    statement = select(datasets).order_by(datasets.c.name, datasets.c.created_at)
    newest = {row.name: _dataset(row) for row in connection.execute(statement)}
    return tuple(newest.values())
