"""Settings of all tests: one thread, no deadline for hypothesis, since a busy machine is not a failure, and one Ray."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

os.environ.setdefault("OMP_NUM_THREADS", "1")

import hypothesis
import pytest

from tests.postgresql import Server
from workers import cluster
from workers.cluster import Cluster
from workers.settings import Settings

os.environ.update(cluster.client_environment(None))  # before anything imports ray, which reads it then

# A shell starts background work with SIGINT ignored, and children inherit that: Ctrl-C could not be tested there.
signal.signal(signal.SIGINT, signal.default_int_handler)

hypothesis.settings.register_profile("blockwright", deadline=None, max_examples=50, derandomize=True)
hypothesis.settings.load_profile("blockwright")


@pytest.hookimpl(tryfirst=True)  # before those groups are read
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All that use Ray run in one of the processes that share the tests: there is one cluster for all of them."""
    for item in items:
        if item.get_closest_marker("ray"):
            item.add_marker(pytest.mark.xdist_group("ray"))


@pytest.fixture(scope="session")
def ray_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """The one Ray of the test session: 2 CPUs and 2 GPUs that are only declared. Its users are marked `ray`.

    A service under test joins it by BLOCKWRIGHT_RAY_ADDRESS and BLOCKWRIGHT_RAY_TOKEN_FILE.
    """
    settings = Settings(data_dir=tmp_path_factory.mktemp("ray"), cpus=2, gpus=2)
    started = cluster.start(settings)
    yield started
    cluster.stop(started, settings.data_dir)


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Server]:
    """The one PostgreSQL of the test session; a test takes a database of its own from it."""
    with Server() as server:
        yield server
