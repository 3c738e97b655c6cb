"""The figures of a finished result in a terminal: what it was compared with, and how sure that is."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from api.foreseen import sentence
from api.looks import Looks
from api.plain import plain
from nas.report.ratio_range import ratio_range
from nas.rules import of_today


def decimals(*values: float) -> int:
    """Three, or as many more, up to six, as the largest of the values needs to show two digits that are not 0."""
    largest = max(map(abs, values))
    return 3 if not largest else max(3, min(6, 1 - math.floor(math.log10(largest))))


def figures(found: Mapping[str, Any], drawn: Looks) -> Table:
    """A line for each figure of a finished result.json; see `api.show.result`."""
    table = Table(box=None, show_header=False, padding=(0, 1))
    table.add_column()
    table.add_column(overflow="fold")
    quality, latency, export = found["quality"], found["latency"], found["export"]
    compared, parent = found.get("comparisons", ()), parent_name(found)  # results of older versions have none
    letters = [look.letter for look in drawn.values()]
    if len(set(letters)) < len(letters):  # several candidates of one block, which the strip does not tell apart
        table.add_row("slots", Text(", ".join(found["derived"]["slots"])))
    table.add_row("rule", Text(of_today(found["rule"])["statement"]))
    for said in _statements(found.get("rules", ())):
        table.add_row("", Text(said))
    if quality is not None:
        counted = "examples" if str(found["search"].get("objective")).endswith("_classification") else "windows"
        digits = decimals(quality["difference"], quality["low"], quality["high"])
        table.add_row(
            "test quality",
            f"{quality['derived_bits_per_byte']:.3f} {quality.get('unit', 'bits per byte')}, "
            f"parent {quality['parent_bits_per_byte']:.3f}: "
            f"{quality['difference']:+.{digits}f} ({quality['low']:+.{digits}f} to {quality['high']:+.{digits}f}, 95%; "
            f"{quality['n_windows']} {counted}, {_seeds(quality['n_seeds'])})",
        )
        verdict = quality["verdict"] + _VERDICTS[quality["verdict"]]
        of_parent = next((each for each in compared if each["second"] == parent), {"detectable": None})
        table.add_row("verdict", Text(verdict + _unseen(quality["verdict"], of_parent["detectable"]), style="bold"))
    if found.get("advice") is not None:  # results of older versions have none
        table.add_row("so", Text(plain(found["advice"]["sentence"]), style="bold"))
    for each in compared:
        if each["second"] != parent:  # which is told above
            table.add_row(f"against {each['second']}", _compared(each))
    for each in found.get("power", ()):
        table.add_row("told before", Text(plain(each["message"])))
    for metric in found.get("metrics", ()):  # results of older versions have none
        if quality is None or metric["name"] != quality["unit"]:
            table.add_row(metric["name"], _metric(metric))
    if found.get("lengths"):
        table.add_row("by length", Text("; ".join(map(_at_length, found["lengths"]))))
    if latency is not None:
        table.add_row("latency", _latency(latency))
    for each in found.get("latencies", ())[1:]:
        serve = each["serve"]
        table.add_row(f"  {serve['mode']}, {serve['batch']} x {serve['query_length']} tokens", _latency(each))
    for each in found["derived"].get("bounds", ()):
        table.add_row(f"budget, {each['name'].replace('_', ' ')}", _bound(each))
    for each in found.get("samples", ()):
        table.add_row(f"sample {each['sample']}", Text(_sample(each)))
    if found.get("winner") is not None:
        table.add_row("best sample", Text(found["winner"]["sentence"], style="bold"))
    for each in found.get("cut_short", ()):
        table.add_row("time was up", Text(each, style="bold"))
    table.add_row(
        "export",
        f"{export['file']}, logits equal to the trained model's within {export['logits_max_abs_difference']:.1e}",
    )
    if found.get("estimate") is not None:
        table.add_row("a search trial", Text(sentence(found["estimate"])))
    table.add_row("seconds", ", ".join(f"{name} {value:.0f}" for name, value in found["seconds"].items()))
    return table


def _compared(each: Mapping[str, Any]) -> str:
    """The derived layout against another: the difference, what it comes to, and what could not be seen."""
    digits = decimals(each["difference"], each["low"], each["high"])
    line = (
        f"{each['difference']:+.{digits}f} {each['unit']} ({each['low']:+.{digits}f} to {each['high']:+.{digits}f}, "
        f"95%; {_seeds(each['n_seeds'])}): {each['verdict']}{_unseen(each['verdict'], each['detectable'])}"
    )
    if each["latency"] is not None:
        ratio = each["latency"]
        line += f"; latency {ratio['ratio']:.3f} of its ({ratio['low']:.3f} to {ratio['high']:.3f})"
    return line


def parent_name(found: Mapping[str, Any]) -> str | None:
    """What the parent is called among the retrained layouts."""
    if found["parent"] is None:
        return None
    return "interleaved" if found["parent"]["role"] == "parent" else str(found["parent"]["role"])


def _unseen(verdict: str, detectable: float | None) -> str:
    """What a comparison that cannot tell could have seen."""
    if verdict != "cannot tell" or detectable is None:
        return ""
    return f"; {detectable:.2g} or more would be seen 8 times in 10"


def _seeds(number: int) -> str:
    """One seed says nothing of others: its interval is of the test windows."""
    return "1 seed, so of the windows alone" if number == 1 else f"{number} seeds"


def _at_length(found: Mapping[str, Any]) -> str:
    """The test part in windows of one length, derived and parent; why where one has no figure."""
    told = []
    for name in ("derived", "parent"):
        score = found[name]
        if score is not None:
            figure = f"{score['bits']:.3f}" if score["why"] is None else f"none: {score['why']}"
            told.append(figure if name == "derived" else f"parent {figure}")
    verdict = "" if found["difference"] is None else f" ({found['difference']['verdict']})"
    return f"{found['length']} tokens {', '.join(told)}{verdict}"


def _latency(latency: Mapping[str, Any]) -> str:
    return (
        f"{latency['ratio']:.3f} of the parent's ({latency['low']:.3f} to {latency['high']:.3f}; repeatability "
        f"{latency['repeatability']:.3f}): {latency['derived_ms']:.2f} ms against {latency['parent_ms']:.2f} ms"
    )


def _bound(each: Mapping[str, Any]) -> str:
    """What was allowed and what the result takes."""
    line = f"{each['verdict']}: at most {each['target']:.5g} {each['unit']}; predicted {each['predicted']:.5g}"
    if each["expected"] is not None:
        line += f", {each['expected']:.5g} expected when the search ended"
    if each["measured"] is not None:
        line += f", measured {each['measured']:.5g} ({each['low']:.5g} to {each['high']:.5g}, 95%)"
    if each.get("reason") is not None:  # older results have none
        line += f"; {plain(each['reason'])}"
    return line


def _sample(each: Mapping[str, Any]) -> str:
    values = ", ".join(f"{pointer.rpartition('/')[2]} {value:.4g}" for pointer, value in each["values"].items())
    if each["loss"] is None:
        return f"{values}: {each['state']}, {plain(each['reason'] or '')}"
    spread = "" if each["sd"] is None else f" (sd {each['sd']:.4f} over {_count(len(each['losses']), 'seed')})"
    ended = "" if each["state"] == "succeeded" else f"; {plain(each['reason'] or each['state'])}"
    cost = "" if each["cost"] is None else f", costs {each['cost']:.5g}"
    return f"{values}: {each['loss']:.4f} nats per token{spread}{cost}{ended}"


def _metric(metric: Mapping[str, Any]) -> str:
    """The value with what it is to be held against."""
    values = {name: metric.get(name) for name in ("derived", "parent", "majority", "chance", "best")}
    told = {name: f"{name} {value:.4g}" for name, value in values.items() if value is not None}
    difference, low, high = (metric.get(name) for name in ("difference", "low", "high"))  # older results have none
    if "parent" in told and difference is not None and low is not None and high is not None:
        digits = decimals(difference, low, high)
        ends = f"95%: {low:+.{digits}f} to {high:+.{digits}f} over seeds"
        told["parent"] += f", derived minus parent {difference:+.{digits}f} ({ends})"
    return f"{', '.join(told.values()) or 'none'} ({metric['unit']})"


def _count(number: int, name: str) -> str:
    return f"{number} {name}" if number == 1 else f"{number} {name}s"


_VERDICTS = {
    "better": " than the parent on test",
    "worse": " than the parent on test",
    "cannot tell": ": the interval holds both better and worse",
}


def over_seeds(statement: Mapping[str, Any]) -> str:
    """What a ratio goes from and to over the seeds, to be put behind its statement; "" without that."""
    found = ratio_range(statement)
    return "" if found is None else f", {found} over the seeds"


def _statements(rules: Sequence[Mapping[str, Any]]) -> list[str]:
    """A line for each statement that is suggested or supported, and one that counts the others."""
    kept = [each for each in rules if each["verdict"] != "not supported"]
    told = [f"{each['verdict']}: {each['statement']}{over_seeds(each)}" for each in kept]
    n_others = len(rules) - len(told)
    return told + ([f"not supported: {n_others} of {_count(len(rules), 'statement')}"] if n_others else [])
