"""Memory that ran out, in words that a person can act on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psutil

from nas.config import SearchSpace
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


def check_room(space: SearchSpace, where: str) -> None:
    """Refuse a supernet that is sure not to fit, before the kernel looks for a process to end.

    Args:
        space: of the supernet.
        where: it is trained, cpu or cuda; it is made in the machine's own memory in any case.

    Raises:
        SearchFailed: its weights, on a CPU with gradients and AdamW's two moments, are more than what is free here.
    """
    parameters = space.n_slots * sum(space.parameters().values())
    needed = 4 * parameters * (4 if where == "cpu" else 1)
    free = psutil.virtual_memory().available
    if needed > free:
        raise SearchFailed(
            f"the supernet's {parameters / 1e6:,.1f} million parameters need {needed / 1e9:,.1f} GB of memory, and "
            f"{free / 1e9:,.1f} GB are free; a smaller max_len, d_model or n_slots needs less"
        )
