"""A runner without Ray that kills itself at a given moment: `python dying.py DATA_DIR MOMENT N`.

MOMENT is a method of the store, with a sign whether to die just before it (-) or just after it (+); N says at which
call of it. It is killed by SIGKILL, so nothing is flushed, closed or released.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

from db import queue, searches
from db.engine import make_engine, reading, transaction
from nas.config.request import SearchRequest
from workers.inline import InlineTrials
from workers.recorder import Recorder
from workers.runner import run_search
from workers.settings import Settings


def die(moment: str, n: int) -> None:
    """Let the recorder kill this process at the n-th call of a method; of `report`, only checkpoints count."""
    when, name = moment[0], moment[1:]
    method = getattr(Recorder, name)
    left = n

    def dying(recorder: Recorder, *arguments: Any) -> Any:
        nonlocal left
        left -= name != "report" or arguments[1].saved is not None
        if left == 0 and when == "-":
            os.kill(os.getpid(), signal.SIGKILL)
        answer = method(recorder, *arguments)
        if left == 0 and when == "+":
            recorder.flush()
            os.kill(os.getpid(), signal.SIGKILL)
        return answer

    setattr(Recorder, name, dying)


def main(data_dir: Path, moment: str, n: int) -> None:
    engine = make_engine(Settings(data_dir=data_dir).database_url)
    with transaction(engine) as connection:
        claim = queue.claim_next(connection, "test", free_cpus=1, free_gpus=0, lease_s=1000)
        assert claim is not None
    die(moment, n)
    with reading(engine) as connection:
        request = SearchRequest.model_validate(searches.get(connection, claim.lease.search_id).request)
    recorder = Recorder(engine, claim.lease, data_dir, claim.attempt, threading.Event(), sys.exit)
    run_search(request, recorder, InlineTrials())
    recorder.close()
    with transaction(engine) as connection:
        searches.finish(connection, claim.lease, "succeeded")
    engine.dispose()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
