"""What the kill tests compare with, made once."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from nas.config.request import SearchRequest
from nas.cost import LatencyTable
from tests.crash.outcome import Outcome, request, undisturbed, with_table


@dataclass(frozen=True)
class Known:
    """A request on a given latency table, and what it comes to."""

    wanted: SearchRequest
    table: LatencyTable
    outcome: Outcome


@pytest.fixture(scope="session")
def known(tmp_path_factory: pytest.TempPathFactory) -> Known:
    wanted, table = with_table(request(n_steps=600))
    return Known(wanted, table, undisturbed(wanted, table, tmp_path_factory.mktemp("undisturbed")))
