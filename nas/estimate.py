"""What a search trial will take, before it is placed: memory and wall time.

Measured, not modelled: searches of the same shapes run some fair rounds of weight and alpha steps, and are thrown away.
Ours. L slots, K candidates.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import median

import torch

from nas.allocations import peak_bytes
from nas.config.method import Method
from nas.config.request import SearchRequest
from nas.cost import LatencyTable
from nas.data.parts import Parts
from nas.finalists import MOST_WINDOWS
from nas.held import Held, n_filling, probing, remembered
from nas.prune import Pruning
from nas.search import Search
from nas.training import rows_at_once

_ENDLESS = 10**7  # steps of a probe, so that it stays in one phase
_ROUNDS = 3  # that are timed; what lies in the middle counts, since one of them may meet a busy machine
_COMPARED = 2  # weight updates of each side of a comparison: from the second on fresh moments stand beside activations


@dataclass(frozen=True)
class Estimate:
    """Of one trial.

    Args:
        memory_bytes: held at the peak where the supernet lives: weights, remembered inputs, and the most that a step or
            a report with AdamW's moments, or a comparison of the parsimony pass with its own, holds beside them; a
            comparison of the heaviest path that there may be.
        seconds: of all phases but the parsimony pass.
        prune_seconds: of the parsimony pass with its looks at held-out windows and its records, at most: how many
            comparisons it makes is known only in the end.
        parts: what these are made of, in bytes and seconds.
    """

    memory_bytes: int
    seconds: float
    prune_seconds: float
    parts: dict[str, float]


def estimate(
    request: SearchRequest,
    parts: Parts,
    table: LatencyTable,
    device: str = "cpu",
    clock: Callable[[], float] = time.perf_counter,
) -> Estimate:
    """Run a little of a trial and multiply.

    Args:
        request: resolved: one seed, no ranges.
        parts: of its data.
        table: of its space.
        device: where it will run.
        clock: seconds; wall time, unless what else runs here is to be left out.
    """
    method, n_slots, n_candidates = request.method, request.space.n_slots, len(request.space.candidates)

    def seconds_of(run: Callable[[], object]) -> float:
        _wait(device)
        began = clock()
        run()
        _wait(device)
        return clock() - began

    def step_s(probe: Search) -> float:
        rounds = [seconds_of(lambda: [probe.advance() for _ in range(n_candidates)]) for _ in range(_ROUNDS)]
        return median(rounds) / n_candidates

    def with_alpha(probe: Search) -> tuple[Held, float, float, float]:
        """What it holds; seconds of a step, of a record and of scoring one path. It is of no use behind them."""
        held, both_s = _held(probe, device), step_s(probe)
        record_s = seconds_of(lambda: probe.record(tokens_per_s=None, last=False))
        paths = [[number] * n_slots for number in range(n_candidates)]
        score_s = seconds_of(lambda: [probe.losses(probe.path_nats(path)) for path in paths]) / n_candidates
        return _with_comparison(held, probe, device), both_s, record_s, score_s

    def weights_alone(probe: Search) -> float:
        for _ in range(_n_filling_rounds(request) * n_candidates):
            probe.advance()
        return step_s(probe)

    # One after the other: where a trial just has room, two have none. What most of a trial is made of comes last, since
    # the first dozen steps of a process take up to a third more.
    held, both_s, record_s, score_s = with_alpha(_probe(request, parts, table, device))
    weight_s = weights_alone(_probe(request, parts, table, device, alpha=False))
    alpha_s = max(0.0, both_s - weight_s)
    n_alpha = int((method.settle_start - method.warmup_steps) * method.alpha_share / (1 - method.alpha_share))
    n_rankings = 2 if method.settle_start < method.n_steps else 0
    n_looks = min(method.n_looks, math.prod(map(sum, request.space.allowed)))
    share = min(method.eval_windows, MOST_WINDOWS) / method.eval_windows
    found = {
        "weight_s": method.n_steps * weight_s,
        "alpha_s": n_alpha * alpha_s,
        "report_s": _n_records(method) * record_s,
        "rank_s": (n_rankings * (n_slots * (n_candidates - 1) + 1) + n_looks * share) * score_s,
    }
    pass_ = _of_the_pass(method, n_slots, weight_s, record_s, score_s)
    memory = {"weights": held.weights, "remembered": held.remembered, **held.passing}
    return Estimate(held.peak, sum(found.values()), sum(pass_.values()), {**memory, **found, **pass_})


def _of_the_pass(method: Method, n_slots: int, weight_s: float, record_s: float, score_s: float) -> dict[str, float]:
    """Seconds of the parsimony pass, at most: of its updates, of the looks at held-out windows behind them, and of its
    records.

    A first glance fine-tunes a path over a quarter of `prune_steps` and looks at it twice. Half of these are of a path
    that an edit has just changed, which is asked again, slot by slot, what each next edit would harm. As many
    comparisons as there are glances are reported.
    """
    n_updates = method.most_steps - method.n_steps
    if not n_updates:
        return {"prune_updates_s": 0.0, "prune_looks_s": 0.0, "prune_reports_s": 0.0}
    n_glances = n_updates / max(1, method.prune_steps // 4)
    look_s = score_s * method.prune_windows / method.eval_windows
    return {
        "prune_updates_s": n_updates * weight_s,
        "prune_looks_s": n_glances * (2 + n_slots / 2) * look_s,
        "prune_reports_s": n_glances * record_s,
    }


def n_probing(request: SearchRequest) -> int:
    """Weight updates that `estimate` makes: fair rounds until all is held, with alpha updates and without, those that
    are measured, one for its memory, and those of a comparison of the parsimony pass."""
    n_rounds = 2 * _n_filling_rounds(request) + 1 + 2 * _ROUNDS
    return n_rounds * len(request.space.candidates) + 2 * min(_COMPARED, request.method.prune_steps)


def _n_filling_rounds(request: SearchRequest) -> int:
    """Fair rounds until all weights have moments and memory is full: as many updates of each part's stream."""
    return math.ceil(n_filling(request) / len(request.space.candidates))


