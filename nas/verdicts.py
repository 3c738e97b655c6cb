"""What may be said of a statement: not supported, suggested or supported, each with its reason in one sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from nas.confirmation import Confirmation
from nas.statement import Statement, Verdict

LEVEL = 0.05  # of corrected p values: in at most this share of reports on nothing, anything is said to be found
NEEDED_SEEDS = 5  # below which nothing is better than suggested


def judge(statements: Sequence[Statement], found_at: Mapping[str, Any] | None = None) -> list[Statement]:
    """The statements with a verdict and its reason, before any retraining.

    Args:
        statements: as `nas.statements.state` makes them, all of a report.
        found_at: where they were found, to be kept with each.
    """
    return [_judged(replace(each, found_at=found_at), None) for each in statements]


def confirmed(statement: Statement, confirmation: Confirmation) -> Statement:
    """The statement with the verdict that it has once its layout was retrained."""
    return _judged(replace(statement, confirmation=confirmation.to_json()), confirmation)


def worth_confirming(statement: Statement) -> bool:
    """Whether retraining could make the statement supported."""
    return statement.n_seeds >= NEEDED_SEEDS and statement.verdict != "not supported"


def _judged(statement: Statement, confirmation: Confirmation | None) -> Statement:
    verdict, reason = _verdict(statement, confirmation)
    return replace(statement, verdict=verdict, reason=reason)


def _verdict(statement: Statement, confirmation: Confirmation | None) -> tuple[Verdict, str]:
    n = statement.n_seeds
    seeds = "1 seed" if n == 1 else f"{n} seeds"
    found = _ratio_evidence(statement) if statement.kind == "ratio" else _test_evidence(statement)
    if not found[0]:
        return "not supported", found[1]
    evidence = found[1]
    if n < NEEDED_SEEDS:
        return "suggested", f"{evidence}, but {seeds} alone cannot support a rule; it takes {NEEDED_SEEDS} at least"
    if confirmation is None:
        return "suggested", f"{evidence}, and its layout has not been retrained against others of the same cost"
    return _retrained(statement, evidence, confirmation)


def _test_evidence(statement: Statement) -> tuple[bool, str]:
    """Whether the test says anything, and what it says."""
    assert statement.p_corrected is not None
    chance = f"{statement.p_corrected:.2g} after correction for {statement.n_tests} tests"
    if statement.p_corrected > LEVEL:
        seeds = "one seed" if statement.n_seeds == 1 else f"{statement.n_seeds} seeds"
        return False, f"blocks placed by chance would look like this with p = {chance}, above {LEVEL} ({seeds})"
    return True, f"blocks placed by chance would hardly look like this (p = {chance})"


def _ratio_evidence(statement: Statement) -> tuple[bool, str]:
    """A ratio is an estimate: it says something where its interval has two ends."""
    if statement.n_seeds < 2:
        return False, "one seed alone has no interval"
    if statement.high is None:
        return False, f"the seeds differ too much: the 95% interval goes from {statement.low:.1f} : 1 to no such block"
    return True, f"the 95% interval over {statement.n_seeds} seeds is {statement.low:.1f} to {statement.high:.1f} : 1"


def _retrained(statement: Statement, evidence: str, confirmation: Confirmation) -> tuple[Verdict, str]:
    """Placements are confirmed by beating random ones; every rule, by doing for the parent."""
    unit, seeds = confirmation.unit, f"{len(confirmation.seeds)} fresh seeds"
    against = confirmation.against_parent
    random = confirmation.random
    if statement.kind != "ratio" and random is None:
        return "suggested", f"{evidence}, but its blocks have too few other placements to hold its layout against"
    if statement.kind != "ratio" and confirmation.placement != "better":
        assert random is not None
        told = f"{random.low:+.3f} to {random.high:+.3f} {unit} against random placements of the same blocks on {seeds}"
        if confirmation.placement == "worse":
            return "not supported", f"{evidence}, but its layout, retrained, is worse: {told}"
        return "suggested", f"{evidence}, but retrained its layout cannot be told from chance: {told}"
    if confirmation.parent is not None and against != "no worse":
        told = f"{confirmation.parent.low:+.3f} to {confirmation.parent.high:+.3f} {unit} on {seeds}"
        if against == "worse":
            return "not supported", f"{evidence}, but its layout, retrained, is worse than the parent: {told}"
        return "suggested", f"{evidence}, but retrained its layout may be worse than the parent: {told}"
    if statement.kind == "ratio":
        if confirmation.parent is None:
            return "suggested", f"{evidence}, and there is no interleaved parent to hold its layout against"
        return "supported", (
            f"{evidence}, and its layout, retrained on {seeds}, is no worse than the parent by more than "
            f"{confirmation.margin:g} {unit}"
        )
    assert random is not None
    told = f"is better than random placements of the same blocks by {-random.high:.3f} to {-random.low:.3f} {unit}"
    if confirmation.parent is not None:
        told += f" and no worse than the parent by more than {confirmation.margin:g}"
    return "supported", f"{evidence}, and its layout, retrained on {seeds}, {told}"
