"""`blockwright doctor`: looks at the installation and at the service that is configured, and says what to do."""

from __future__ import annotations

import dataclasses
import json
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import ValidationError
from rich.table import Table
from rich.text import Text

from api import show
from api.commands.connection import DataDir
from api.commands.findings import Check, Finding, look
from api.field_errors import field_errors, summary
from api.settings import Settings

TIMEOUT_S = 90.0
_STYLES = {"ok": "green", "warn": "yellow", "fail": "bold red"}


def register(app: typer.Typer) -> None:
    app.command()(doctor)


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
    data_dir: DataDir = None,
) -> None:
    """Check the installation and what is configured, and say what to do. Exit status 1 if anything fails."""
    findings = examine(data_dir)
    is_well = all(each.level != "fail" for each in findings)
    if as_json:
        print(json.dumps({"ok": is_well, "findings": [dataclasses.asdict(each) for each in findings]}, indent=2))
    else:
        _print(findings)
    raise typer.Exit(0 if is_well else 1)


def examine(data_dir: Path | None, timeout_s: float = TIMEOUT_S) -> list[Finding]:
    """Every finding, in the order in which they build on each other; whatever hangs is a finding too."""
    # Not above: other commands, and --help, load neither FastAPI nor SQLAlchemy.
    from api.commands import check_machine as machine
    from api.commands import check_service as service
    from workers.settings import Settings as WorkerSettings

    checks: dict[str, Check] = {
        "python": machine.python,
        "blockwright": machine.packages,
        "torch": machine.torch,
        "ray": machine.ray,
        "optuna": machine.optuna,
        "page": machine.page,
        "blocks": machine.blocks,
        "memory": machine.memory,
    }
    given: dict[str, Any] = {} if data_dir is None else {"data_dir": data_dir}
    try:
        settings, worker = Settings(**given), WorkerSettings(**given)
    except ValidationError as error:
        what = summary(field_errors(error.errors()))
        todo = "correct the BLOCKWRIGHT_ variables of the environment; what depends on them was not looked at"
        return [*look(checks, timeout_s), Finding("settings", "fail", what, todo)]
    checks |= {
        "shared memory": partial(machine.shared_memory, worker.object_store_mb),
        "temporary folder": partial(machine.temp_dir, worker.ray_temp_dir),
        "data folder": partial(service.data_folder, settings),
        "disk": partial(service.disk, settings),
        "database": partial(service.database, settings),
        "clock": partial(service.clock, settings),
        "token": partial(service.token, settings),
        "port": partial(service.port, settings),
        "service": partial(service.service, settings),
        "dispatcher": partial(service.dispatcher, settings),
        "ray cluster": partial(service.ray_cluster, worker),
    }
    return look(checks, timeout_s)


def _print(findings: list[Finding]) -> None:
    table = Table(box=None, show_header=False, padding=(0, 1))
    for _ in range(3):
        table.add_column(overflow="fold")
    for each in findings:
        table.add_row(Text(each.level, style=_STYLES[each.level]), each.name, Text(each.what))
        if each.todo is not None:
            table.add_row("", "", Text(f"-> {each.todo}", style="italic"))
    show.terminal().print(table)
