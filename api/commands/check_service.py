"""Findings about the service that is configured here: its data, database, token, port, and what runs of it."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import shutil
import socket
import tempfile
import time
from pathlib import Path

import httpx
from sqlalchemy.engine import make_url

from api.commands.connection import ADDRESS_FILE
from api.commands.findings import Finding
from api.settings import Access, Settings
from api.version import installed
from db.settings import Settings as DatabaseSettings
from workers.settings import Settings as WorkerSettings

PATIENCE_S = 5.0
LITTLE_DISK_MB, TOO_LITTLE_DISK_MB = 2000, 200  # a search of the quickstart's size leaves some 20 MB
CLOCK_S = 2.0
SILENT_S = 120.0


def data_folder(settings: DatabaseSettings) -> Finding:
    """Whether searches can write where they must, and nobody else can."""
    folder = settings.data_dir
    name, elsewhere = "data folder", "set BLOCKWRIGHT_DATA_DIR to a folder of yours"
    existing = next(each for each in (folder, *folder.parents) if each.exists())
    if not existing.is_dir():
        return Finding(name, "fail", f"{existing} is no folder", elsewhere)
    try:
        with tempfile.TemporaryFile(dir=existing):
            pass
    except OSError as error:
        what = f"{folder} cannot be {'written' if existing == folder else 'made'}: {_reason(error)}"
        return Finding(name, "fail", what, f"give yourself the right to write {existing}, or {elsewhere}")
    if existing != folder:
        return Finding(name, "ok", f"{folder} will be made on the first start")
    status = folder.stat()
    if status.st_uid != os.geteuid():
        what = f"{folder} belongs to user {status.st_uid}; this is user {os.geteuid()}"
        return Finding(name, "warn", what, "run the service as the user that owns it, or its files will not be yours")
    if status.st_mode & 0o022:
        what = f"{folder} can be written by others"
        return Finding(name, "warn", what, f"run `chmod go-w {folder}`: who writes there runs code in the trials")
    return Finding(name, "ok", f"{folder} can be written")


def disk(settings: DatabaseSettings) -> Finding:
    existing = next(each for each in (settings.data_dir, *settings.data_dir.parents) if each.exists())
    free_mb = shutil.disk_usage(existing).free // 2**20
    what = f"{free_mb} MB free at {existing}"
    if free_mb < TOO_LITTLE_DISK_MB:
        return Finding("disk", "fail", what, "free some: no search will finish; `blockwright delete` removes old ones")
    if free_mb < LITTLE_DISK_MB:
        return Finding("disk", "warn", what, "free some before a long search; `blockwright delete` removes old ones")
    return Finding("disk", "ok", what)


def database(settings: DatabaseSettings) -> Finding:
    """Whether it answers, and with the tables of this version."""
    from sqlalchemy.exc import SQLAlchemyError

    from db import revision
    from db.engine import make_engine, reading

    name = "database"
    try:
        engine = make_engine(settings.database_url, busy_timeout_s=PATIENCE_S)
    except ValueError as error:
        return Finding(name, "fail", str(error), "correct BLOCKWRIGHT_DATABASE_URL")
    url = make_url(settings.database_url)
    # libpq takes a password among the parameters too
    shown = url.difference_update_query(["password", "sslpassword"]).render_as_string(hide_password=True)
    is_file = url.get_backend_name() == "sqlite"
    if is_file and not Path(str(url.database)).exists():
        return Finding(name, "ok", f"{shown} is not there yet; `blockwright serve` makes it")
    try:
        with reading(engine) as connection:
            found = revision.current(connection)
    except SQLAlchemyError as error:
        reason = " ".join(str(getattr(error, "orig", error)).split())
        todo = "put the file right or restore a backup" if is_file else "start it, and check address, user and password"
        return Finding(name, "fail", f"{shown} does not answer: {reason[:300]}", todo)
    finally:
        engine.dispose()
    if found == revision.HEAD:
        return Finding(name, "ok", f"{shown} at revision {found}")
    if found is None:
        return Finding(name, "fail", f"{shown} has no tables of ours", "run `blockwright migrate`")
    if found > revision.HEAD:
        what = f"{shown} is at revision {found} of a newer Blockwright; this one knows {revision.HEAD}"
        return Finding(name, "fail", what, "install that version, or restore the backup made before it")
    what = f"{shown} is at revision {found}; this version needs {revision.HEAD}"
    return Finding(name, "fail", what, "make a backup, then run `blockwright migrate`")


def clock(settings: DatabaseSettings) -> Finding:
    """The database's clock against this machine's: leases go by the first, logs and files by the second."""
    from sqlalchemy import select
    from sqlalchemy.exc import SQLAlchemyError

    from db.clock import now
    from db.engine import make_engine, reading

    if settings.database_url.startswith("sqlite"):
        return Finding("clock", "ok", "the database is on this machine")
    try:
        engine = make_engine(settings.database_url, busy_timeout_s=PATIENCE_S)
        with reading(engine) as connection:
            before = time.time()
            there = connection.scalar(select(now()))
            after = time.time()
        engine.dispose()
    except (SQLAlchemyError, ValueError):
        return Finding("clock", "warn", "unknown, for the database does not answer", "see database")
    assert there is not None
    off_s = max(before - there, there - after, 0.0)
    what = f"the database's clock is {off_s:.1f} s off this machine's"
    if off_s > CLOCK_S:
        return Finding("clock", "warn", what, "let both set their clocks (NTP): times shown will not fit together")
    return Finding("clock", "ok", what)


def token(settings: Settings) -> Finding:
    if settings.token is None:
        return Finding("token", "ok", f"none, and none is needed: the api listens on {settings.host} alone")
    length = len(settings.token.get_secret_value())
    file = settings.token_file
    if file is None:
        return Finding("token", "ok", f"{length} characters, from BLOCKWRIGHT_TOKEN")
    if file.stat().st_mode & 0o004 and file.absolute().parent.stat().st_mode & 0o001 and file.parts[:2] != ("/", "run"):
        return Finding("token", "warn", f"everybody on this machine can read {file}", f"run `chmod 600 {file}`")
    return Finding("token", "ok", f"{length} characters, from {file}")


def port(settings: Settings) -> Finding:
    """Whether the api could listen, or does."""
    if settings.port == 0:
        return Finding("port", "ok", "any free one")
    where = f"{settings.host} port {settings.port}"
    with socket.socket(socket.AF_INET6 if ":" in settings.host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((settings.host, settings.port))
            return Finding("port", "ok", f"{where} is free")
        except PermissionError:
            todo = "choose one from 1024 on, by --port or BLOCKWRIGHT_PORT"
            return Finding("port", "fail", f"{where} needs rights of root", todo)
        except OSError as error:
            reason, in_use = _reason(error), error.errno == errno.EADDRINUSE
    reached = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(settings.host, settings.host)
    if in_use and _version_at(f"http://{reached}:{settings.port}", None) is not None:
        return Finding("port", "ok", f"{where} is taken, by Blockwright")
    todo = "end what has it, or choose another by --port or BLOCKWRIGHT_PORT (0: any free one)"
    return Finding("port", "fail", f"cannot listen on {where}: {reason}", todo)


def service(settings: Access) -> Finding:
    """What the address file of the data folder says, and who answers there."""
    file = settings.data_dir / ADDRESS_FILE
    try:
        url = file.read_text().strip()
    except FileNotFoundError:
        return Finding("service", "ok", "none runs on the data folder; `blockwright serve` starts one")
    except (OSError, UnicodeDecodeError) as error:
        return Finding("service", "warn", f"{file} cannot be read: {error}", "delete it and start the service again")
    secret = settings.token.get_secret_value() if settings.token else None
    version = _version_at(url, secret)
    if version is None:
        what = f"{file} names {url}, where nothing of ours answers"
        return Finding("service", "warn", what, "it was killed: start it again, which corrects the file")
    if version == "":
        todo = "set BLOCKWRIGHT_TOKEN or BLOCKWRIGHT_TOKEN_FILE to what the service was started with"
        return Finding("service", "fail", f"{url} refuses the token that is set here", todo)
    if version != installed():
        what = f"{url} runs version {version}; installed is {installed()}"
        return Finding("service", "warn", what, "start the service again to run what is installed")
    return Finding("service", "ok", f"{url} runs version {version}")


def _version_at(url: str, token: str | None) -> str | None:
    """Version of the Blockwright at an address; "" where it wants another token, None where there is none."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    try:
        answer = httpx.get(f"{url}/version", headers=headers, timeout=PATIENCE_S, trust_env=False)
        body = answer.json()
        if answer.status_code == httpx.codes.UNAUTHORIZED and str(body["type"]).startswith("urn:blockwright:"):
            return ""
        return str(body["version"]) if answer.is_success and "python" in body else None
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, KeyError, TypeError):
        return None


