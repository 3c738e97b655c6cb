"""The command line, `blockwright`: a thin skin over the Python client, the service and the local search.

Heavy imports stand inside the commands that need them, so that `--help` answers at once. What a user can get wrong is
one line on stderr and exit status 2; a search that failed is status 1; Ctrl-C is 130.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from pydantic import ValidationError

from api.client import ClientError, Unreachable
from api.commands import (
    datasets,
    derive,
    doctor,
    estimate,
    health,
    local,
    measure,
    presets,
    report,
    rule,
    searches,
    service,
    tables,
)
from api.commands.refuse import Refused
from api.field_errors import field_errors, summary
from api.version import installed
from nas.errors import BlockwrightError, InvalidInput

app = typer.Typer(
    name="blockwright",
    help="Which block does each layer of a Transformer need? Searches for it, and says how sure it is.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
service.register(app)
presets.register(app)
searches.register(app)
datasets.register(app)
measure.register(app)
tables.register(app)
estimate.register(app)
local.register(app)
report.register(app)
rule.register(app)
derive.register(app)
health.register(app)
doctor.register(app)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"blockwright {installed()}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Options before any command."""


def main() -> None:
    """Run a command; every error that a user can act on becomes one line."""
    try:
        app()
    except ValidationError as error:
        _fail(summary(field_errors(error.errors())), 2)
    except (ClientError, Unreachable, InvalidInput, Refused) as error:
        _fail(str(error), 2)
    except BlockwrightError as error:
        _fail(str(error), 1)
    except OSError as error:  # a folder that cannot be made, a disk that is full
        reason = (error.strerror or str(error)).lower()
        _fail(f"cannot use {error.filename}: {reason}" if error.filename else reason, 2)
    except KeyboardInterrupt:
        sys.exit(130)


def _fail(line: str, status: int) -> None:
    print(f"blockwright: {line}", file=sys.stderr)
    sys.exit(status)


if __name__ == "__main__":
    main()
