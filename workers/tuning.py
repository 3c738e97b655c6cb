"""Trials through Ray Tune: placed by their resources, reported in batches, stopped by a flag.

Tune only places and restarts trials here. Which samples to try is decided by `samples`, what is kept by the store; so
Tune's own files are a cache that is never read back, and each start of a search makes a new Tuner.
"""

from __future__ import annotations

import dataclasses
import logging
import os
import shutil
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

os.environ.update(  # read by ray.tune when it is imported, or when a Tuner runs
    TUNE_DISABLE_AUTO_CALLBACK_LOGGERS="1",  # no CSV, JSON and TensorBoard copies of each report
    TUNE_DISABLE_SIGINT_HANDLER="1",
    RAY_AIR_NEW_OUTPUT="0",
)

import ray
from ray import tune
from ray.exceptions import OutOfMemoryError, RayTaskError, WorkerCrashedError

from nas.config.request import Resources
from nas.errors import BlockwrightError, InvalidInput, SearchFailed
from workers import memory, peers
from workers.cluster import ClusterError
from workers.store import Report, StopRequested, Store, TrialKey
from workers.trainable import TrialSpec
from workers.trials import P, R

_MAX_RESTARTS = 2  # of a trial whose process died; what is wrong with the trial itself is not tried again
_POLL_S = 0.25
_CONNECT_TIMEOUT_S = 10

logging.getLogger("ray.tune").setLevel(logging.ERROR)  # its warnings are about files that nobody reads


def connect(address: str) -> None:
    """Be a driver of the cluster; the environment already says how (cluster.client_environment).

    Raises:
        ClusterError: nobody listens there; Ray itself would try for minutes.
    """
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=_CONNECT_TIMEOUT_S).close()
    except (OSError, ValueError) as error:
        raise ClusterError(f"no Ray cluster answers at {address!r}: {error}") from None
    ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, configure_logging=False)


