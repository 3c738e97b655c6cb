"""A search as one call of Python: `search(request, blocks={"conv": MyConv})`, without database, Ray or web.

It trains the supernets and derives, seed by seed; retraining, comparison and export are the service's, or
`blockwright search --local`'s.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from nas import catalog, own_block
from nas.architecture import Architecture
from nas.blocks.base import Block
from nas.budgets import bounds
from nas.config.request import SearchRequest, read_request
from nas.config.task import Task
from nas.cost import LatencyTable
from nas.data.corpora import built_in, text_file
from nas.data.encode import encode
from nas.data.parts import Parts
from nas.data.pin import check_fingerprint, pin_synthetic
from nas.data.synthetic.generated import synthetic_parts
from nas.derive import check_budget, derive_record
from nas.errors import InvalidInput, SearchFailed
from nas.guards import untrained
from nas.ingest.card import Dataset
from nas.ingest.options import Options
from nas.ingest.read import ingest
from nas.measure import measure_table
from nas.steps import StepRecord
from nas.text import check_text

OWN_TEXT = "own-text"  # name of a text that was given with a request for a built-in one


@dataclass(frozen=True)
class SeedResult:
    """What one seed's search ended with. L slots, K candidates.

    Args:
        seed: of the trial.
        records: one per report, first to last.
        architecture: what the parsimony pass left, or the most probable one, within the budget as the table predicts
            it; None where nothing moved beyond chance, or the weights have not learnt.
        reason: why there is no architecture.
    """

    seed: int
    records: tuple[StepRecord, ...] = field(repr=False)
    architecture: Architecture | None
    reason: str | None = None

    @property
    def probabilities(self) -> list[list[float]]:
        """softmax(alpha) at the end, (L, K)."""
        found = self.records[-1].probabilities
        assert found is not None
        return found

    @property
    def val_loss(self) -> float:
        """Validation loss of the path that the parsimony pass holds, without one of the supernet's most probable path,
        nats per token; of its mixture while none leads."""
        last = self.records[-1]
        found = last.val_loss_soft if last.path_loss is None else last.path_loss
        assert found is not None
        return found


@dataclass(frozen=True)
class SearchResult:
    """What `search` found.

    Args:
        request: with everything written out: own blocks among its candidates, its text by fingerprint.
        table: latency of each candidate, measured or as given.
        seeds: one result each, in order; at least one has an architecture.
        parts: the text as it was cut, for retraining on the same.
    """

    request: SearchRequest
    table: LatencyTable = field(repr=False)
    seeds: tuple[SeedResult, ...]
    parts: Parts = field(repr=False)

    @property
    def best(self) -> SeedResult:
        """The seed whose supernet validates best, of those with an architecture. Only retraining tells more."""
        return min((each for each in self.seeds if each.architecture is not None), key=lambda each: each.val_loss)

    @property
    def architecture(self) -> Architecture:
        found = self.best.architecture
        assert found is not None
        return found

    @property
    def probabilities(self) -> list[list[float]]:
        """softmax(alpha) of the best seed, (L, K)."""
        return self.best.probabilities

    @property
    def records(self) -> tuple[StepRecord, ...]:
        """Of the best seed."""
        return self.best.records


def search(
    request: SearchRequest | Mapping[str, Any],
    *,
    blocks: Mapping[str, type[Block]] | None = None,
    text: str | bytes | Path | None = None,
    table: LatencyTable | None = None,
    on_record: Callable[[int, StepRecord], None] | None = None,
    device: str = "cpu",
) -> SearchResult:
    """Search here and now: every seed of `trials`, one after the other.

    Args:
        request: a request or its JSON.
        blocks: own block classes by name, known in this process from then on; a later call may replace them. A block
            that no candidate of the request names becomes one more candidate, with its default options.
        text: UTF-8 to learn on, or a file of any format that uploads may have, by its name (reviews.jsonl.gz); None
            reads the request's built-in corpus, or draws its synthetic task.
        table: latency table to use; None measures one on `device`, with as many threads as the request's cpus.
        on_record: called with (seed, record) at every report.
        device: where the supernet lives, the one that is used whatever resources.gpus says.

    Raises:
        InvalidInput: a block, the request, or the table cannot be used; DataError: the text cannot.
        Infeasible: no architecture meets the budget.
        SearchFailed: training diverged, or no seed learnt anything or moved alpha beyond chance.
    """
    from nas.search import Search  # here: nas.search offers this function as its own

    own = blocks or {}
    for spec in [own_block.describe(name, found) for name, found in own.items()]:
        catalog.register(spec)
    request = _completed(request, own)
    for candidate in request.space.candidates:
        if catalog.block(candidate.block).own is not None:
            own_block.check(candidate, request.space.shape())
    request, parts = _read(request, text)
    with _threads(max(1, int(request.resources.cpus))) as threads:
        table = _usable(request, table) or measure_table(
            request.space,
            request.task.serve[0],
            vocab_size=request.task.vocab_size,
            threads=threads,
            device=device,
        )
        bounded = bounds(request, table)
        check_budget(request, bounded)
        seeds = []
        for seed in range(request.trials.seed, request.trials.seed + request.trials.n_seeds):
            records = []
            for record in Search(request.resolve({}, seed), parts=parts, table=table, device=device).run():
                records.append(record)
                if on_record is not None:
                    on_record(seed, record)
            architecture, reason = None, untrained(records[-1])
            if reason is None:
                try:
                    architecture = derive_record(request, table, records[-1], bounded)
                except SearchFailed as error:
                    reason = str(error)
            seeds.append(SeedResult(seed, tuple(records), architecture, reason))
    if all(each.architecture is None for each in seeds):
        raise SearchFailed(str(seeds[0].reason))
    return SearchResult(request, table, tuple(seeds), parts)


def _completed(request: SearchRequest | Mapping[str, Any], own: Mapping[str, type[Block]]) -> SearchRequest:
    """The request, read with the own blocks known, and each of them among its candidates."""
    read = read_request(request.model_dump(mode="json") if isinstance(request, SearchRequest) else request)
    if read.ranges:
        raise InvalidInput(f"ranges has {len(read.ranges)} entries; a search in Python draws no samples, so empty it")
    named = {candidate.block for candidate in read.space.candidates}
    missing = [name for name in own if name not in named]
    if not missing:
        return read
    whole = read.model_dump(mode="json")
    whole["space"]["candidates"] += missing
    return read_request(whole)


def _read(request: SearchRequest, text: str | bytes | Path | None) -> tuple[SearchRequest, Parts]:
    """The data's parts, and the request that says which data they are."""
    task = request.task
    if task.synthetic is not None:
        if text is not None:
            raise InvalidInput(f"dataset {task.dataset!r} is a synthetic task, which draws its own data; give no text")
        request = pin_synthetic(request)
        return request, synthetic_parts(request.task)
    if text is not None and task.dataset in catalog.DATASETS:
        task = task.model_copy(update={"dataset": OWN_TEXT})
        request = request.model_copy(update={"task": task})
    if task.tokenizer.type == "file":
        raise InvalidInput(
            f"tokenizer {task.tokenizer.name!r} is an uploaded file, which a search in Python cannot read; use another"
        )
    with TemporaryDirectory(prefix="blockwright-") as temporary:  # memory maps outlive the files they are of
        dataset = _dataset(task, text, Path(temporary))
        check_fingerprint(task, dataset.card.fingerprint)
        encoded = encode(dataset.path, dataset.card, task.tokenizer, Path(temporary))
        request = request.with_data(encoded.fingerprint, encoded.sizes)
        encoded.check(request.task, request.method.batch_size)
        return request, encoded.parts(request.task)


def _dataset(task: Task, text: str | bytes | Path | None, folder: Path) -> Dataset:
    if isinstance(text, Path):
        card = ingest(text, folder, Options.guess(text.name), max_bytes=2**62)
        return Dataset(folder / card.file_name, card)
    if text is None:
        return built_in(task.dataset, folder)
    whole = text.encode() if isinstance(text, str) else text
    check_text(whole)
    return text_file(whole, folder)


def _usable(request: SearchRequest, table: LatencyTable | None) -> LatencyTable | None:
    if table is None:
        if request.latency_table is not None:
            raise InvalidInput(f"the request names latency table {request.latency_table}; give it as table=")
        return None
    if request.latency_table not in (None, table.id):
        raise InvalidInput(f"the request names latency table {request.latency_table}; the one given is {table.id}")
    if table.serve != request.task.serve[0]:
        raise InvalidInput(
            f"the latency table holds for {table.serve}; the request serves {request.task.serve[0]} first"
        )
    return table


@contextmanager
def _threads(number: int) -> Iterator[int]:
    """As a trial runs, so that the bits are a trial's; the process gets its own number back."""
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield number
    finally:
        torch.set_num_threads(before)
