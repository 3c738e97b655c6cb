"""How commands find the service: an address given, else the one that a running `serve` has written down."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from api.client import Client
from api.commands.refuse import Refused
from api.settings import Access
from db import ids

ADDRESS_FILE = "address"

Url = Annotated[
    str | None,
    typer.Option(
        "--url", envvar="BLOCKWRIGHT_URL", help="Address of the service; default: the one of the data folder."
    ),
]
DataDir = Annotated[
    Path | None,
    typer.Option("--data-dir", help="Data folder; default: BLOCKWRIGHT_DATA_DIR, or ~/.local/share/blockwright."),
]
SearchId = Annotated[str | None, typer.Argument(help="Id of the search; default: the newest.")]


def settings(data_dir: Path | None) -> Access:
    return Access() if data_dir is None else Access(data_dir=data_dir)


def connect(url: str | None, data_dir: Path | None) -> Client:
    """A client of the service; the token comes from BLOCKWRIGHT_TOKEN or BLOCKWRIGHT_TOKEN_FILE."""
    found = settings(data_dir)
    if url is None:
        file = found.data_dir / ADDRESS_FILE
        if not file.exists():
            raise Refused(
                f"no service runs on the data folder {found.data_dir}; run `blockwright serve`, or give --url"
            )
        url = file.read_text().strip()
    if not url.startswith(("http://", "https://")):
        raise Refused(f"{url!r} is no address of a service; it looks like http://127.0.0.1:8400")
    return Client(url, found.token.get_secret_value() if found.token else None)


def checked(search_id: str) -> str:
    """The id, which becomes part of an address; a file given in its place is the usual mistake."""
    if not re.fullmatch(ids.PATTERN, search_id):
        raise Refused(f"{search_id[:60]!r} is no id of a search; `blockwright list` shows them")
    return search_id


def chosen(client: Client, search_id: str | None) -> str:
    """The id given, or that of the newest search."""
    if search_id is not None:
        return checked(search_id)
    newest = next(client.list(), None)
    if newest is None:
        raise Refused("there is no search yet; submit one with `blockwright submit FILE`")
    return str(newest["id"])
