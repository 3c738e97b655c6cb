"""Memory that ran out, in words that a person can act on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from nas.errors import SearchFailed

ADVICE = "a smaller batch_size, train_length, d_model or n_slots needs less"
# torch says so with a plain RuntimeError where an allocation on the processor fails.
_SAID_BY_TORCH = ("can't allocate memory", "not enough memory", "out of memory")


@contextmanager
def explained() -> Iterator[None]:
    """Turn an allocation that failed inside into a SearchFailed of one line.

    Raises:
        SearchFailed: memory ran out.
    """
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        said = " ".join(str(error).split())
        if not isinstance(error, MemoryError) and not any(words in said.lower() for words in _SAID_BY_TORCH):
            raise
        if isinstance(error, SearchFailed):
            raise
        details = f" ({said[:200]})" if said else ""
        raise SearchFailed(f"memory ran out; {ADVICE}{details}") from error
