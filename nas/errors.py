"""The few exceptions that callers tell apart. Each message is one line: what, the value, what would be right."""

from __future__ import annotations

from dataclasses import dataclass


class BlockwrightError(Exception):
    """Base of every error that a user can act on; `code` is the stable name that REST and the CLI show."""

    code = "error"


class InvalidInput(BlockwrightError, ValueError):
    """A request, an option or a file that cannot be used as it is."""

    code = "invalid-input"


class DataError(InvalidInput):
    """A text that cannot be trained on: empty, binary, or too short."""

    code = "invalid-data"


@dataclass(frozen=True)
class Conflict:
    """One constraint of those that cannot be met together.

    Args:
        pointer: JSON pointer to it in the constraints.
        words: it, for people.
        nearest: the value of it, others as they are, that can be met and is nearest to the one asked for; None: none
            can, or the constraint has no value.
        unit: of the value.
        upper: whether larger values are easier to meet.
        alone: whether the value can be met beside all other constraints, and not only those of the conflict.
    """

    pointer: str
    words: str
    nearest: float | None
    unit: str
    upper: bool
    alone: bool


class Infeasible(BlockwrightError, ValueError):
    """Constraints that no architecture of the space meets; where it was looked for, with the smallest set of them."""

    code = "infeasible"

    def __init__(self, message: str, conflict: tuple[Conflict, ...] = ()) -> None:
        super().__init__(message)
        self.conflict = conflict


class SearchFailed(BlockwrightError, RuntimeError):
    """A search that ran but has no answer: nothing moved beyond noise, or training diverged."""

    code = "search-failed"


class StateError(BlockwrightError, RuntimeError):
    """A change that the present state of a search does not allow."""

    code = "wrong-state"


class ExportFailed(BlockwrightError, RuntimeError):
    """An exported model that does not run alone, or does not answer as the trained one does."""

    code = "export-failed"
