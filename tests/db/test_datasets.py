from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, update

from db import datasets, models, searches
from db.engine import reading, transaction
from db.errors import DatabaseError, DatasetInUse, NameTaken, NotFound
from tests.db.rows import claim, create, queued


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


def test_a_row_without_a_card_gets_one_and_keeps_it(engine: Engine) -> None:
    first, other = {"n_rows": 1}, {"n_rows": 2}
    with transaction(engine) as connection:
        assert add(connection).dataset.card is None
        assert add(connection, card=first).dataset.card == first
        assert add(connection, card=other).dataset.card == first
        assert add(connection).dataset.card == first
        assert datasets.register(connection, name="built-in", fingerprint="c", n_bytes=3, card=other).card == other
        assert [each.card for each in datasets.list(connection)] == [other, first]


def test_unknown_data_set_is_not_found(engine: Engine) -> None:
    with transaction(engine) as connection:
        with pytest.raises(NotFound, match=r"no dataset 'mine'$"):
            datasets.get(connection, "mine")
        with pytest.raises(NotFound, match="no dataset 'mine' with fingerprint a"):
            datasets.get(connection, "mine", "a")
        with pytest.raises(ValueError, match="must be relative to the data folder"):
            datasets.register(connection, name="mine", fingerprint="a", n_bytes=1, path="/home/me/text")


def add(connection: Connection, name: str = "mine", fingerprint: str = "a", **more: Any) -> datasets.Added:
    return datasets.add(
        connection, name=name, fingerprint=fingerprint, n_bytes=1, path=f"datasets/{fingerprint}.txt", **more
    )


def test_uploaded_name_means_one_text(engine: Engine) -> None:
    placed: list[str] = []
    with transaction(engine) as connection:
        first = add(connection, put_in_place=lambda: placed.append("first"))
        again = add(connection, put_in_place=lambda: placed.append("again"))
        assert (first.is_new, again.is_new) == (True, False)
        assert first.dataset == again.dataset == datasets.get(connection, "mine")
        taken = r"dataset 'mine' holds other content \(sha256 a\); take another name, or remove it first"
        with pytest.raises(NameTaken, match=taken):
            add(connection, fingerprint="b", put_in_place=lambda: placed.append("other"))
    assert placed == ["first", "again"]


def test_name_of_a_built_in_text_is_not_removed(engine: Engine) -> None:
    with transaction(engine) as connection:
        datasets.register(connection, name="built-in", fingerprint="c", n_bytes=3)
        for name in ("built-in", "absent"):
            with pytest.raises(NotFound, match=f"no dataset '{name}'"):
                datasets.remove(connection, name)


def test_text_is_removed_once_no_queued_or_running_search_names_it(engine: Engine) -> None:
    with transaction(engine) as connection:
        add(connection)
    first, second = queued(engine, dataset="mine"), queued(engine, dataset="mine")
    queued(engine)
    running = claim(engine).lease
    with transaction(engine) as connection:
        assert datasets.in_use_by(connection, "mine") == (first, second)
        assert datasets.uses(connection) == {"mine": 2, "python-docs": 1}
        with pytest.raises(DatasetInUse, match=rf"in use by 2 queued or running searches, such as {first}; cancel"):
            datasets.remove(connection, "mine")
        searches.cancel(connection, second)
        with pytest.raises(DatasetInUse, match=rf"'mine' is in use by 1 queued or running search, such as {first}"):
            datasets.remove(connection, "mine")
        searches.finish(connection, running, "succeeded")
        assert datasets.remove(connection, "mine").path == "datasets/a.txt"
        with pytest.raises(NotFound, match="no dataset 'mine'"):
            datasets.get(connection, "mine")


def test_a_tokenizer_is_in_use_as_a_dataset_is(engine: Engine) -> None:
    with transaction(engine) as connection:
        add(connection, "own")
    first, both = queued(engine, tokenizer="own"), queued(engine, dataset="own", tokenizer="own")
    with transaction(engine) as connection:
        assert datasets.in_use_by(connection, "own") == (first, both)
        assert datasets.uses(connection) == {"python-docs": 1, "own": 2}
        with pytest.raises(DatasetInUse, match=rf"'own' is in use by 2 queued or running searches, such as {first}"):
            datasets.remove(connection, "own")
        for search_id in (first, both):
            searches.cancel(connection, search_id)
        assert datasets.remove(connection, "own").fingerprint == "a"


def test_file_of_a_text_is_unused_when_no_name_is_left(engine: Engine) -> None:
    with transaction(engine) as connection:
        add(connection, "mine")
        add(connection, "yours")
        datasets.register(connection, name="built-in", fingerprint="a", n_bytes=1)
        datasets.remove(connection, "mine")
        assert not datasets.unused(connection, "a")
        datasets.remove(connection, "yours")
        assert datasets.unused(connection, "a")


class Second(threading.Thread):
    """Something done in a transaction of its own, while another one is open; what it raised, if anything."""

    def __init__(self, engine: Engine, do: Callable[[Connection], object]) -> None:
        super().__init__()
        self.error: DatabaseError | None = None
        self._engine, self._do = engine, do
        self.start()

    def run(self) -> None:
        try:
            with transaction(self._engine) as connection:
                self._do(connection)
        except DatabaseError as error:
            self.error = error

    def waits(self) -> bool:
        self.join(0.3)
        return self.is_alive()


def use(connection: Connection) -> None:
    datasets.for_use(connection, "mine")
    create(connection, dataset="mine")


def test_removal_waits_for_a_submission_and_then_finds_it(engine: Engine) -> None:
    with transaction(engine) as connection:
        add(connection)
    with transaction(engine) as connection:
        use(connection)
        removal = Second(engine, lambda other: datasets.remove(other, "mine"))
        assert removal.waits()
    removal.join()
    assert isinstance(removal.error, DatasetInUse)
    with reading(engine) as connection:
        assert datasets.get(connection, "mine").fingerprint == "a"


def test_submission_waits_for_a_removal_and_then_finds_no_text(engine: Engine) -> None:
    with transaction(engine) as connection:
        add(connection)
    with transaction(engine) as connection:
        datasets.remove(connection, "mine")
        submission = Second(engine, use)
        assert submission.waits()
    submission.join()
    assert isinstance(submission.error, NotFound)
    with reading(engine) as connection:
        assert searches.list(connection).items == ()


def test_of_two_texts_under_one_name_at_once_one_wins(engine: Engine) -> None:
    with transaction(engine) as connection:
        add(connection, fingerprint="a")
        other = Second(engine, lambda connection: add(connection, fingerprint="b"))
        same = Second(engine, lambda connection: add(connection, fingerprint="a"))
        assert other.waits()
        assert same.waits()
    other.join()
    same.join()
    assert isinstance(other.error, NameTaken)
    assert same.error is None
    with reading(engine) as connection:
        assert [each.fingerprint for each in datasets.list(connection)] == ["a"]


def test_file_goes_only_while_nobody_adds_its_text(engine: Engine) -> None:
    with transaction(engine) as connection:
        add(connection)
        found: list[bool] = []
        sweep = Second(engine, lambda other: found.append(datasets.unused(other, "a")))
        assert sweep.waits()
    sweep.join()
    assert found == [False]


def test_reading_does_not_wait_for_an_upload(engine: Engine) -> None:
    with transaction(engine) as connection:
        add(connection)
        with reading(engine) as other:
            assert datasets.list(other) == ()
