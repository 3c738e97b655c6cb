"""Files that a search hands out: rows with a path inside the data folder, a sha256 and a size."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, insert, select, update

from db import clock, events
from db.errors import NotFound
from db.files import relative
from db.ids import new_id
from db.lease import Lease, fence
from db.models import artifacts


@dataclass(frozen=True)
class Artifact:
    """A file that can be downloaded.

    Args:
        kind: export, result, ... (a short word).
        name: what a download is called, such as blockwright-quickstart.zip; no path.
        path: relative to the data folder, with slashes.
    """

    id: str
    search_id: str
    kind: str
    name: str
    path: str
    sha256: str
    n_bytes: int
    media_type: str
    created_at: datetime


def put(
    connection: Connection,
    lease: Lease,
    *,
    kind: str,
    name: str,
    path: str,
    sha256: str,
    n_bytes: int,
    media_type: str = "application/octet-stream",
) -> Artifact:
    """The artifact at this path of the search: made, or brought up to date. Event `artifact` only if anything changed.

    Raises:
        LeaseLost
        ValueError: path is absolute or leaves the data folder, or name holds a slash.
    """
    if "/" in name or "\\" in name or name in ("", ".", ".."):
        raise ValueError(f"artifact name {name!r} must be a file name without folders")
    path = relative(path)
    fence(connection, lease)
    values = {"kind": kind, "name": name, "sha256": sha256, "n_bytes": n_bytes, "media_type": media_type}
    one = (artifacts.c.search_id == lease.search_id, artifacts.c.path == path)
    known = connection.execute(select(artifacts).where(*one)).one_or_none()
    if known is None:
        connection.execute(
            insert(artifacts).values(
                id=new_id(), search_id=lease.search_id, path=path, created_at=clock.now(), **values
            )
        )
    elif {column: known._mapping[column] for column in values} == values:
        return _artifact(known)
    else:
        connection.execute(update(artifacts).where(*one).values(**values))
    artifact = _artifact(connection.execute(select(artifacts).where(*one)).one())
    data = {"artifact": artifact.id, "kind": kind, "name": name, "sha256": sha256, "n_bytes": n_bytes}
    events.append(connection, lease, [("artifact", data)])
    return artifact


def _artifact(row: Row[Any]) -> Artifact:
    return Artifact(
        id=row.id,
        search_id=row.search_id,
        kind=row.kind,
        name=row.name,
        path=row.path,
        sha256=row.sha256,
        n_bytes=row.n_bytes,
        media_type=row.media_type,
        created_at=clock.moment(row.created_at),
    )


def get(connection: Connection, artifact_id: str) -> Artifact:
    """Raises: NotFound: no such artifact."""
    row = connection.execute(select(artifacts).where(artifacts.c.id == artifact_id)).one_or_none()
    if row is None:
        raise NotFound(f"no artifact {artifact_id!r}")
    return _artifact(row)


def of_search(connection: Connection, search_id: str) -> list[Artifact]:
    """In the order they were made; [] for an unknown search."""
    statement = select(artifacts).where(artifacts.c.search_id == search_id).order_by(artifacts.c.id)
    return [_artifact(row) for row in connection.execute(statement)]
