"""`blockwright measure`: a latency table of this machine, to search elsewhere for what runs here."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated, Literal

import typer

from api.commands.presets import Preset, RequestFile, given
from api.commands.refuse import Refused

Mode = Annotated[
    Literal["prefill", "decode", "training"] | None,
    typer.Option("--mode", help="Of the request's serve modes; default: the first, which its budget holds for."),
]

Where = Annotated[
    Literal["cpu", "cuda"] | None,
    typer.Option("--device", help="Where to measure; default: cuda where resources.gpus asks for a GPU, else cpu."),
]


def register(app: typer.Typer) -> None:
    app.command()(measure)


def measure(
    request: RequestFile = None,
    preset: Preset = None,
    mode: Mode = None,
    device: Where = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="File to write; default: standard output.")] = None,
) -> None:
    """Measure each candidate of a request on this machine: on its GPU, or with as many threads as a trial's CPUs.

    The table is JSON: `blockwright tables add` brings it to a service, `search --local --table` uses it here.
    """
    from nas.config.request import SearchRequest

    parsed = SearchRequest.model_validate(given(request, preset))
    modes = [serve for serve in parsed.task.serve if mode in (None, serve.mode)]
    if not modes:
        served = ", ".join(dict.fromkeys(serve.mode for serve in parsed.task.serve))
        raise Refused(f"the request serves {served} and has no mode {mode!r}; name it in task.serve")
    if out is not None and not out.parent.is_dir():
        raise Refused(f"no folder {str(out.parent)!r} to write {out.name} in")
    if out is not None and (out.is_dir() or not os.access(out if out.exists() else out.parent, os.W_OK)):
        raise Refused(f"{out} cannot be written; give a file of yours")
    threads, cpus = max(1, int(parsed.resources.cpus)), os.cpu_count() or 1
    if threads > cpus:
        raise Refused(f"resources.cpus is {parsed.resources.cpus:g} and this machine has {cpus} CPUs; ask for no more")
    where = device or ("cuda" if parsed.resources.gpus > 0 else "cpu")
    import torch  # which takes seconds; what is wrong with the request is said before

    from nas.measure import measure_table
    from workers import memory

    if where == "cuda" and not torch.cuda.is_available():
        raise Refused("torch finds no GPU on this machine; --device cpu measures on its processors")
    with memory.explained(memory.ADVICE_MEASURING):
        table = measure_table(parsed.space, modes[0], vocab_size=parsed.task.vocab_size, threads=threads, device=where)
    text = json.dumps(table.model_dump(mode="json"), indent=1)
    if out is None:
        print(text)
        return
    out.write_text(text + "\n")
    from api import show
    from api.commands.tables import words

    line = f"{out}: {words(table.serve.model_dump())}, error {table.error_median:.1%}, id {table.id}"
    show.terminal().print(line, markup=False, soft_wrap=True)
