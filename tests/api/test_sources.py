"""What `datasets add` makes of folders, standard corpora, token ids and saved datasets, on a real service."""

from __future__ import annotations

import json
import random
import struct
from pathlib import Path

import pytest

from tests.api.test_cli import Run, run, served, write
from tests.api.test_uploads import ROWS

__all__ = ["run", "served"]  # fixtures


def rows_of(part: int) -> str:
    draw = random.Random(part)
    words = ("good", "bad", "film", "plot", "cast")
    return "".join(f"{' '.join(draw.choice(words) for _ in range(8))}\t{draw.randrange(2)}\n" for _ in range(300))


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_folder_is_one_document_a_file(served: Run, here: Path) -> None:
    (here / "notes").mkdir()
    for number in range(40):
        (here / "notes" / f"{number}.txt").write_text(f"note {number}\n" * 20)
    added = served("datasets", "add", "notes", "notes")
    assert "40 documents" in added.out, added.err
    (here / "notes" / "bad.txt").write_bytes(b"\xff")
    refused = served("datasets", "add", "others", "notes")
    assert refused.status == 2
    assert "file 'bad.txt'" in refused.err
    assert served("datasets", "show", "others").err == "blockwright: no dataset 'others'\n"


def test_a_standard_corpus_keeps_its_parts(served: Run, here: Path) -> None:
    (here / "sst").mkdir()
    for part, name in enumerate(("train", "dev")):
        (here / "sst" / f"{name}.tsv").write_text("sentence\tlabel\n" + rows_of(part))
    assert served("datasets", "add", "sst", "sst", "--as", "sst-2").status == 0
    card = json.loads(served("datasets", "show", "sst", "--json").out)["card"]
    assert card["given_parts"] == {"train": 300, "validation": 300}
    assert card["settings"]["corpus"] == "sst-2"
    told = served("datasets", "show", "sst").out
    assert "standard corpus sst-2" in told
    assert "(as the rows say)" in told


def test_words_that_a_text_comes_in_three_files_keep_their_ends(served: Run, here: Path) -> None:
    (here / "wiki").mkdir()
    for name, n in (("train", 900), ("valid", 50), ("test", 60)):
        (here / "wiki" / f"wiki.{name}.tokens").write_text(" = a heading = \n" * n)
    assert served("datasets", "add", "wt2", "wiki", "--as", "wikitext-2").status == 0
    assert "parts: training ends at byte 14,400, validation at 15,200" in served("datasets", "show", "wt2").out


def test_token_ids_are_told_by_the_file_beside_them(served: Run, here: Path) -> None:
    (here / "ids.bin").write_bytes(b"".join(struct.pack("<H", number % 300) for number in range(5000)))
    write(here / "ids.json", {"dtype": "uint16", "vocab_size": 300, "eos_id": 0})
    assert "5,000 tokens" in served("datasets", "add", "ids", "ids.bin").out
    assert "uint16 ids below 300, 0 ends a document" in served("datasets", "show", "ids").out
    assert served("datasets", "add", "more", "ids.bin", "--vocab-size", "400").status == 0
    assert "uint16 ids below 400" in served("datasets", "show", "more").out


def test_a_saved_hugging_face_dataset_is_streamed(served: Run, here: Path) -> None:
    datasets = pytest.importorskip("datasets")
    saved = datasets.DatasetDict(
        {"train": datasets.Dataset.from_list(ROWS[:300]), "test": datasets.Dataset.from_list(ROWS[300:])}
    )
    saved.save_to_disk(str(here / "saved"))
    added = served("datasets", "add", "saved", "--from-disk", "saved")
    assert "400 documents, 2 labels" in added.out, added.err
    card = json.loads(served("datasets", "show", "saved", "--json").out)["card"]
    assert card["given_parts"] == {"train": 300, "test": 100}


def test_labels_lengths_and_rows_are_drawn(served: Run, here: Path) -> None:
    (here / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    assert served("datasets", "add", "rows", "rows.jsonl").status == 0
    told = served("datasets", "show", "rows").out
    share = max(sum(row["label"] == label for row in ROWS) for label in "np") / len(ROWS)
    assert f"labels, one for each document; always the most frequent scores {100 * share:.1f}%" in told
    assert "█" in told
    assert "bytes of a document" in told
    assert ROWS[0]["text"] in told
    assert "documents" in served("datasets", "list").out


def test_options_that_say_nothing_of_a_folder_or_a_corpus_are_refused(served: Run, here: Path) -> None:
    (here / "notes").mkdir()
    (here / "notes" / "a.txt").write_text("a note")
    folder = served("datasets", "add", "notes", "notes", "--label", "stars")
    assert folder.err == (
        "blockwright: --label stars says nothing of a folder, each of whose text files is a document; leave it out\n"
    )
    corpus = served("datasets", "add", "sst", "notes", "--as", "sst-2", "--part", "train")
    assert corpus.err == "blockwright: --part train says nothing of the standard corpus sst-2; leave it out\n"
