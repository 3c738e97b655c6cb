"""Latency, measured on this machine: the table that a search reads, and the comparison of two finished networks.

Everything is timed in one process, round-robin, and reported by medians, so that another program on the machine
slows all alike. With one thread, its own processor time is read: it is the wall time of an idle machine, and what a
busy one takes away in between does not count (error of the fit with 5 programs on 2 cores: median 3-10% by the wall
clock, 1% by the thread's). On a GPU the wall clock is read, each time once the GPU has done all that it was given. A
table's entry is one block as its slot runs it (norm, block, residual); identity is 0 by definition (par-search.md
section 4.1). A mode with memory is timed with random memory of its length in each slot that reads it, and with what it
takes to keep it. What one call of a mode is, `nas.calls` says.
"""

from __future__ import annotations

import copy
import gc
import platform
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray

from nas.blocks import block_classes
from nas.calls import network_call, slot_calls
from nas.config.space import SearchSpace
from nas.config.task import ServeMode
from nas.cost import LatencyEntry, LatencyTable, entry_key
from nas.network import Network
from nas.options import NetworkConfig, SlotConfig

N_NETWORKS = 10  # random ones behind the fit of offset and scale
_ROUNDS = 36
_SLOT_RUNS = 3  # per round, so that each entry is the median of more than 100
_UNTIMED_ROUNDS = 7
_LONGEST_S = 18.0  # of all rounds; a large model gets fewer of them, never fewer than _FEWEST_ROUNDS
_FEWEST_ROUNDS = 5
# A comparison is made in sessions, each with networks of its own in memory of its own, because the same two networks
# built again give another ratio (measured: 0.78 to 1.10 over 20 builds, within one build 0.02): rounds of one session
# alone would give an interval far too narrow.
_SESSIONS = 8
_SESSION_UNTIMED, _SESSION_FEWEST = 3, 2
_HARDWARE = ("accelerator", "processor", "threads", "dtype", "system")  # of a description, what times hang on most
_T = 2.365  # Student's t at 97.5% with _SESSIONS - 1 degrees of freedom

Verdict = Literal["within", "over", "cannot tell"]


@dataclass(frozen=True)
class PairedLatency:
    """Latency of a network against a reference, timed in turn.

    Args:
        ratio: network time / reference time: median over the rounds of a session, geometric mean over sessions.
        low: lower end of the 95% t interval of that mean over sessions.
        high: upper end.
        repeatability: how far the same measurement of an equal twin of the reference can stray from 1; "no slower
            than the reference" can be claimed up to a ratio of 1 + repeatability.
        ms: milliseconds per call, by the names given: as the ratio, of times.
        n_rounds: timed rounds.
        ms_interval: by the names, ends of the same interval of `ms`. What slows the machine for a while slows both
            networks alike, so it is wider than that of the ratio.
    """

    ratio: float
    low: float
    high: float
    repeatability: float
    ms: dict[str, float]
    n_rounds: int
    ms_interval: dict[str, tuple[float, float]]


def verdict(low: float, high: float, bound: float) -> Verdict:
    """Where an interval lies against a bound; one that reaches over it on both sides cannot tell."""
    if high <= bound:
        return "within"
    return "over" if low > bound else "cannot tell"


def device_description(cpus: float, device: str = "cpu") -> dict[str, str]:
    """What a latency table holds for: processor, threads, number format and software, as text; and the GPU, if so.

    Args:
        cpus: processors of a trial; one thread each, at least one.
        device: cpu or cuda.
    """
    gpu = {} if device == "cpu" else {"accelerator": torch.cuda.get_device_name(device)}
    return {
        **gpu,
        "processor": _processor(),
        "threads": str(max(1, int(cpus))),
        "clock": "processor time" if _clock(max(1, int(cpus)), device) is time.thread_time else "wall time",
        "dtype": "float32",
        "system": f"{platform.system()} {platform.machine()}",
        "torch": torch.__version__,
        "python": platform.python_version(),
    }


def elsewhere(device: Mapping[str, str], here: Mapping[str, str]) -> str | None:
    """In words, by what two devices differ whose times say nothing of each other; None where they are alike.

    Other software on the same machine is no other device.

    Args:
        device: that a table was measured on, as `device_description` has it.
        here: where networks are timed.
    """
    names = [name for name in _HARDWARE if device.get(name) != here.get(name)]
    return ", ".join(f"{name} {device.get(name, 'none')} and not {here.get(name, 'none')}" for name in names) or None


