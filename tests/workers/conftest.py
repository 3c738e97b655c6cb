"""A driver of the session's Ray in this very process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from workers import cluster
from workers.cluster import Cluster


@pytest.fixture
def ray_driver(ray_cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    for name, value in cluster.client_environment(ray_cluster.token_file).items():
        monkeypatch.setenv(name, value)
    import ray

    from workers.tuning import connect

    connect(ray_cluster.address)
    yield ray_cluster
    ray.shutdown()
