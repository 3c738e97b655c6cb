"""One trial: the same code under Ray and without it, so the same bits.

A trial knows no database. It reads its spec and the encoded data, resumes where it is told to, and reports records;
where a record asks for it, it saves its state to its attempt's own folder and hashes the file itself. On several GPUs
every rank runs this code (workers.peers), and the first one alone reports.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from nas import ranks
from nas.architecture import Architecture
from nas.config.request import Resources, SearchRequest, read_request
from nas.cost import LatencyTable
from nas.estimate import held_by_search
from nas.held import held_by_retraining
from nas.measure import device_description
from nas.network import Network
from nas.retrain import Retraining, load_network
from nas.search import Search
from workers import memory
from workers.data import open_parts
from workers.store import Report, Saved, TrialKey


@dataclass(frozen=True)
class TrialSpec:
    """All that a trial needs, as JSON.

    Args:
        key: kind, sample and seed.
        request: resolved: one seed, no ranges.
        table: the latency table; None for a retraining.
        architecture: what a retraining trains; None for a search.
        data: folder of the encoded data; None of a synthetic task.
        folder: the attempt's own; it is there.
        resume: checkpoint to go on from.
        until: it stops to wait, saved, at its first report from this weight update on; None: it runs to its end.
        supernet: checkpoint of a search that a retraining starts from; None: from scratch.
        teacher: {"architecture", "checkpoint"} of a finished retraining that this one learns from; None: from nobody.
    """

    key: TrialKey
    request: Mapping[str, Any]
    table: Mapping[str, Any] | None
    architecture: Mapping[str, Any] | None
    data: str | None
    folder: str
    resume: str | None
    until: int | None = None
    supernet: str | None = None
    teacher: Mapping[str, Any] | None = None

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> TrialSpec:
        data = json.loads(text)
        return cls(**{**data, "key": TrialKey(**data["key"])})


def run_trial(spec: TrialSpec, report: Callable[[Report], None]) -> None:
    """Run a trial, or this rank's share of it, to its end, or to where it is to wait.

    Args:
        spec: what to run.
        report: called with each record, after its checkpoint is on disk, in the first rank alone.

    Raises:
        InvalidInput: a block is not installed here.
        DataError: the data are not those that the search began with.
        SearchFailed: training diverged, memory is too small, or a checkpoint cannot be written.
    """
    request = read_request(spec.request)
    world = ranks.now().world
    torch.set_num_threads(max(1, int(request.resources.cpus) // world))
    where = device_of(request.resources)
    work = _load(spec, request, where)
    folder = Path(spec.folder)
    device = device_fingerprint(request.resources.cpus, where, world)
    told = memory.passes_told(request.method, work.method)
    for record in work.run():
        record, told = replace(record, warning="\n".join(filter(None, (told, record.warning))) or None), None
        waits = spec.until is not None and record.step >= spec.until and not record.last
        record = replace(record, checkpoint=record.checkpoint or waits)
        path = folder / f"step-{record.step}.safetensors"
        if record.checkpoint:
            work.save(path)
        if ranks.now().is_first:
            saved = Saved(record.step, path, file_sha256(path), record.last) if record.checkpoint else None
            report(Report(record, saved, device))
        if waits:
            return


def device_of(resources: Resources) -> str:
    """Where a trial's tensors are here: cpu or cuda."""
    return "cuda" if resources.gpus > 0 and torch.cuda.is_available() else "cpu"


def device_fingerprint(cpus: float, where: str, world: int = 1) -> str:
    """Short and equal wherever a step must give equal bits.

    Args:
        cpus: of the trial.
        where: cpu or cuda.
        world: ranks of the trial, each of which adds up its rows by itself.
    """
    described = device_description(cpus, where)
    if world > 1:
        described["ranks"] = str(world)
    return hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()[:16]


def file_sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _load(spec: TrialSpec, request: SearchRequest, device: str) -> Search | Retraining:
    parts = open_parts(request, spec.data)
    resume = None if spec.resume is None else Path(spec.resume)
    work: Search | Retraining
    if spec.architecture is None:
        memory.check_room(request.space, device)
        table = LatencyTable.model_validate(spec.table)
        request = memory.fitted(request, partial(held_by_search, request, parts, table, device), device, resume)
        work = Search(request, parts=parts, table=table, device=device)
    else:
        architecture = Architecture.from_json(dict(spec.architecture))
        teacher = _teacher(spec.teacher, request) if spec.teacher is not None else None
        held = partial(held_by_retraining, request, architecture, parts, device, teacher)
        supernet = Path(spec.supernet) if spec.supernet and resume is None else None
        work = Retraining(
            memory.fitted(request, held, device, resume),
            architecture,
            parts=parts,
            device=device,
            supernet=supernet,
            teacher=teacher,
        )
    if resume is not None:
        work.load(resume)
    return work


def _teacher(teacher: Mapping[str, Any], request: SearchRequest) -> Network:
    architecture = Architecture.from_json(dict(teacher["architecture"]))
    config = request.network_config(architecture.labels, request.task.vocab_size)
    return load_network(Path(teacher["checkpoint"]), config)
