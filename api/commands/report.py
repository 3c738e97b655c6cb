"""`blockwright report`: what a search found as a page or as Markdown, of a service or of a folder that --local left."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from api.client import Client
from api.commands.connection import DataDir, Url, chosen, connect
from api.commands.refuse import Refused

FORMATS = ("html", "markdown")
_BY_SUFFIX = {".html": "html", ".htm": "html", ".md": "markdown", ".markdown": "markdown"}


def register(app: typer.Typer) -> None:
    app.command()(report)


def report(
    search: Annotated[
        str | None,
        typer.Argument(metavar="SEARCH", help="Id of the search, or the folder of a local one; default: the newest."),
    ] = None,
    format: Annotated[
        str | None,
        typer.Option("--format", help="html or markdown; default: as the file's name ends, else markdown."),
    ] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="File to write; default: print it.")] = None,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Report a search: every figure with its seeds, interval and id, and what the evidence does not show.

    A search under way or failed is reported as far as it came."""
    wanted = format or _BY_SUFFIX.get(output.suffix.lower() if output else "", "markdown")
    if wanted not in FORMATS:
        raise Refused(f"format is {wanted[:20]!r}; it must be html or markdown")
    if search is not None and Path(search).is_dir():
        text = _of_folder(Path(search), wanted)
    else:
        with connect(url, data_dir) as client:
            text = _of_service(client, search, wanted)
    if output is None:
        print(text, end="")
        return
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise Refused(f"cannot write {output}: {(error.strerror or str(error)).lower()}") from None
    print(output)


def _of_service(client: Client, search: str | None, wanted: str) -> str:
    return client.report(chosen(client, search), format=wanted)


def _of_folder(folder: Path, wanted: str) -> str:
    """Of the files of a local search, as they are now.

    Raises:
        InvalidInput: the folder holds no search.
    """
    from nas.report.markdown import markdown
    from nas.report.page import html
    from workers.left_in_folder import report_data

    data = report_data(folder)
    return html(data) if wanted == "html" else markdown(data)
