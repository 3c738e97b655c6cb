"""The few exceptions that callers tell apart. Each message is one line: what, the value, what would be right."""


class BlockwrightError(Exception):
    """Base of every error that a user can act on; `code` is the stable name that REST and the CLI show."""

    code = "error"


class InvalidInput(BlockwrightError, ValueError):
    """A request, an option or a file that cannot be used as it is."""

    code = "invalid-input"


class DataError(InvalidInput):
    """A text that cannot be trained on: empty, binary, or too short."""

    code = "invalid-data"


class Infeasible(BlockwrightError, ValueError):
    """Constraints that no architecture of the space meets."""

    code = "infeasible"


class SearchFailed(BlockwrightError, RuntimeError):
    """A search that ran but has no answer: nothing moved beyond noise, or training diverged."""

    code = "search-failed"


class StateError(BlockwrightError, RuntimeError):
    """A change that the present state of a search does not allow."""

    code = "wrong-state"


class ExportFailed(BlockwrightError, RuntimeError):
    """An exported model that does not run alone, or does not answer as the trained one does."""

    code = "export-failed"
