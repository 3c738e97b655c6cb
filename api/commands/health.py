"""`blockwright health`: is this process of the service at work? Exit status 0 or 1, for containers and supervisors."""

from __future__ import annotations

import os
import socket
import sys
import time
from enum import Enum
from pathlib import Path
from typing import Annotated

import httpx
import typer

from api.commands.connection import DataDir
from api.commands.connection import settings as read_settings

PATIENCE_S = 5.0
SILENT_S = 120.0  # a look of the dispatcher takes half a second, and a minute where it starts a Ray of its own


class Unhealthy(Exception):
    """One line on what is wrong."""


class Part(Enum):
    """What runs in a process of its own."""

    API = "api"
    DISPATCHER = "dispatcher"
    RAY_NODE = "ray-node"


def register(app: typer.Typer) -> None:
    app.command()(health)


def health(
    part: Annotated[Part, typer.Argument(help="What should run on this machine or in this container.")],
    port: Annotated[int | None, typer.Option("--port", help="Of the api; default: BLOCKWRIGHT_PORT, or 8400.")] = None,
    data_dir: DataDir = None,
) -> None:
    """Say whether a part of the service is at work here; exit status 1 if it is not."""
    try:
        if part is Part.API:
            line = _api(port)
        elif part is Part.DISPATCHER:
            line = _dispatcher(read_settings(data_dir).data_dir)
        else:
            line = _ray_node()
    except Unhealthy as error:
        print(f"blockwright: {error}", file=sys.stderr)
        raise typer.Exit(1) from None
    print(line)


def _api(port: int | None) -> str:
    url = f"http://127.0.0.1:{port or os.environ.get('BLOCKWRIGHT_PORT') or 8400}"
    try:
        answer = httpx.get(f"{url}/readyz", timeout=PATIENCE_S, trust_env=False)
    except httpx.HTTPError as error:
        raise Unhealthy(f"nothing answers at {url}: {error or type(error).__name__}") from None
    if not answer.is_success:
        raise Unhealthy(f"the api at {url} is not ready: {answer.text[:300]}")
    return f"the api at {url} is ready"


def _dispatcher(data_dir: Path) -> str:
    """By the time of its last look, which it leaves on its lock file."""
    from workers.dispatcher import LOCK_FILE

    try:
        ago_s = time.time() - (data_dir / LOCK_FILE).stat().st_mtime
    except OSError:
        raise Unhealthy(f"no dispatcher has had the data folder {data_dir} yet") from None
    if ago_s > SILENT_S:
        raise Unhealthy(f"the dispatcher of {data_dir} last looked {ago_s:.0f} s ago")
    return f"the dispatcher of {data_dir} looked {ago_s:.0f} s ago"


def _ray_node() -> str:
    """A raylet runs here, and the head can be reached."""
    import psutil

    from workers.cluster import ClusterError
    from workers.ray_node import head_address
    from workers.settings import Settings

    try:
        host, port = head_address(Settings())
    except ClusterError as error:
        raise Unhealthy(str(error)) from None
    try:
        socket.create_connection((host, port), timeout=PATIENCE_S).close()
    except OSError as error:
        raise Unhealthy(f"the Ray head at {host}:{port} does not answer: {error.strerror or error}") from None
    if not any(process.name() == "raylet" for process in psutil.process_iter()):
        raise Unhealthy("no raylet runs here")
    return f"a Ray node runs here, and the head at {host}:{port} answers"
