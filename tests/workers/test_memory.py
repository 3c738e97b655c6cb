"""Memory that would run out is told before it does."""

from __future__ import annotations

from types import SimpleNamespace

import psutil
import pytest

from nas.config import SearchSpace
from nas.errors import SearchFailed
from workers.memory import check_room

SPACE = SearchSpace.model_validate({"n_slots": 2, "max_len": 4096, "candidates": ["ffn", "sgu"]})
PARAMETERS = 2 * sum(SPACE.parameters().values())  # N x N weights: 2 * 4096^2 and some


def test_a_supernet_that_does_not_fit_is_refused_with_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    needed = 16 * PARAMETERS
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=needed - 1))
    message = (
        r"^the supernet's 33\.7 million parameters need 0\.5 GB of memory, and 0\.5 GB are free; a smaller "
        r"max_len, d_model or n_slots needs less$"
    )
    with pytest.raises(SearchFailed, match=message):
        check_room(SPACE, "cpu")
    check_room(SPACE, "cuda")  # gradients and moments lie there
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=needed))
    check_room(SPACE, "cpu")
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=needed // 4 - 1))
    with pytest.raises(SearchFailed, match=r"need 0\.1 GB of memory"):
        check_room(SPACE, "cuda")
