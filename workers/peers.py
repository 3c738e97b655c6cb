"""A trial on as many ranks as it has GPUs, each a process of this machine that lives no longer than the trial.

The trial's own process trains nothing then: it starts the ranks, hands on what the first one reports, and ends them all
when one fails, so that none waits for another that is gone. Where it dies itself, by kill -9 too, the pipe that each
rank reads from is closed by the kernel, and the ranks end. They talk over loopback alone.
"""

from __future__ import annotations

import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from nas import ranks
from nas.config.request import read_request
from nas.errors import BlockwrightError, SearchFailed
from workers import memory
from workers.store import Report
from workers.trainable import TrialSpec, device_of, run_trial

_GRACE_S = 2.0  # a rank that has lost another is often heard before the one that knows why
_LOOPBACK = "lo" if sys.platform == "linux" else "lo0"
LOOPBACK = {"GLOO_SOCKET_IFNAME": _LOOPBACK, "NCCL_SOCKET_IFNAME": _LOOPBACK}  # environment of ranks

Told = dict[str, Any]
"""What a rank says: {"report": ...}, {"done": true}, or why it ends: {"failed": ...}, {"broke": ...}, {"lost": ...}."""


class RankFailed(SearchFailed):
    """A rank's process was killed, or broke by an error of the program; another try may go well."""


def run(spec: TrialSpec, report: Callable[[Report], None]) -> None:
    """Run a trial to its end, or to where it is to wait: here, or on several GPUs.

    Args:
        spec: what to run.
        report: called with each record, after its checkpoint is on disk.

    Raises:
        RankFailed: one of several ranks died or broke.
        SearchFailed: this process sees fewer GPUs than the trial was given; or why a rank gave up.
        BlockwrightError: of one rank, as `run_trial`.
    """
    resources = read_request(spec.request).resources
    if resources.n_ranks == 1:
        run_trial(spec, report)
        return
    seen = torch.cuda.device_count()
    if device_of(resources) == "cuda" and seen < resources.n_ranks:
        raise SearchFailed(f"the trial has {resources.n_ranks} GPUs, and its process sees {seen}; give it as many")
    with _Peers(spec, resources.n_ranks) as started:
        started.listen(report)


class _Peers:
    """The processes of a trial's ranks, from the entry of the context to its end.

    Args:
        spec: of the trial.
        world: how many ranks.
    """

    def __init__(self, spec: TrialSpec, world: int) -> None:
        self._spec = spec
        self._world = world
        self._told: queue.Queue[tuple[int, Told | None]] = queue.Queue()  # by rank; None: its pipe was closed
        self._processes: list[subprocess.Popen[str]] = []
        self._readers: list[threading.Thread] = []

    def __enter__(self) -> _Peers:
        self._folder = Path(tempfile.mkdtemp(prefix="blockwright-ranks-"))
        (self._folder / "spec.json").write_text(self._spec.to_json())
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),  # the same packages as here
            **LOOPBACK,
        }
        try:
            for rank in range(self._world):
                process = subprocess.Popen(
                    [sys.executable, "-P", "-m", "workers.peers", str(self._folder), str(rank), str(self._world)],
                    env=environment,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                    process_group=0,  # Ctrl-C is for this process, which then ends them
                )
                self._processes.append(process)
                reader = threading.Thread(target=self._read, args=(rank, process), name=f"rank {rank}", daemon=True)
                self._readers.append(reader)
                reader.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            process.kill()
        for process in self._processes:
            process.wait()
            assert process.stdin is not None
            process.stdin.close()
        for reader in self._readers:
            reader.join()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _read(self, rank: int, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        with process.stdout as lines:
            for line in lines:
                if line.endswith("\n"):  # else the rank was killed amid a word
                    self._told.put((rank, json.loads(line)))
        self._told.put((rank, None))

    def listen(self, report: Callable[[Report], None]) -> None:
        """Until all ranks are done. Raises: SearchFailed: one has failed."""
        running, lost = set(range(self._world)), dict[int, str]()
        while running:
            try:
                rank, told = self._told.get(timeout=_GRACE_S if lost else None)
            except queue.Empty:
                raise RankFailed(next(iter(lost.values()))) from None
            named = f"rank {rank} of {self._world}"
            if told is None:
                if rank in running and rank not in lost:
                    raise RankFailed(f"{named} {_ended(self._processes[rank].wait())}")
            elif "report" in told:
                report(Report.from_json(told["report"]))
            elif "failed" in told:
                raise SearchFailed(told["failed"])
            elif "broke" in told:
                raise RankFailed(f"{named} broke: {told['broke']}")
            elif "lost" in told:
                lost[rank] = f"{named} has lost another: {told['lost']}"
            else:
                running.discard(rank)


def _ended(status: int) -> str:
    if status == -signal.SIGKILL:
        return f"was killed; the kernel does so when memory runs out: {memory.ADVICE}"
    how = f"was ended by {signal.Signals(-status).name}" if status < 0 else f"ended with exit status {status}"
    return f"{how}, without a word; the log may say why"


def _main() -> None:
    """`python -m workers.peers FOLDER RANK WORLD`: one rank."""
    folder, rank, world = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever prints shall not be taken for a message
    threading.Thread(target=_end_with_trial, args=(folder,), daemon=True).start()
    said = _run(folder, rank, world, lambda told: print(json.dumps(told), file=out, flush=True))
    print(json.dumps(said), file=out, flush=True)
    os._exit(0 if "done" in said else 1)  # nothing that is left waits for other ranks


def _end_with_trial(folder: Path) -> None:
    os.read(0, 1)  # nothing is ever written there: it returns when the trial's process is gone
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(1)


def _run(folder: Path, rank: int, world: int, tell: Callable[[Told], None]) -> Told:
    """The rank's share of the trial; returns how it ended."""
    try:
        spec = TrialSpec.from_json((folder / "spec.json").read_text())
        where = device_of(read_request(spec.request).resources)
        if where == "cuda":
            torch.cuda.set_device(rank)
        with ranks.joined(rank, world, folder / "meeting", where), memory.explained():
            run_trial(spec, lambda report: tell({"report": report.to_json()}))
    except BlockwrightError as error:
        return {"failed": str(error)}
    except ranks.PeerLost as error:
        return {"lost": str(error)}
    except Exception as error:  # noqa: BLE001 - told to the trial's process, which marks the trial as failed
        traceback.print_exc()
        return {"broke": f"{type(error).__name__}: {' '.join(str(error).split())}"}
    return {"done": True}


if __name__ == "__main__":
    _main()
