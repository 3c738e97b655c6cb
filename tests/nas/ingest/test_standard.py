"""The standard corpora: their parts where the literature has them, and quotes as they stand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nas.errors import DataError
from nas.ingest.card import Card
from nas.ingest.options import Options
from nas.ingest.read import ingest
from nas.ingest.standard import standard


def ingested(name: str, path: Path, folder: Path) -> tuple[Card, bytes]:
    stream, options = standard(name, path)
    raw = folder / "streamed"
    raw.write_bytes(b"".join(stream))
    card = ingest(raw, folder / "kept", options, max_bytes=1 << 30)
    return card, (folder / "kept" / card.file_name).read_bytes()


@pytest.mark.parametrize("name", ["enwik8", "text8"])
def test_a_hundred_million_bytes_are_cut_at_ninety_and_ninety_five(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    with path.open("wb") as file:
        for _ in range(1000):
            file.write(b"a b c d e " * 10_000)
    for given in (path, tmp_path):  # the file, or its folder
        stream, options = standard(name, given)
        assert options == Options("text", "none", corpus=name, ends=(90_000_000, 95_000_000))
        assert sum(map(len, stream)) == 100_000_000
    path.write_bytes(b"a" * 1000)
    with pytest.raises(DataError, match=rf"^{name} has 1,000 bytes, {name} has 100,000,000; give the published file"):
        standard(name, path)


@pytest.mark.parametrize("name", ["enwik8", "text8"])
def test_the_name_alone_cuts_the_published_file(name: str, tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    raw.write_bytes(b"a b c d e\n" * 10_000_000)
    card = ingest(raw, tmp_path / "kept", Options(corpus=name), max_bytes=1 << 30, keep_raw=False)
    assert card.settings.ends == (90_000_000, 95_000_000)
    raw.write_bytes(b"a b c d e\n" * 1000)
    message = f"^the text has 10,000 bytes, {name} has 100,000,000; give the published file$"
    with pytest.raises(DataError, match=message):
        ingest(raw, tmp_path / "kept", Options(corpus=name), max_bytes=1 << 30)


SPLIT = {"train": " = A = \n words and <unk> \n" * 20, "valid": " valid \n" * 5, "test": " test \n" * 4}


@pytest.mark.parametrize(
    ("pattern", "corpus"),
    [
        ("wiki.{}.tokens", "wikitext-2"),
        ("wikitext-2-{}.txt", "wikitext-2"),
        ("{}.txt", "wikitext-2"),
        ("wiki.{}.raw", None),
    ],
)
def test_three_files_are_one_text_with_ends(pattern: str, corpus: str | None, tmp_path: Path) -> None:
    for part, text in SPLIT.items():
        (tmp_path / pattern.format(part)).write_text(text)
    card, canonical = ingested("wikitext-2", tmp_path, tmp_path)
    assert canonical.decode() == "".join(SPLIT.values())
    assert card.settings.corpus == corpus
    assert card.settings.ends == (len(SPLIT["train"]), len(SPLIT["train"] + SPLIT["valid"]))


def test_the_files_that_are_there_are_named_where_one_is_missing(tmp_path: Path) -> None:
    for part in ("valid", "test"):
        (tmp_path / f"wiki.{part}.tokens").write_text(SPLIT[part])
    with pytest.raises(
        DataError, match=r"has wiki\.test\.tokens and wiki\.valid\.tokens of the three files of wikitext-2"
    ):
        standard("wikitext-2", tmp_path)


def test_a_file_that_stands_for_two_parts_is_refused(tmp_path: Path) -> None:
    for part in SPLIT:
        (tmp_path / f"wiki.{part}.tokens").write_text(SPLIT["test" if part == "test" else "train"])
    with pytest.raises(
        DataError, match=r"^wiki\.train\.tokens and wiki\.valid\.tokens hold the same text; give the pub"
    ):
        standard("wikitext-2", tmp_path)


PAIRS = "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String"


def pairs(word: str, n: int) -> str:
    """As published: with a byte order mark, CRLF, and quotes that nothing closes."""
    rows = [f'{index % 2}\t{index}\t{index}\tHe said "{word} {index}\t"{word} again {index} ' for index in range(n)]
    return "\ufeff" + "\r\n".join([PAIRS, *rows]) + "\r\n"


def test_a_lone_quote_is_part_of_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "msr_paraphrase_train.txt").write_text(pairs("train", 200), newline="")
    (tmp_path / "msr_paraphrase_test.txt").write_text(pairs("test", 40), newline="")
    card, canonical = ingested("mrpc", tmp_path, tmp_path)
    assert card.given_parts == {"train": 200, "test": 40}
    assert card.part_rows == {"weights": 144, "alpha": 36, "validation": 20, "test": 40}
    assert card.labels == {"0": 120, "1": 120}
    assert json.loads(canonical.splitlines()[3]) == {
        "text": 'He said "train 3', "pair": '"train again 3', "label": "1", "part": "train",
    }  # fmt: skip
    (tmp_path / "train.tsv").write_text(pairs("train", 100), newline="")
    (tmp_path / "dev.tsv").write_text(pairs("dev", 40), newline="")
    (tmp_path / "test.tsv").write_text("index\t#1 ID\n0\t1\n")
    assert ingested("mrpc", tmp_path, tmp_path)[0].given_parts == {"train": 100, "validation": 40, "test": 40}
    (tmp_path / "msr_paraphrase_test.txt").unlink()
    card, _ = ingested("mrpc", tmp_path, tmp_path)
    assert card.part_rows == {"weights": 80, "alpha": 20, "validation": 20, "test": 20}


def test_sentences_have_their_dev_set_held_out(tmp_path: Path) -> None:
    for part, n in (("train", 100), ("dev", 20)):
        rows = "".join(f"{part} {index} 's \t{index % 2}\n" for index in range(n))
        (tmp_path / f"{part}.tsv").write_text(f"sentence\tlabel\n{rows}")
    card, canonical = ingested("sst-2", tmp_path, tmp_path)
    assert card.given_parts == {"train": 100, "validation": 20}
    assert json.loads(canonical.splitlines()[0]) == {"text": "train 0 's", "label": "0", "part": "train"}
    assert card.settings.corpus == "sst-2"


def test_what_is_not_there_is_named(tmp_path: Path) -> None:
    cases: list[tuple[str, Path, str]] = [
        ("ptb", tmp_path, "unknown corpus 'ptb'; known: enwik8, text8, wikitext-2, wikitext-103, mrpc, sst-2"),
        ("enwik8", tmp_path, f"there is no file {tmp_path}/enwik8; give the unpacked file enwik8"),
        ("mrpc", tmp_path / "x", f"{tmp_path}/x is no folder; give the folder with the files of mrpc"),
        ("wikitext-103", tmp_path, f"{tmp_path} has none of the three files of wikitext-103: wiki.train.tokens, "
         "wiki.valid.tokens, wiki.test.tokens (or wikitext-103-train.txt and so on); give a folder with all, or add a "
         "file you have as a plain text"),
        ("mrpc", tmp_path, f"{tmp_path} has not the files of mrpc: msr_paraphrase_train.txt and "
         "msr_paraphrase_test.txt or train.tsv and dev.tsv or train.tsv and dev.tsv and msr_paraphrase_test.txt"),
        ("sst-2", tmp_path, f"{tmp_path} has not the files of sst-2: train.tsv and dev.tsv"),
    ]  # fmt: skip
    for name, path, message in cases:
        with pytest.raises(DataError) as caught:
            standard(name, path)
        assert str(caught.value) == message


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("text\tlabel\n", "train.tsv has no column 'sentence'; give the published file"),
        ("sentence\tlabel\na\t1\nb\tc\t1\n",
         "row 2 of train.tsv has 3 cells, the header has 2; give the published file"),
    ],
    ids=["column", "ragged"],
)  # fmt: skip
def test_a_table_that_is_not_the_published_one_is_refused(content: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "train.tsv").write_text(content)
    (tmp_path / "dev.tsv").write_text("sentence\tlabel\n")
    stream: Any = standard("sst-2", tmp_path)[0]
    with pytest.raises(DataError) as caught:
        list(stream)
    assert str(caught.value) == message
