"""A search in this process, without server, Ray or database: `--local`, and most tests.

Trials run one by one by the very code that Ray runs, so the bits are the same. Stopped by Ctrl-C or worse, it goes on
from its folder.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from nas.catalog import DATASETS, TASKS
from nas.config.request import Resources, SearchRequest
from nas.cost import LatencyTable
from nas.errors import BlockwrightError, InvalidInput, SearchFailed
from nas.ingest.card import Dataset
from workers import memory, peers
from workers.disk import explain
from workers.folder import FolderStore, write_json
from workers.lock import Locked, lock
from workers.runner import run_search
from workers.store import Store
from workers.trainable import TrialSpec
from workers.trials import P, R


def run_local(
    request: SearchRequest,
    folder: Path,
    files: Mapping[str, Dataset],
    on_event: Callable[[str, dict[str, Any]], None],
    table: LatencyTable | None = None,
) -> dict[str, Any]:
    """Run a search to its end in this process, or take up the one that was left in the folder.

    Args:
        request: what to search.
        folder: result folder: result.json, export.zip, and what a restart needs.
        files: registered datasets and tokenizers by name.
        on_event: called with (type, data) as things happen; types as in the database, `reports` with the record.
        table: latency table to use instead of measuring one.

    Returns:
        What result.json holds.

    Raises:
        InvalidInput: the folder holds another search or is in use, or the request cannot be run.
        BlockwrightError: the search has failed; SearchFailed also where the folder cannot be written.
    """
    name = request.task.dataset
    if name in files and name in {*DATASETS, *TASKS}:
        raise InvalidInput(f"dataset {name!r} is built in; register the file under another name")
    if table is not None:
        request = request.model_copy(update={"latency_table": table.id})
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with lock(folder / "lock"):
            _claim(folder, request)
            with memory.explained():
                return run_search(request, FolderStore(folder, files, on_event, table), InlineTrials())
    except Locked as error:
        raise InvalidInput(f"{folder} is in use by process {error.pid}; wait for it, or give another folder") from None
    except OSError as error:  # a folder that refuses, a full disk: what was kept stays, and the search can go on later
        raise SearchFailed(explain(error, folder, "run it again")) from error


def _claim(folder: Path, request: SearchRequest) -> None:
    """Write the request down, or make sure that it is the one the folder began with."""
    path = folder / "request.json"
    if path.exists():
        if SearchRequest.model_validate_json(path.read_text()) != request:
            raise InvalidInput(f"{folder} holds another search; give a folder of its own")
    elif (folder / "result.json").exists():
        raise InvalidInput(f"{folder} holds a result.json of something else; give a folder of its own")
    else:
        write_json(path, request.model_dump(mode="json"))


class InlineTrials:
    """Runs each trial to its end before the next."""

    def check(self, resources: Resources) -> None:
        cpus, gpus = os.cpu_count() or 1, torch.cuda.device_count()
        if resources.cpus > cpus or resources.gpus > gpus:
            raise InvalidInput(
                f"a trial needs {resources.cpus:g} CPUs and {resources.gpus:g} GPUs; "
                f"this machine has {cpus} CPUs and {gpus} GPUs"
            )

    def call(self, resources: Resources, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        return function(*args, **kwargs)

    def run(self, specs: Sequence[TrialSpec], store: Store) -> dict[str, str]:
        threads = torch.get_num_threads()
        failures = {}
        for spec in specs:
            store.begin(spec.key)
            try:
                with memory.explained():
                    peers.run(spec, lambda report, key=spec.key: store.report(key, report))  # type: ignore[misc]
            except BlockwrightError as error:
                failures[str(spec.key)] = str(error)
                store.fail(spec.key, str(error))
            finally:
                torch.set_num_threads(threads)
        return failures