def measure_table(
    space: SearchSpace, serve: ServeMode, *, vocab_size: int, threads: int, device: str = "cpu", seed: int = 0
) -> LatencyTable:
    """Measure each candidate alone and random networks whole, and fit one to the other.

    The error kept in the table is that of networks left out of the fit, one after the other.

    Args:
        space: candidates and shape.
        serve: batch and lengths.
        vocab_size: token ids of the networks.
        threads: threads to measure with; the process gets its own number back afterwards.
        device: where the networks live, cpu or cuda.
        seed: of the random networks and of their weights.
    """
    drawn = random.Random(seed)
    paths = [[drawn.choice(space.labels) for _ in range(space.n_slots)] for _ in range(N_NETWORKS)]
    classes = block_classes(candidate.block for candidate in space.candidates)

    def network(labels: Sequence[str]) -> Network:
        chosen = [space.candidate(label) for label in labels]
        slots = tuple(SlotConfig(candidate.block, candidate.options) for candidate in chosen)
        config = NetworkConfig(space.shape(), vocab_size, slots, space.norm, space.norm_position, space.backbone)
        return Network(config, classes).to(device).train(serve.mode == "training")

    with _quiet(threads, seed, serve, device):
        single = network(space.labels)  # each candidate in a slot of its own
        calls = [call for call in slot_calls(single, serve).values() for _ in range(_SLOT_RUNS)]
        calls += [network_call(network(labels), serve) for labels in paths]
        times = _round_robin(calls, _ROUNDS, _clock(threads, device))

    runs = {
        int(number): times[:, index * _SLOT_RUNS : (index + 1) * _SLOT_RUNS].ravel()
        for index, number in enumerate(single.slots)
    }
    entries = {
        entry_key(candidate, space, serve): LatencyEntry(
            block=candidate.block,
            options=candidate.options,
            median_ms=float(np.median(runs[index])) if index in runs else 0.0,
            iqr_ms=float(np.subtract(*np.quantile(runs[index], [0.75, 0.25]))) if index in runs else 0.0,
            n_runs=runs[index].size if index in runs else 0,
        )
        for index, candidate in enumerate(space.candidates)
    }
    medians = {each.label: entries[entry_key(each, space, serve)].median_ms for each in space.candidates}
    sums = np.array([sum(medians[label] for label in path) for path in paths])
    whole_ms = np.median(times[:, -N_NETWORKS:], axis=0)
    offset, scale = fit_offset_and_scale(sums, whole_ms)
    errors = _left_out_errors(sums, whole_ms)
    return LatencyTable(
        device=device_description(threads, device),
        serve=serve,
        entries=entries,
        offset_ms=offset,
        scale=scale,
        error_median=float(np.median(errors)),
        error_p95=float(np.quantile(errors, 0.95)),
        n_networks=N_NETWORKS,
    )


def compare_latency(
    networks: Mapping[str, Network], serve: ServeMode, rounds: int, *, threads: int = 1, device: str = "cpu"
) -> PairedLatency:
    """Time two networks and an equal twin of the second in turn, in a new order each round, in several sessions.

    Args:
        networks: two by name: the one in question, then its reference.
        serve: batch and lengths.
        rounds: timed rounds over all sessions, at least one a session; fewer are run when they take long.
        threads: threads to measure with; the process gets its own number back afterwards.
        device: where copies of them are timed, cpu or cuda.

    Raises:
        ValueError: not two networks, or too few rounds.
    """
    if len(networks) != 2:
        raise ValueError(f"latency is compared between 2 networks, one and its reference; there are {len(networks)}")
    if rounds < _SESSIONS:
        raise ValueError(f"rounds is {rounds}; it must be at least {_SESSIONS}")
    name, reference = networks
    sessions = []
    with _quiet(threads, 0, serve, device):
        for _ in range(_SESSIONS):
            timed = [
                copy.deepcopy(networks[each]).to(device).train(serve.mode == "training")
                for each in (name, *[reference] * 2)
            ]
            sessions.append(
                _round_robin(
                    [network_call(network, serve) for network in timed],
                    rounds // _SESSIONS,
                    _clock(threads, device),
                    untimed=_SESSION_UNTIMED,
                    fewest=_SESSION_FEWEST,
                    longest_s=_LONGEST_S / _SESSIONS,
                )
            )
    ratio, low, high = _interval([times[:, 0] / times[:, 1] for times in sessions])
    twin, twin_low, twin_high = _interval([times[:, 2] / times[:, 1] for times in sessions])
    own = {each: _interval([times[:, index] for times in sessions]) for index, each in enumerate(networks)}
    return PairedLatency(
        ratio=ratio,
        low=low,
        high=high,
        repeatability=abs(twin - 1) + (twin_high - twin_low) / 2,
        ms={each: mean for each, (mean, _, _) in own.items()},
        n_rounds=sum(map(len, sessions)),
        ms_interval={each: (lowest, highest) for each, (_, lowest, highest) in own.items()},
    )


