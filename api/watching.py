"""What a running search looks like in a terminal, built from its events: those of the service or of a local run.

Stage, weight updates done and planned, time left, the newest losses of each trial, and the strip of current leaders.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from api import show
from api.foreseen import sentence
from api.looks import looks
from api.plain import plain
from nas.config.method import Method
from nas.config.retrain import Retrain

PLAIN_S = 10.0  # between two lines where the output is no terminal


@dataclass
class _Trial:
    kind: str
    seed: str
    base: int = 0  # step at which this run of the search found it: what went before took none of its time
    step: int = 0
    is_over: bool = False  # ended, maybe sooner than planned, or given up
    row: dict[str, Any] = field(default_factory=dict)  # newest report
    matrices: dict[str, Any] | None = None  # newest report with probabilities


class Picture:
    """The state of one search as told by its events.

    Args:
        request: JSON of the request, defaults written out.
        now: clock in seconds, for the time left.
    """

    def __init__(self, request: Mapping[str, Any], now: Callable[[], float] = time.time) -> None:
        self.request = request
        self.stage = "queued"
        self.warning: str | None = None
        self.estimate: str | None = None  # of a search trial, in a sentence
        self.power: str | None = None  # what the retrainings can show, in a sentence
        self._now = now
        self._looks = looks(request["space"]["candidates"])
        self._labels = [candidate["label"] for candidate in request["space"]["candidates"]]
        method = Method.model_validate(request["method"])
        self._n_steps = method.n_steps
        self._retrain = Retrain.model_validate(request["retrain"])
        self._most = {"search": method.most_steps, "retrain": self._retrain.n_steps}
        self._trials: dict[str, _Trial] = {}
        self._started: float | None = None
        self._newest = 0.0  # time of the newest event; a replay goes through the past faster than it happened

    def tell(self, kind: str, data: Mapping[str, Any], at: float | None = None) -> None:
        """Take one event in.

        Args:
            kind: type of the event.
            data: its data; `reports` with the rows themselves.
            at: when it happened, seconds since 1970; None: now.
        """
        self._newest = at if at is not None else self._now()
        if kind == "started" or (kind == "stage" and self._started is None):
            self._started = self._newest
            for trial in self._trials.values():
                trial.base = trial.step
        if kind == "stage":
            self.stage = data["stage"]
        elif kind == "warning":
            self.warning = plain(data["message"])
        elif kind == "estimate":
            self.estimate = plain(sentence(data))
        elif kind == "power":
            self.power = plain(data["message"])
        elif kind == "trial":
            trial = self._trial(data)
            trial.is_over = data["state"] == "succeeded" or (data["state"] == "cancelled" and bool(data.get("reason")))
        elif kind == "reports":
            for row in data.get("reports") or [data["record"]]:
                self._report(self._trial(data), row)
        elif kind in ("queued", "requeued", "succeeded", "failed", "cancelled"):
            self.stage = "queued" if kind == "requeued" else kind

    def progress(self) -> tuple[int, int]:
        """Weight updates done and planned; what retraining will take is a guess until it has begun.

        A trial that ended sooner than it might have counts as all that was planned for it.
        """
        searches = self.request["trials"]["n_samples"] * self.request["trials"]["n_seeds"]
        planned = {"search": searches * self._most["search"], "retrain": 0}
        done = {"search": 0, "retrain": 0}
        retrainings = [trial for trial in self._trials.values() if trial.kind == "retrain"]
        guess = self._retrain.most_trials(self.request["trials"]["n_seeds"])
        known = len(retrainings) if self._retrain.all_at_once else max(guess, len(retrainings))
        planned["retrain"] = (known or guess) * self._most["retrain"]
        for trial in self._trials.values():
            most = self._most[trial.kind]
            done[trial.kind] += most if trial.is_over else min(trial.step, most)
        if self.stage in ("deriving", "retraining", "diagnosing", "exporting", "succeeded"):
            done["search"] = planned["search"]
        if self.stage in ("exporting", "succeeded"):
            done["retrain"] = planned["retrain"]
        return min(done["search"], planned["search"]) + min(done["retrain"], planned["retrain"]), sum(planned.values())

    def seconds_left(self) -> float | None:
        """At the pace since this run started, by what it has really done; None while there is no pace."""
        if self._started is None:
            return None
        done, planned = self.progress()
        run = sum(trial.step - trial.base for trial in self._trials.values())
        elapsed = self._newest - self._started
        return elapsed * (planned - done) / run if run > 0 and done < planned and elapsed > 1 else None

    def line(self) -> str:
        """One line without colours, for logs."""
        done, planned = self.progress()
        parts = [f"{self.stage:<10}", f"step {done} of {planned} ({done / planned:.0%})", self._left()]
        for trial in self._running():
            parts.append(f"seed {trial.seed}: {_state(trial.row)}")
            if trial.matrices is not None:
                parts.append(self._strip(trial).plain.replace(" ", ""))
        return "  ".join(part for part in parts if part)

    def __rich__(self) -> RenderableType:
        done, planned = self.progress()
        head = Table.grid(padding=(0, 2))
        head.add_row(
            Text(self.stage, style="bold"),
            ProgressBar(total=planned, completed=done, width=32),
            f"{done / planned:4.0%}",
            f"step {done} of {planned}",
            self._left(),
        )
        rows = Table.grid(padding=(0, 2))
        for trial in self._running():
            strip = self._strip(trial) if trial.matrices is not None else Text()
            rows.add_row(f"{trial.kind} {trial.seed}", f"step {trial.step}", _state(trial.row), strip)
        parts: list[RenderableType] = [head, rows]
        if self.estimate and self.stage in ("measuring", "searching"):
            parts.insert(1, Text(self.estimate, style="dim"))
        if self.power and self.stage == "retraining":
            parts.insert(1, Text(self.power, style="dim"))
        if self.warning:
            parts.append(Text(f"warning: {self.warning}", style="yellow"))
        return Group(*parts)

    def _left(self) -> str:
        """A parsimony pass that is still to come ends, as a rule, long before it has compared all that it may."""
        is_open = self.stage in ("measuring", "searching") and bool(self._most["search"] > self._n_steps)
        return _left(self.seconds_left(), at_most=is_open)

    def _report(self, trial: _Trial, row: Mapping[str, Any]) -> None:
        if not trial.row:
            trial.base = row["step"]
        trial.step = max(trial.step, row["step"])
        trial.row = dict(row)
        if row.get("probabilities"):
            trial.matrices = trial.row

    def _trial(self, data: Mapping[str, Any]) -> _Trial:
        name = data["trial"]
        if name not in self._trials:
            # A local run names its trials kind-sample-seed; the service says both beside an id.
            parts = name.split("-")
            kind = data.get("kind") or (parts[0] if parts[0] in ("search", "retrain") else "search")
            self._trials[name] = _Trial(kind, str(data.get("seed", parts[-1])))
        return self._trials[name]

    def _running(self) -> list[_Trial]:
        """Trials of the present stage that have reported, four at most."""
        kind = "search" if self.stage in ("queued", "measuring", "searching", "deriving") else "retrain"
        return [trial for trial in self._trials.values() if trial.kind == kind and trial.row][-4:]

    def _strip(self, trial: _Trial) -> Text:
        assert trial.matrices is not None
        return show.leading_strip(self._labels, self._looks, trial.matrices)


class Display:
    """Shows a picture while it changes: in place on a terminal, as a line now and then elsewhere."""

    def __init__(self, picture: Picture, console: Console) -> None:
        self._picture = picture
        self._console = console
        self._live = Live(picture, console=console, refresh_per_second=4) if console.is_terminal else None
        self._shown = ("", -PLAIN_S)  # stage and time of the last line

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start(refresh=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def tell(self, kind: str, data: Mapping[str, Any], at: float | None = None) -> None:
        """Take one event in and show what it changed."""
        self._picture.tell(kind, data, at)
        if self._live is not None:
            return
        now = time.monotonic()
        if kind == "warning":
            self._console.print(f"warning: {self._picture.warning}", markup=False, soft_wrap=True)
        elif kind in ("estimate", "power"):
            said = self._picture.estimate if kind == "estimate" else self._picture.power
            self._console.print(said, markup=False, soft_wrap=True)
        elif self._picture.stage != self._shown[0] or now - self._shown[1] >= PLAIN_S:
            self._shown = (self._picture.stage, now)
            self._console.print(self._picture.line(), markup=False, soft_wrap=True)


_LOSSES = {
    "train": "train_loss",
    "validation": "val_loss",
    "soft": "val_loss_soft",
    "sampled": "val_loss_sampled",
    "argmax": "val_loss_argmax",
}


def _state(row: Mapping[str, Any]) -> str:
    """Phase and losses of a report."""
    shown = [f"{name} {row[key]:.3f}" for name, key in _LOSSES.items() if row.get(key) is not None]
    losses = f"{' '.join(shown)} nats" if shown else ""
    return ", ".join(part for part in (row.get("phase"), losses) if part)


def _left(seconds: float | None, *, at_most: bool) -> str:
    if seconds is None:
        return ""
    how = "at most" if at_most else "about"
    if seconds < 90:
        return f"{how} {max(1, round(seconds))} s left"
    return f"{how} {round(seconds / 60)} min left"
