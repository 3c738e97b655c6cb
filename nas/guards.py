"""What goes wrong in differentiable search, named in words while there is time to stop: pure functions on one report.

par-search.md section 8: collapse to identity, a mixture that works while its argmax does not, an alpha that does not
move, one candidate everywhere, and a search that has not learnt. Each sentence names the option that helps; the trial
tells each of them once. L slots, K candidates, N held-out windows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor

from nas.paired import standard_error
from nas.steps import StepRecord

_GAP = 0.25  # share of what the mixture has learnt that its argmax may lack
_STILL = 1e-6  # total variation per slot: below what float32 tells of a probability
_UNDECIDED = 0.5  # mean entropy over that of equal probabilities, above which alpha has settled nothing
_UNTRAINED = "the search has not learnt"
_TIME_IS_UP = ": max_minutes is "


def identity_share(probabilities: Tensor, identity: Tensor) -> float:
    """Expected share of slots with identity.

    Args:
        probabilities: (L, K), rows on the simplex.
        identity: (K,) bool.
    """
    return float(probabilities[:, identity].sum(dim=-1).mean())


def velocity(before: Tensor, after: Tensor) -> float:
    """Mean total variation per slot between two (L, K) matrices of probabilities, 0 to 1."""
    return float((after - before).abs().sum(dim=-1).mean() / 2)


def tell_once(told: list[str], found: Mapping[str, str | None]) -> list[str]:
    """The sentences whose names are not among those told, which then are."""
    new = [name for name, sentence in found.items() if sentence is not None and name not in told]
    told += new
    return [str(found[name]) for name in new]


def too_many_identities(path: Sequence[int], identity: Tensor, most: float) -> str | None:
    """Whether more slots lead with identity than `max_identity` allows."""
    share = float(identity[list(path)].float().mean())
    if share <= most:
        return None
    return (
        f"{share:.0%} of the slots lead with identity, above max_identity {most:.0%}: a larger method.warmup_share or "
        "method.uniform_share, or method.candidate_dropout, trains blocks before they are judged"
    )


def identity_collapse(
    n_identities: int, path_nats: Tensor, without_nats: Tensor, least: float, *, pressed: bool = False
) -> str | None:
    """Whether a path that leads with identities is worse than itself without them.

    Args:
        n_identities: slots of the path that have one.
        path_nats: (N,) held-out losses of the path.
        without_nats: (N,) of the path with the most probable other candidate in those slots (`without_identity`).
        least: nats per token below which a difference is none.
        pressed: whether a budget may have pressed on alpha.
    """
    difference = path_nats - without_nats
    nats, error = float(difference.mean()), standard_error(difference, neighbours=False)
    if nats <= max(2 * error, least):
        return None
    where, helps = "", "trains blocks before they are judged"
    if pressed:
        where = " where the budget has room for them"
        helps += ", and method.pressure dual, or a smaller method.cost_weight, presses less"
    return (
        f"collapse to identity: {n_identities} slots lead with it, and with their next best candidates instead{where} "
        f"the path's loss is {nats:.4f} nats lower (standard error {error:.4f}); a larger method.warmup_share or "
        f"method.uniform_share, or method.candidate_dropout, {helps}"
    )


def discretisation_gap(began: float, soft: float, hard: float) -> str | None:
    """Whether the mixture has learnt what its most probable path has not.

    Args:
        began: validation loss at step 0, nats per token.
        soft: of the mixture now.
        hard: of the path of the largest alphas now.
    """
    learnt = began - soft
    if learnt <= 0.05 * began or hard - soft <= _GAP * learnt:
        return None
    return (
        f"discretisation gap: the mixture's loss is {soft:.4f} and its most probable path's {hard:.4f} nats; "
        "method.alpha_estimator straight_through, a smaller method.tau_end or some method.entropy_weight closes it"
    )


def alpha_stands_still(moved: float, n_updates: int, disorder: float) -> str | None:
    """Whether alpha's updates change nothing.

    Args:
        moved: velocity since the last report.
        n_updates: alpha updates since then.
        disorder: mean entropy as a share of that of equal probabilities; alpha that has settled may stand still.
    """
    if n_updates < 1 or moved > _STILL or disorder < _UNDECIDED:
        return None
    return (
        f"alpha does not move: {n_updates} updates changed its probabilities by {moved:.1e}; a larger method.alpha_lr "
        "helps where gradients reach it, method.alpha_estimator straight_through where they do not"
    )


def beyond_chance(probabilities: Tensor, null_gaps: Tensor) -> Tensor:
    """(L,) bool: whether a slot's leader leads by more than alpha does by chance."""
    if probabilities.shape[-1] < 2:
        return torch.zeros(len(probabilities), dtype=torch.bool)
    top = probabilities.topk(2, dim=-1).values.log()  # minus infinity where only one is allowed
    return top[:, 0] - top[:, 1] > null_gaps