def held_by_search(request: SearchRequest, parts: Parts, table: LatencyTable, device: str, rows: int) -> Held:
    """Of a search trial.

    Args:
        request: resolved.
        parts: of its data.
        table: of its space.
        device: where it will run.
        rows: windows of a pass.
    """
    search = _probe(probing(request, rows), parts, table, device)
    return _with_comparison(_held(search, device), search, device)


def _probe(request: SearchRequest, parts: Parts, table: LatencyTable, device: str, *, alpha: bool = True) -> Search:
    """A search that makes weight steps on fair paths; with alpha, each is followed by an alpha step."""
    phase = {"warmup_share": 0.0, "alpha_share": 0.5} if alpha else {"warmup_share": 0.9}
    endless = {"n_steps": _ENDLESS, "settle_share": 0.0, "uniform_share": 1.0, "stop_when_stable": False}
    changed = request.method.model_copy(update={**endless, **phase})
    looks = {  # of the pass: windows of one forward pass hold what more of them do, one after the other
        "prune_steps": min(_COMPARED, changed.prune_steps),
        "prune_windows": max(2, min(changed.prune_windows, rows_at_once(changed))),
    }
    changed = changed.model_copy(update=looks)
    return Search(request.model_copy(update={"method": changed}), parts=parts, table=table, device=device)


def _held(search: Search, device: str) -> Held:
    """With what a step, gradients included, and a report hold; the search goes on behind them."""
    n_steps = len(search.space.candidates)  # of a fair round, behind which all weights have moments
    for _ in range(_n_filling_rounds(search.request) * n_steps):
        search.advance()
    weights = sum(each.nbytes for each in search.weights.values())
    step, _ = peak_bytes(lambda: [search.advance() for _ in range(n_steps)], device)
    report, _ = peak_bytes(lambda: search.record(tokens_per_s=None, last=False), device)
    passing = {"step": 2.0 * weights + step, "report": 2.0 * weights + report}
    return Held(float(weights), remembered(search.streams.values()), passing)


def _with_comparison(held: Held, search: Search, device: str) -> Held:
    """And with what a comparison of the parsimony pass holds, where one will be made.

    It keeps the path's weights twice, and fresh moments of them, where the search's own moments are gone: it is made on
    the path of the most weights, whatever the table and a budget say of that. The search is of no other use behind it.
    """
    counts = search.space.parameters()
    heaviest = sorted(range(len(search.space.labels)), key=lambda number: counts[search.space.labels[number]])
    search.slot_costs = torch.tensor([float(heaviest.index(number)) for number in range(len(heaviest))])
    search.pressure.bounds = ()
    path = [max((n for n, may in enumerate(row) if may), key=heaviest.index) for row in search.space.allowed]
    pruning = Pruning(search, path) if search.method.prune_steps else None
    search.optimiser.state.clear()
    bytes_ = 0.0 if pruning is None or pruning.done else float(peak_bytes(pruning.advance, device)[0])
    return replace(held, passing={**held.passing, "comparison": bytes_})


def _n_records(method: Method) -> int:
    """Step 0, each report and each checkpoint."""
    steps = range(1, method.n_steps + 1)
    return 1 + sum(step % method.report_every == 0 or step % method.checkpoint_every == 0 for step in steps)


def _wait(device: str) -> None:
    if device.startswith("cuda"):
        torch.cuda.synchronize(device)
