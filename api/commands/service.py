"""Commands that run parts of the service: serve, api, dispatch, migrate, ray-node."""

from __future__ import annotations

import contextlib
import os
import signal
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
    app.command()(ray_node)


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
    join_ray: Annotated[
        bool,
        typer.Option("--join-ray", help="First join the Ray cluster with this machine, as a node without trials."),
    ] = False,
) -> None:
    """Run the dispatcher alone: it claims queued searches and starts a runner for each."""
    from api.serving import environment
    from workers import dispatcher, ray_node
    from workers.cluster import ClusterError
    from workers.settings import Settings as WorkerSettings

    kept = environment(_with_database(read_settings(data_dir)))
    os.environ.clear()  # the token stays with the api: runners and trials inherit from here
    os.environ.update(kept)
    found = WorkerSettings()
    node_ended = False

    def stop() -> None:  # without it runners find no Ray: whoever watches this process starts both again
        nonlocal node_ended
        node_ended = True
        os.kill(os.getpid(), signal.SIGTERM)

    try:
        with contextlib.ExitStack() as stack:
            if join_ray:
                stack.enter_context(ray_node.running(found, cpus=0, on_end=stop))
            dispatcher.run(found, parent=parent)
    except (dispatcher.DispatcherError, ClusterError) as error:
        raise Refused(str(error)) from None
    if node_ended:
        raise Refused("this machine's Ray node ended, so the dispatcher stopped; is the head still there?")


def ray_node(
    head: Annotated[bool, typer.Option("--head", help="Be the cluster's head; the other nodes join it.")] = False,
) -> None:
    """Run this machine's node of a Ray cluster of several: it takes trials. Its settings come from the environment."""
    from workers import ray_node as node
    from workers.cluster import ClusterError
    from workers.settings import Settings as WorkerSettings

    try:
        status = node.run(WorkerSettings(), head=head)
    except ClusterError as error:
        raise Refused(str(error)) from None
    if status:
        raise Refused("the Ray node ended by itself; what it said stands above")


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
    from nas import catalog

    for reason in catalog.installed().refused:
        print(f"{reason}; it is left out", file=sys.stderr)
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