def fit_offset_and_scale(sums: NDArray[np.float64], measured: NDArray[np.float64]) -> tuple[float, float]:
    """Least squares of measured = offset + scale * sum, with offset >= 0 and scale > 0.

    Where all sums are equal, or noise would make the scale negative, the scale is 1.

    Args:
        sums: of the entries of each network's slots, (N,) milliseconds.
        measured: of the whole networks, (N,) milliseconds.
    """
    spread = sums - sums.mean()
    variance = float((spread**2).sum())
    scale = float((spread * measured).sum()) / variance if variance > 0 else 0.0
    offset = float(measured.mean() - scale * sums.mean())
    if scale > 0 and offset < 0:
        offset, scale = 0.0, float((sums * measured).sum() / (sums**2).sum())
    if scale <= 0:
        offset, scale = max(0.0, float((measured - sums).mean())), 1.0
    return offset, scale


def _left_out_errors(sums: NDArray[np.float64], measured: NDArray[np.float64]) -> list[float]:
    """Relative error of each network by the fit to all others."""
    errors = []
    for left_out in range(len(sums)):
        others = np.arange(len(sums)) != left_out
        offset, scale = fit_offset_and_scale(sums[others], measured[others])
        errors.append(abs(float(offset + scale * sums[left_out] - measured[left_out])) / float(measured[left_out]))
    return errors


def _clock(threads: int, device: str = "cpu") -> Callable[[], float]:
    """Seconds of this thread on a processor if no other works with it; else, or where that clock ticks, of the wall. On
    a GPU of the wall, once it has done what it was given: calls only queue their work there."""
    if device != "cpu":

        def when_done() -> float:
            torch.cuda.synchronize(device)
            return time.perf_counter()

        return when_done
    ticks = len({time.thread_time() for _ in range(100)}) < 50  # some systems count it in hundredths of a second
    return time.perf_counter if threads > 1 or ticks else time.thread_time


def _round_robin(
    calls: Sequence[Callable[[], object]],
    rounds: int,
    clock: Callable[[], float],
    *,
    untimed: int = _UNTIMED_ROUNDS,
    fewest: int = _FEWEST_ROUNDS,
    longest_s: float = _LONGEST_S,
) -> NDArray[np.float64]:
    """Milliseconds of each call in each round, (rounds or fewer, calls), in a new order every round."""
    shuffle = random.Random(0).shuffle  # the same neighbour every time would be the same warm cache every time
    order = list(range(len(calls)))
    times: list[list[float]] = []
    started = time.perf_counter()
    collecting = gc.isenabled()
    gc.disable()
    try:
        for number in range(-untimed, rounds):
            elapsed = time.perf_counter() - started
            if len(times) >= fewest and elapsed > longest_s:
                break
            if -untimed < number < 0 and elapsed > longest_s / 10:
                continue  # a model this slow is warm after one round
            shuffle(order)
            row = [0.0] * len(calls)
            for index in order:
                before = clock()
                calls[index]()
                row[index] = 1e3 * (clock() - before)
            if number >= 0:
                times.append(row)
    finally:
        if collecting:
            gc.enable()
    return np.array(times)


def _interval(sessions: Sequence[NDArray[np.float64]]) -> tuple[float, float, float]:
    """Geometric mean of the sessions' medians, and the ends of its 95% t interval."""
    logs = np.log([float(np.median(values)) for values in sessions])
    mean, half = logs.mean(), _T * logs.std(ddof=1) / np.sqrt(len(logs))
    return float(np.exp(mean)), float(np.exp(mean - half)), float(np.exp(mean + half))


@contextmanager
def _quiet(threads: int, seed: int, serve: ServeMode, device: str) -> Iterator[None]:
    """`threads` threads, seeded generators, and gradients in training alone; threads and generators are put back."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    gradients = nullcontext() if serve.mode == "training" else torch.inference_mode()
    try:
        with torch.random.fork_rng(devices=[] if device == "cpu" else [device]), gradients:
            torch.manual_seed(seed)
            yield
    finally:
        torch.set_num_threads(before)


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