def dispatcher(settings: DatabaseSettings) -> Finding:
    """By the time of its last look, where the service runs."""
    from workers.dispatcher import LOCK_FILE

    file = settings.data_dir / LOCK_FILE
    started = "`blockwright serve` starts one, `blockwright dispatch` runs one alone"
    if not file.exists():
        return Finding("dispatcher", "ok", f"none has had the data folder yet; {started}")
    try:
        ago_s = time.time() - file.stat().st_mtime
        is_there = _is_locked(file)
    except OSError as error:
        return Finding("dispatcher", "warn", f"{file} cannot be opened: {_reason(error)}", "see data folder")
    if not is_there:
        if (settings.data_dir / ADDRESS_FILE).exists():
            what = "none runs on the data folder, though a service does or did"
            return Finding("dispatcher", "warn", what, f"queued searches wait for it; {started}")
        return Finding("dispatcher", "ok", f"none runs on the data folder; {started}")
    if ago_s > SILENT_S:
        what = f"it last looked for searches {ago_s:.0f} s ago"
        return Finding("dispatcher", "warn", what, "is the database out of reach? otherwise start it again")
    return Finding("dispatcher", "ok", f"runs, and looked for searches {ago_s:.0f} s ago")


def _is_locked(file: Path) -> bool:
    with file.open("rb") as opened:
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)  # given back at once; dispatchers may share it
        except BlockingIOError:
            return True
    return False


