from __future__ import annotations

import pytest
from sqlalchemy import Engine, update

from db import datasets, models
from db.engine import transaction
from db.errors import NotFound


def test_name_means_its_newest_text_and_a_fingerprint_its_own(engine: Engine) -> None:
    with transaction(engine) as connection:
        old = datasets.register(connection, name="mine", fingerprint="a", n_bytes=1, path="datasets/a.txt")
        assert datasets.register(connection, name="mine", fingerprint="a", n_bytes=1, path="datasets/a.txt") == old
        connection.execute(update(models.datasets).values(created_at=models.datasets.c.created_at - 60))
        new = datasets.register(connection, name="mine", fingerprint="b", n_bytes=2, path="datasets/b.txt")
        built_in = datasets.register(connection, name="built-in", fingerprint="c", n_bytes=3)
        assert datasets.get(connection, "mine") == new
        assert datasets.get(connection, "mine", "a").path == "datasets/a.txt"
        assert datasets.list(connection) == (built_in, new)


def test_unknown_data_set_is_not_found(engine: Engine) -> None:
    with transaction(engine) as connection:
        with pytest.raises(NotFound, match=r"no data set 'mine'$"):
            datasets.get(connection, "mine")
        with pytest.raises(NotFound, match="no data set 'mine' with fingerprint a"):
            datasets.get(connection, "mine", "a")
        with pytest.raises(ValueError, match="must be relative to the data folder"):
            datasets.register(connection, name="mine", fingerprint="a", n_bytes=1, path="/home/me/text")
