"""Commands that run parts of the service: serve, api, dispatch, migrate."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from api.commands.connection import DataDir
from api.commands.connection import settings as read_settings
from api.commands.refuse import Refused
from api.settings import Access, Settings

Found = TypeVar("Found", bound=Access)
Host = Annotated[str | None, typer.Option("--host", help="Address to listen on; anything but loopback needs a token.")]
Port = Annotated[int | None, typer.Option("--port", help="Port to listen on; 0 takes any free one.")]


def register(app: typer.Typer) -> None:
    app.command()(serve)
    app.command()(api)
    app.command()(dispatch)
    app.command()(migrate)


def serve(
    host: Host = None,
    port: Port = None,
    data_dir: DataDir = None,
    show: Annotated[bool, typer.Option("--open", help="Open the page in a browser once the service answers.")] = False,
) -> None:
    """Run everything on this machine: database, REST service, page, dispatcher. Ctrl-C ends it in good order."""
    from api import serving

    raise typer.Exit(serving.serve(_settings(host, port, data_dir), show=show))


def api(host: Host = None, port: Port = None, data_dir: DataDir = None) -> None:
    """Run the REST service alone, on a database that is migrated already."""
    from api import serving

    raise typer.Exit(serving.run_api(_settings(host, port, data_dir)))


def dispatch(
    data_dir: DataDir = None,
    parent: Annotated[
        int | None,
        typer.Option("--parent", metavar="PID", help="Stop when the process that started it, of this pid, is gone."),
    ] = None,
) -> None:
    """Run the dispatcher alone: it claims queued searches and starts a runner for each."""
    from api.serving import environment
    from workers import dispatcher
    from workers.settings import Settings as WorkerSettings

    kept = environment(_with_database(read_settings(data_dir)))
    os.environ.clear()  # the token stays with the api: runners and trials inherit from here
    os.environ.update(kept)
    try:
        dispatcher.run(WorkerSettings(), parent=parent)
    except dispatcher.DispatcherError as error:
        raise Refused(str(error)) from None


def migrate(data_dir: DataDir = None) -> None:
    """Bring the database up to date; safe to call at any time."""
    from sqlalchemy.exc import SQLAlchemyError

    from db.errors import DatabaseError
    from db.migrate import upgrade

    found = read_settings(data_dir)
    try:
        revision = upgrade(found.database_url)
    except (DatabaseError, SQLAlchemyError, OSError, ValueError) as error:
        raise Refused(f"cannot migrate the database: {str(error).splitlines()[0]}") from None
    print(f"database is at revision {revision}", file=sys.stderr)


def _settings(host: str | None, port: int | None, data_dir: Path | None) -> Settings:
    given: dict[str, Any] = {"host": host, "port": port, "data_dir": data_dir}
    return _with_database(Settings(**{name: value for name, value in given.items() if value is not None}))


def _with_database(found: Found) -> Found:
    """The settings, once their database is one that can be used; nobody connects to it here."""
    from db.engine import make_engine

    try:
        make_engine(found.database_url)
    except ValueError as error:
        raise Refused(str(error)) from None
    return found