def one_everywhere(
    path: Sequence[int], probabilities: Tensor, beyond: Tensor, allowed: Tensor, labels: Sequence[str], identity: Tensor
) -> str | None:
    """Whether one candidate has won every one of three slots or more in which there was a choice.

    Args:
        path: (L,) leading candidates.
        probabilities: (L, K).
        beyond: (L,) whether each leads by more than chance.
        allowed: (L, K) bool.
        labels: (K,).
        identity: (K,) bool; collapse to identity is another guard's.
    """
    free = (allowed.sum(dim=-1) > 1).nonzero()[:, 0].tolist()
    winners = {path[slot] for slot in free}
    if len(free) < 3 or len(winners) > 1 or not bool(beyond[free].all()):
        return None
    (winner,) = winners
    if identity[winner] or float(probabilities[free, winner].min()) <= 0.5:
        return None
    return (
        f"one candidate everywhere: {labels[winner]!r} leads in all {len(free)} slots with more than half of the "
        "probability; unless one block is what the task needs, a larger method.uniform_share lets the others return"
    )


def has_not_learnt(began: Tensor, ended: Tensor) -> str | None:
    """Whether a search's path is no better than one of untrained weights, by more than two standard errors.

    Args:
        began: (N,) held-out losses of paths at step 0.
        ended: (N,) of the path that the search ends with.
    """
    difference = began - ended
    nats, error = float(difference.mean()), standard_error(difference, neighbours=False)
    if nats > 2 * error:
        return None
    return (
        f"{_UNTRAINED}: its path's loss is {float(ended.mean()):.4f} nats and was {float(began.mean()):.4f} at step 0, "
        f"a fall of {nats:.4f} with a standard error of {error:.4f}; more method.n_steps or another method.lr may help"
    )


def does_not_fall(began: Tensor, now: Tensor, step: int, end: int) -> str | None:
    """Whether the loss of drawn paths has not fallen by more than two standard errors since step 0, told early.

    Args:
        began: (N,) held-out losses of paths at step 0.
        now: (N,) of paths drawn now.
        step: weight updates done.
        end: weight updates of the search.
    """
    difference = began - now
    nats, error = float(difference.mean()), standard_error(difference, neighbours=False)
    if nats > 2 * error:
        return None
    return (
        f"the loss does not fall: after {step} of {end} weight updates that of drawn paths is {float(now.mean()):.4f} "
        f"nats and was {float(began.mean()):.4f} at step 0, a fall of {nats:.4f} with a standard error of {error:.4f}; "
        "another method.lr may help, or more method.n_steps"
    )


def untrained(last: StepRecord) -> str | None:
    """Why nothing should be derived of a search that ended with this record; None where it has learnt."""
    return last.not_learnt or _said(last, _UNTRAINED)


def time_is_up(ended: str, max_minutes: float) -> str:
    """What is said of a trial that its wall time ended; `ended` says where that was."""
    return f"{ended}{_TIME_IS_UP}{max_minutes:g}"


def cut_short(last: StepRecord) -> str | None:
    """How far a trial came that its wall time ended with this record; None where it came to its end."""
    return last.cut_short or _said(last, _TIME_IS_UP)


def _said(last: StepRecord, words: str) -> str | None:
    """The line of a record's warning that has these words: all that records of before the two fields tell."""
    return next((line for line in (last.warning or "").split("\n") if words in line), None)


def leads(probabilities: Tensor, null_gaps: Tensor, *, pressed: bool) -> Tensor:
    """(L,) bool: whether a slot's leader leads in earnest. What a budget presses for leads in the null copies too:
    where one may have pressed, more than half of the probability is enough."""
    beyond = beyond_chance(probabilities, null_gaps)
    return beyond | (probabilities.amax(dim=-1) > 0.5) if pressed else beyond


def without_identity(
    path: Sequence[int],
    probabilities: Tensor,
    allowed: Tensor,
    identity: Tensor,
    fits: Callable[[Sequence[int]], bool] = lambda _: True,
) -> list[int]:
    """The path with the most probable other candidate in each slot where it has identity and another is allowed.

    Args:
        path: (L,).
        probabilities: (L, K).
        allowed: (L, K) bool.
        identity: (K,) bool.
        fits: whether a path is within the budget; what would not be, slot by slot from the most probable other
            candidate on, stays identity.
    """
    others = probabilities.masked_fill(identity | ~allowed, -torch.inf)
    found = list(path)
    for slot in others.amax(dim=-1).argsort(descending=True, stable=True).tolist():
        choice = int(others[slot].argmax())
        edited = [*found[:slot], choice, *found[slot + 1 :]]
        if identity[found[slot]] and bool(others[slot, choice] > -torch.inf) and fits(edited):
            found = edited
    return found
