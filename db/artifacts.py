"""Files that a search hands out: rows with a path inside the data folder, a sha256 and a size."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection

from db.lease import Lease


@dataclass(frozen=True)
class Artifact:
    """Args:
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
    raise NotImplementedError


def get(connection: Connection, artifact_id: str) -> Artifact:
    """Raises: NotFound: no such artifact."""
    raise NotImplementedError


def of_search(connection: Connection, search_id: str) -> list[Artifact]:
    """In the order they were made; [] for an unknown search."""
    raise NotImplementedError