class RayTrials:
    """Runs trials on the connected cluster, as many at once as their resources allow.

    Args:
        storage: folder, shared by all nodes, for Tune's own files; gone after each run.
        stop: set when the search was asked to stop.
        on_stop_signal: installed anew after Tune has taken SIGUSR1 for itself.
    """

    def __init__(self, storage: Path, stop: threading.Event, on_stop_signal: Callable[[], None]) -> None:
        self._storage = storage
        self._stop = stop
        self._on_stop_signal = on_stop_signal
        self._n_fits = 0

    def check(self, resources: Resources) -> None:
        nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        fits = any(node.get("CPU", 0) >= resources.cpus and node.get("GPU", 0) >= resources.gpus for node in nodes)
        if not fits:
            most = {name: max((node.get(name, 0) for node in nodes), default=0) for name in ("CPU", "GPU")}
            raise InvalidInput(
                f"a trial needs {resources.cpus:g} CPUs and {resources.gpus:g} GPUs on one machine; "
                f"the largest has {most['CPU']:g} CPUs and {most['GPU']:g} GPUs"
            )

    def call(self, resources: Resources, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        remote = ray.remote(num_cpus=resources.cpus, num_gpus=resources.gpus, max_retries=_MAX_RESTARTS)(function)
        waiting = remote.remote(*args, **kwargs)
        while not ray.wait([waiting], timeout=_POLL_S)[0]:
            if self._stop.is_set():
                ray.cancel(waiting, force=True)
                raise StopRequested
        try:
            result: R = ray.get(waiting)
        except RayTaskError as error:
            raise error.cause from None
        except (WorkerCrashedError, OutOfMemoryError):
            raise SearchFailed(
                f"a process that was to run {function.__name__} was killed {_MAX_RESTARTS + 1} times; the kernel does "
                f"so when memory runs out: {memory.ADVICE}"
            ) from None
        return result

    def run(self, specs: Sequence[TrialSpec], store: Store) -> dict[str, str]:
        if self._stop.is_set():
            raise StopRequested
        self._n_fits += 1
        recorder = TuneRecorder(store)
        resources = specs[0].request["resources"]
        tuner = tune.Tuner(
            tune.with_resources(train, {"cpu": resources["cpus"], "gpu": resources["gpus"]}),
            param_space={"spec": tune.grid_search([spec.to_json() for spec in specs])},
            tune_config=tune.TuneConfig(
                reuse_actors=True,  # six short trials, two at a time: 11 s instead of 28 s, which were imports
                trial_name_creator=lambda trial: str(_key(trial)),
                trial_dirname_creator=lambda trial: str(_key(trial)),
            ),
            run_config=tune.RunConfig(
                name=f"attempt-{store.attempt}-{self._n_fits}",
                storage_path=str(self._storage),
                callbacks=[recorder],
                failure_config=tune.FailureConfig(max_failures=_MAX_RESTARTS),
                verbose=0,
            ),
        )
        try:
            tuner.fit()
        except tune.TuneError as error:
            if recorder.problem is not None:
                raise recorder.problem from None
            raise SearchFailed(f"Ray Tune stopped: {str(error).strip().splitlines()[-1]}") from error
        finally:
            self._on_stop_signal()
            shutil.rmtree(self._storage, ignore_errors=True)
        if recorder.n_ended < len(specs):  # only SIGUSR1 ends Tune's loop before its trials
            raise StopRequested
        return recorder.failures


class TuneRecorder(tune.Callback):  # type: ignore[misc]
    """Hands what Tune tells to the store. Tune pickles its callbacks: this one's state is empty."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.failures: dict[str, str] = {}
        self.n_ended = 0
        self.problem: BaseException | None = None  # what the store raised; Tune would only tell its traceback

    def __getstate__(self) -> dict[str, Any]:
        return {}

    def on_trial_start(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
        with self._noting():
            self._store.begin(_key(trial))

    def on_trial_result(
        self, iteration: int, trials: list[Any], trial: Any, result: dict[str, Any], **info: Any
    ) -> None:
        key = _key(trial)
        with self._noting():
            if "failure" in result:
                self._fail(key, result["failure"])
            else:
                self._store.report(key, Report.from_json(result["report"]))

    def on_trial_complete(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
        self.n_ended += 1

    def on_trial_error(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
        self.n_ended += 1
        with self._noting():
            self._fail(_key(trial), _reason(trial))

    @contextmanager
    def _noting(self) -> Iterator[None]:
        try:
            yield
        except BaseException as error:
            self.problem = error
            raise

    def _fail(self, key: TrialKey, reason: str) -> None:
        self.failures[str(key)] = reason
        self._store.fail(key, reason)


def train(config: Mapping[str, Any]) -> None:
    """What Tune runs: one trial, its reports sent by `tune.report`.

    The checkpoint that Tune keeps is a small file that names ours. Where the trial's process dies while the runner
    lives, Tune starts it again with it: the newest one that came with a report.
    """
    spec = TrialSpec.from_json(config["spec"])
    checkpoint = tune.get_checkpoint()
    if checkpoint is not None:
        with checkpoint.as_directory() as folder:
            spec = dataclasses.replace(spec, resume=Path(folder, "resume").read_text())

    def report(each: Report) -> None:
        metrics = {"report": each.to_json()}
        if each.saved is None:
            tune.report(metrics)
            return
        with TemporaryDirectory() as folder:
            Path(folder, "resume").write_text(str(each.saved.path))
            tune.report(metrics, checkpoint=tune.Checkpoint.from_directory(folder))

    try:
        with memory.explained():
            peers.run(spec, report)
    except peers.RankFailed:
        raise  # as where the trial's own process dies, Tune starts it again
    except BlockwrightError as error:
        tune.report({"failure": str(error)})  # not raised: Tune would try a hopeless trial again


def _key(trial: Any) -> TrialKey:
    return TrialSpec.from_json(trial.config["spec"]).key


def _reason(trial: Any) -> str:
    """One line of why a trial ended, from where Tune has put its last error."""
    path = trial.pickled_error_file  # written by this very process, in Tune's folder of this run
    error = ray.cloudpickle.loads(Path(path).read_bytes()) if path else None
    if isinstance(error, RayTaskError):
        if isinstance(error.cause, peers.RankFailed):
            return str(error.cause)
        return f"{type(error.cause).__name__}: {' '.join(str(error.cause).split())}"
    if isinstance(error, OutOfMemoryError):
        return f"Ray ended its process because the machine's memory was nearly full; {memory.ADVICE}"
    said = str(error).strip().splitlines()[0]
    return (
        f"its process was killed {_MAX_RESTARTS + 1} times: {said} The kernel does so when memory runs out; "
        f"{memory.ADVICE}"
    )
