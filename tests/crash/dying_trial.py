"""A search stage whose trial kills its own process: `python dying_trial.py FOLDER STEP`.

It takes up what the folder holds, and dies by SIGKILL at the end of the update, or of the comparison of the parsimony
pass, with which more than STEP weight updates are done: moments and generators have moved on, nothing is reported,
flushed or closed. -1 lives to the end.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import torch

from nas.config.request import SearchRequest
from nas.data.corpora import text_file
from nas.search import Search
from tests import tiny
from workers.folder import FolderStore
from workers.inline import InlineTrials
from workers.stages.measure import measure
from workers.stages.search import search


def die(at: int) -> None:
    """Let the search kill this process."""
    advance = Search.advance

    def dying(search: Search) -> bool:
        answer = advance(search)
        if 0 <= at < search.step:
            os.kill(os.getpid(), signal.SIGKILL)
        return answer

    Search.advance = dying  # type: ignore[method-assign]


def run(folder: Path) -> None:
    """Run the request that lies in the folder, on the tests' text and a given table."""
    torch.set_num_threads(1)
    request = SearchRequest.model_validate_json((folder / "wanted.json").read_text())
    table = tiny.table(request.space, request.task.serve[0])
    request = request.model_copy(update={"latency_table": table.id})
    texts = folder / "texts"
    texts.mkdir(exist_ok=True)
    store = FolderStore(folder, {"letters": text_file(tiny.text(), texts)}, lambda kind, data: None, table)
    trials = InlineTrials()
    search(measure(request, store, trials), store, trials)


if __name__ == "__main__":
    die(int(sys.argv[2]))
    run(Path(sys.argv[1]))
