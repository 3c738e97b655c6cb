"""What the functions of `db` raise and callers tell apart. Each message is one line, as in style.md."""


class DatabaseError(Exception):
    """Base of the errors below; `code` is the stable name that REST and the command line show."""

    code = "database-error"


class NotFound(DatabaseError):
    """No row has this id or name."""

    code = "not-found"


class WrongState(DatabaseError):
    """A change that the present state does not allow."""

    code = "wrong-state"


class NameTaken(WrongState):
    """A data set's name that stands for other content."""

    code = "name-taken"


class DatasetInUse(WrongState):
    """A data set that a queued or running search names."""

    code = "dataset-in-use"


class LeaseLost(DatabaseError):
    """The search belongs to somebody else now: the runner that sees this stops at once and writes nothing more."""

    code = "lease-lost"


class IdempotencyConflict(DatabaseError):
    """An idempotency key that was used for another request."""

    code = "idempotency-conflict"


class InvalidCursor(DatabaseError, ValueError):
    """A page cursor that this service did not hand out."""

    code = "invalid-cursor"
