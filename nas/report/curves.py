"""How the trials went: losses over weight updates, temperature and expected cost, a line for each seed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from nas.report import plot, words
from nas.report.data import ReportData, Step, Trial, evenly
from nas.report.document import Line, Paragraph, Part, Picture, Ref, Section, Table
from nas.report.layouts import trained
from nas.report.seeds import sample_of

_POINTS = 24  # of a line, and columns of its table
_LINES = 60

Figure = Callable[[Step], float | None]
_SEARCHED: tuple[tuple[str, str, str, Figure], ...] = (
    ("validation loss of the leading path", "validation", "nats per token", lambda step: step.val_loss_argmax),
    ("validation loss of the mixture", "mixture", "nats per token", lambda step: step.val_loss_soft),
    ("training loss", "training", "nats per token", lambda step: step.train_loss),
    ("temperature tau", "tau", "tau", lambda step: step.tau),
    ("expected cost under softmax(alpha)", "expected", "milliseconds", lambda step: step.expected_ms),
)
_RETRAINED: tuple[tuple[str, str, str, Figure], ...] = (
    ("validation loss of the retrainings", "retrained", "nats per token", lambda step: step.val_loss),
)


def section(data: ReportData) -> Section | None:
    """None before the first report."""
    sample = sample_of(data)
    searches = [each for each in data.trials if each.kind == "search" and each.sample == sample]
    retrained = [each for each in data.trials if each.kind == "retrain"]
    names = _names(data)
    parts: list[Part] = []
    left_out = sum(each.kind == "search" for each in data.trials) - len(searches)
    if left_out:
        parts.append(Paragraph(f"{words.count(left_out, 'search trial')} of other samples are not drawn."))
    for trials, drawings in ((searches, _SEARCHED), (retrained, _RETRAINED)):
        if len(trials) > _LINES:
            parts.append(Paragraph(f"The first {_LINES} of {len(trials)} {trials[0].kind} trials are drawn."))
        for title, name, unit, figure in drawings:
            picture = _picture(trials[:_LINES], title, name, unit, figure, names)
            if picture is not None:
                parts.append(picture)
    if not any(isinstance(part, Picture) for part in parts):
        return None
    path = f"/api/v1/searches/{data.search_id}/reports"
    return Section("curves", "Curves", tuple(parts), (path,))


def _names(data: ReportData) -> dict[str, str]:
    """Of the layouts that retrainings are of, by trial."""
    found = {ref.id: each.name for each in trained(data) for ref in each.origin if ref.kind == "trial"}
    roles = {each.id: each.role for each in data.architectures}
    for each in data.trials:
        if each.architecture in roles:
            found.setdefault(each.id, roles[each.architecture])
    return found


def _picture(
    trials: Sequence[Trial], title: str, name: str, unit: str, figure: Figure, names: dict[str, str]
) -> Picture | None:
    told = {each.id: {step.step: figure(step) for step in each.steps} for each in trials}
    known = {each: {at: value for at, value in steps.items() if value is not None} for each, steps in told.items()}
    shown = evenly(sorted({at for steps in known.values() for at in steps}), _POINTS)
    if not shown:
        return None
    groups = list(dict.fromkeys(_group(each, names) for each in trials))
    curves, rows = [], []
    named: set[str] = set()
    for each in trials:
        points = [(float(at), known[each.id][at]) for at in shown if at in known[each.id]]
        if not points:
            continue
        group = _group(each, names)
        curves.append(plot.Curve("" if group in named else group, points, plot.line_class(groups.index(group))))
        named.add(group)
        row: tuple[Line, ...] = (
            group if each.kind == "search" else f"{group}, seed {each.seed}",
            [Ref("trial", each.id)],
            *(words.fixed(known[each.id].get(at), 4) for at in shown),
        )
        rows.append(row)
    of = "seed" if trials[0].kind == "search" else "layout"
    meaning = f"{unit} over weight updates, {words.count(len(curves), 'trial')}; each {of} has one colour."
    drawing = plot.lines(f"curve-{name}", title.capitalize(), meaning, curves, "weight updates", unit)
    head = ("trial", "id", *(str(at) for at in shown))
    table = Table(f"{title}, {unit}, by weight updates", head, tuple(rows), frozenset(range(2, len(head))), folded=True)
    return Picture(title.capitalize(), meaning, drawing, (table,))


def _group(trial: Trial, names: dict[str, str]) -> str:
    """What shares a colour: a seed of the search, or a layout of the retrainings."""
    return f"seed {trial.seed}" if trial.kind == "search" else names.get(trial.id, f"layout {trial.sample}")