def ray_cluster(settings: WorkerSettings) -> Finding:
    """The cluster that trials go to: one of our own, or the one that is named."""
    from workers import processes, ray_node
    from workers.cluster import ClusterError

    name = "ray cluster"
    if settings.ray_address is None:
        try:
            noted = json.loads((settings.data_dir / "ray.json").read_text())
            process = processes.ProcessId(**noted["process"])
            address = str(noted["address"])
        except (OSError, ValueError, KeyError, TypeError):
            return Finding(name, "ok", "none runs; the dispatcher starts one with the first search")
        if not processes.alive(process):
            return Finding(name, "ok", "the last one has ended; the dispatcher starts one with the next search")
    else:
        address = settings.ray_address
        try:
            ray_node.head_address(settings)
            ray_node.token_file(settings)
        except ClusterError as error:
            return Finding(name, "fail", str(error), "without it no search can run")
    host, _, number = address.rpartition(":")
    try:
        socket.create_connection((host, int(number)), timeout=PATIENCE_S).close()
    except OSError as error:
        todo = "start it (`blockwright ray-node --head`), or leave out BLOCKWRIGHT_RAY_ADDRESS to have one of your own"
        return Finding(name, "fail", f"nothing answers at {address}: {_reason(error)}", todo)
    return Finding(name, "ok", f"answers at {address}")


def _reason(error: OSError) -> str:
    return re.sub(r"^\[errno -?\d+\] ", "", (error.strerror or str(error)).lower())
