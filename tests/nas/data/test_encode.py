"""The same bytes give the same files in any process; what is read back is what was there; a damaged cache is told."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer as LibraryTokenizer

from nas import metrics
from nas.config.task import Task
from nas.data import encode as encode_module
from nas.data import pieces as pieces_module
from nas.data import vocabulary
from nas.data.encode import encode, open_encoded
from nas.data.encoded import Encoded
from nas.data.parts import Parts, Tokens, split
from nas.errors import DataError
from nas.ingest.card import Card, Dataset, Settings
from nas.text import TooShort
from tests.encoding import chosen, documents, raw, text

PROSE = "".join(f"line {n} of {n % 13} words,\twith é and €{'😀' * (n % 3)}\n\n" for n in range(400))
ROWS = [{"text": f"document {n}\nhas {n % 7} lines", "label": "odd" if n % 2 else "even"} for n in range(80)]
KINDS: tuple[str | Mapping[str, Any], ...] = ("bytes", "characters", "words", {"type": "bpe", "vocab_size": 320})
IDS = ["bytes", "characters", "words", "bpe"]


def encoded(dataset: Dataset, kind: str | Mapping[str, Any], cache: Path) -> Encoded:
    return encode(dataset.path, dataset.card, chosen(kind), cache)


def streams(found: Encoded) -> list[np.ndarray[Any, Any]]:
    """Ids of the four parts, and of the two that are learnt from."""
    parts = found.parts(Task())
    each = (parts.weights, parts.alpha, parts.validation, parts.test, parts.training)
    return [part.ids for part in each if isinstance(part, Tokens)]


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_bytes_are_the_file_itself_cut_as_split_cuts(tmp_path: Path) -> None:
    dataset = text(tmp_path / "data", PROSE)
    found = encoded(dataset, "bytes", tmp_path / "cache")
    assert os.path.samefile(found.folder / "tokens.bin", dataset.path)
    whole: Parts = split(PROSE.encode(), 16, 4)
    for ids, part in zip(
        streams(found), (whole.weights, whole.alpha, whole.validation, whole.test, whole.training), strict=True
    ):
        assert isinstance(part, Tokens)
        np.testing.assert_array_equal(ids, part.ids)
    assert found.sizes.model_dump() == {"vocab_size": 256, "n_classes": 0, "tokens_per_byte": 1.0}


def test_bytes_are_copied_where_the_file_system_has_no_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise OSError("no links here")

    monkeypatch.setattr(os, "link", refuse)
    dataset = text(tmp_path / "data", PROSE)
    found = encoded(dataset, "bytes", tmp_path / "cache")
    assert not os.path.samefile(found.folder / "tokens.bin", dataset.path)
    assert (found.folder / "tokens.bin").read_bytes() == PROSE.encode()


def test_words_of_the_held_out_parts_are_not_in_the_vocabulary(tmp_path: Path) -> None:
    content = "a b\n" * 9 + "held\n" + "out\n"
    found = encoded(text(tmp_path / "data", content, (36, 41)), "words", tmp_path / "cache")
    vocabulary = LibraryTokenizer.from_file(str(found.folder / "tokenizer.json")).get_vocab()
    assert vocabulary == {"<eos>": 0, "a": 1, "b": 2, "<unk>": 3}
    assert [ids.tolist() for ids in streams(found)[2:4]] == [[3, 0], [3, 0]]
    assert found.ends == (21, 27, 29, 31)  # cut at byte 28, behind 7 of 9 lines


def test_words_at_the_ends_of_documents_are_words(tmp_path: Path) -> None:
    rows = [{"text": f"first{number} last{number}"} for number in range(40)]
    found = encoded(documents(tmp_path / "data", rows), "words", tmp_path / "cache")
    vocabulary = LibraryTokenizer.from_file(str(found.folder / "tokenizer.json")).get_vocab()
    assert found.document_ends is not None
    assert len(vocabulary) == 2 * found.document_ends[1] + 2
    ids = np.concatenate(streams(found)[:2])
    assert vocabulary["<unk>"] not in ids


def test_counts_of_words_are_put_aside_beside_the_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vocabulary, "_DISTINCT", 10)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "none"))  # there is no room elsewhere
    content = "".join(f"word{number % 90} " for number in range(900))
    found = encoded(text(tmp_path / "data", content), "words", tmp_path / "cache")
    assert found.sizes.vocab_size >= 90 + 2  # and words that a cut between parts has halved
    assert sorted(path.name for path in found.folder.iterdir()) == ["card.json", "tokenizer.json", "tokens.bin"]


def test_a_training_part_without_a_byte_is_too_short(tmp_path: Path) -> None:
    found = encoded(text(tmp_path / "data", "a b\n" * 100, (1, 2)), "words", tmp_path / "cache")
    assert found.ends[0] == 0
    with pytest.raises(TooShort, match=r"^the weights part has 0 tokens"):
        found.check(Task(train_length=4), 1)


def test_tokens_per_byte_are_of_the_test_part(tmp_path: Path) -> None:
    content = "a b\n" * 9 + "a b c\n" + "a bbbbbb\n"
    found = encoded(text(tmp_path / "data", content, (36, 42)), "words", tmp_path / "cache")
    assert found.sizes.tokens_per_byte == 3 / 9


def test_token_ids_are_taken_as_they_are(tmp_path: Path) -> None:
    ids = (np.arange(1000) * 7 % 300).astype("<u2")
    dataset = raw(tmp_path / "data", ids.tobytes(), Settings("tokens", dtype="uint16", vocab_size=300, eos_id=2))
    found = encoded(dataset, "given", tmp_path / "cache")
    assert os.path.samefile(found.folder / "tokens.bin", dataset.path)
    np.testing.assert_array_equal(np.concatenate(streams(found)[:4]), ids)
    assert [len(part) for part in streams(found)] == [720, 180, 50, 50, 900]
    assert (found.sizes.vocab_size, found.eos_id, found.dtype) == (300, 2, "uint16")
    assert not (found.folder / "tokenizer.json").exists()


@pytest.mark.parametrize(
    ("settings", "kind", "message"),
    [
        (
            Settings("tokens", dtype="uint16", vocab_size=300),
            "bytes",
            "task.tokenizer is 'bytes' but the dataset is tok",
        ),
        (
            Settings(),
            "given",
            "task.tokenizer is 'given' but the dataset is text; write bytes, characters, words, bpe or",
        ),
        (Settings("documents"), "given", "task.tokenizer is 'given' but the dataset is documents; write bytes, charac"),
        (
            Settings("tokenizer"),
            "bytes",
            "the dataset is a tokenizer; name it in task.tokenizer, and data in task.data",
        ),
    ],
    ids=["tokens", "text", "documents", "tokenizer"],
)
def test_a_tokenizer_that_does_not_fit_the_dataset_is_refused(
    tmp_path: Path, settings: Settings, kind: str, message: str
) -> None:
    with pytest.raises(DataError) as error:
        encoded(raw(tmp_path / "data", b"ab", settings), kind, tmp_path / "cache")
    assert str(error.value).startswith(message)
    assert not (tmp_path / "cache").exists()


def test_a_file_that_has_changed_is_not_encoded_under_its_old_fingerprint(tmp_path: Path) -> None:
    dataset = text(tmp_path / "data", PROSE)
    dataset.path.write_text(PROSE.upper())
    with pytest.raises(DataError, match=r"^the dataset's file has fingerprint [0-9a-f]{12}, not .* register it again"):
        encoded(dataset, "characters", tmp_path / "cache")
    assert [path.name[-5:] for path in (tmp_path / "cache").iterdir()] == [".lock"]


@pytest.mark.parametrize("kind", KINDS, ids=IDS)
def test_what_is_there_is_found_and_opened_but_for_another_tokenizer(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = documents(tmp_path / "data", ROWS)
    first = encoded(dataset, kind, tmp_path / "cache")
    first.check_whole()
    monkeypatch.setattr(encode_module, "_write", None)  # nothing is written again
    assert encoded(dataset, kind, tmp_path / "cache") == first == open_encoded(first.folder)
    assert encode_module._key(dataset.card, chosen("bytes" if kind != "bytes" else "words")) != first.key


def test_what_an_ended_process_left_is_written_anew(tmp_path: Path) -> None:
    dataset = text(tmp_path / "data", PROSE)
    key = encode_module._key(dataset.card, chosen("characters"))
    left = tmp_path / "cache" / f".{key}"
    left.mkdir(parents=True)
    (left / "tokens.bin").write_bytes(b"half")
    found = encoded(dataset, "characters", tmp_path / "cache")
    found.check_whole()
    assert not left.exists()


@pytest.mark.parametrize("name", ["tokens.bin", "tokenizer.json", "card.json"])
def test_files_are_read_only(tmp_path: Path, name: str) -> None:
    found = encoded(text(tmp_path / "data", PROSE), "words", tmp_path / "cache")
    assert (found.folder / name).stat().st_mode & 0o777 == 0o444


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("tokens.bin", b"short", "tokens.bin has 5 bytes, not "),
        ("tokens.bin", None, "tokens.bin is missing"),
        ("card.json", None, "card.json is missing"),
        ("card.json", b"{", "card.json cannot be read"),
        ("card.json", b"[1]", "card.json cannot be read"),
        ("card.json", b'{"format": 1}', "card.json cannot be read"),
    ],
    ids=["short", "missing", "no card", "half a card", "other json", "empty card"],
)
def test_a_damaged_folder_is_told_with_the_remedy(
    tmp_path: Path, name: str, content: bytes | None, message: str
) -> None:
    dataset = text(tmp_path / "data", PROSE)
    found = encoded(dataset, "characters", tmp_path / "cache")
    (found.folder / name).unlink()
    if content is not None:
        (found.folder / name).write_bytes(content)
    with pytest.raises(DataError) as error:
        encoded(dataset, "characters", tmp_path / "cache")
    assert str(error.value).startswith(f"encoded data are damaged: {message}")
    assert str(error.value).endswith(f"; remove {found.folder} to have them made again")


def test_another_format_and_a_changed_byte_are_told(tmp_path: Path) -> None:
    found = encoded(text(tmp_path / "data", PROSE), "characters", tmp_path / "cache")
    tokens = bytearray((found.folder / "tokens.bin").read_bytes())
    tokens[100] ^= 1
    (found.folder / "tokens.bin").unlink()
    (found.folder / "tokens.bin").write_bytes(tokens)
    with pytest.raises(DataError, match=r"^encoded data are damaged: tokens.bin has changed; remove "):
        open_encoded(found.folder).check_whole()
    card = json.loads((found.folder / "card.json").read_text())
    (found.folder / "card.json").unlink()
    (found.folder / "card.json").write_text(json.dumps(card | {"format": 99}))
    with pytest.raises(DataError, match=r"^encoded data are damaged: card.json has format 99, not 2; remove "):
        open_encoded(found.folder)


@settings(max_examples=20)
@given(block=st.integers(1, 3000), rows=st.booleans(), kind=st.sampled_from(KINDS[1:]))
def test_another_block_size_gives_the_same_files(
    tmp_path_factory: pytest.TempPathFactory, block: int, rows: bool, kind: str
) -> None:
    folder = tmp_path_factory.mktemp("blocks")
    dataset = documents(folder, ROWS) if rows else text(folder, PROSE)
    with pytest.MonkeyPatch.context() as patch:
        first = encoded(dataset, kind, folder / "one")
        patch.setattr(pieces_module, "BLOCK", block)
        patch.setattr(encode_module, "BLOCK", 8 * block)
        second = encoded(dataset, kind, folder / "other")
    assert contents(first.folder) == contents(second.folder)
    assert first.key == second.key


def test_other_processes_write_the_same_files_and_draw_the_same_batches(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("here", "there", "elsewhere")]
    draw(folders[0])
    for seed, folder in zip(("1", "2"), folders[1:], strict=True):
        run("t.draw(Path(sys.argv[1]))", folder, hash_seed=seed)
    first, *others = ({path.name: contents(path) for path in folder.glob("cache/[!.]*")} for folder in folders)
    assert len(first) == 2 * len(KINDS)
    assert all(other == first for other in others)
    assert len({(folder / "batches").read_text() for folder in folders}) == 1


def draw(folder: Path) -> None:
    """Encode both kinds of datasets in every way, and keep some batches."""
    lines = []
    for kind in KINDS:
        stream, labelled = text(folder, PROSE), documents(folder, ROWS)
        for dataset, objective in ((stream, "causal_lm"), (labelled, "sequence_classification")):
            found = encoded(dataset, kind, folder / "cache")
            task = Task(objective=objective, train_length=16, tokenizer=chosen(kind), sizes=found.sizes)
            parts = found.parts(task)
            generator = torch.Generator().manual_seed(3)
            drawn = [part.batch(task, 4, generator) for part in (parts.weights, parts.training, parts.alpha)]
            for batch in (*drawn, parts.test.held_out(task, 9)):
                lines.append(json.dumps([batch.tokens.tolist(), batch.targets.tolist()]))
    (folder / "batches").write_text("\n".join(lines))


def start(statements: str, *arguments: object, hash_seed: str = "0") -> subprocess.Popen[str]:
    """Statements in a process of their own, with this module as `t`."""
    program = (
        f"import resource, sys; from pathlib import Path; from tests.nas.data import test_encode as t; {statements}"
    )
    return subprocess.Popen(
        [sys.executable, "-c", program, *map(str, arguments)],
        env={"PYTHONHASHSEED": hash_seed, "OMP_NUM_THREADS": "1", "PYTHONPATH": "."},
        cwd=Path(__file__).parents[3],
        stdout=subprocess.PIPE,
        text=True,
    )


def run(statements: str, *arguments: object, hash_seed: str = "0") -> str:
    process = start(statements, *arguments, hash_seed=hash_seed)
    printed, _ = process.communicate()
    assert process.returncode == 0
    return printed.strip()


def test_two_writers_at_once_leave_one_whole_folder(tmp_path: Path) -> None:
    text(tmp_path, PROSE * 20)
    statements = "print(t.encoded(t.text(Path(sys.argv[1]), t.PROSE * 20), 'bpe', Path(sys.argv[1], 'cache')).key)"
    running = [start(statements, tmp_path) for _ in range(2)]
    told = [each.communicate()[0].strip() for each in running]
    assert [each.returncode for each in running] == [0, 0]
    assert told[0] == told[1]
    assert sorted(path.name for path in (tmp_path / "cache").iterdir()) == sorted([f".{told[0]}.lock", told[0]])
    open_encoded(tmp_path / "cache" / told[0]).check_whole()


@pytest.mark.parametrize(
    ("batch_size", "length", "message"),
    [
        (1, 100, None),
        (200, 100, "the weights part has 14,400 tokens; 200 windows of 100 tokens need at least 20,001"),
        (40, 100, "the alpha part has 3,600 tokens; 40 windows of 100 tokens need at least 4,001"),
        (1, 600, "the validation part has 1,000 tokens; 2 windows of 600 tokens need at least 1,201"),
    ],
    ids=["enough", "weights", "alpha", "validation"],
)
def test_too_short_parts_are_told_in_tokens(tmp_path: Path, batch_size: int, length: int, message: str | None) -> None:
    found = encoded(text(tmp_path / "data", "ab c\n" * 4000), "characters", tmp_path / "cache")
    task = Task(tokenizer=chosen("characters"), sizes=found.sizes, train_length=length)
    if message is None:
        found.check(task, batch_size)
        return
    with pytest.raises(TooShort) as error:
        found.check(task, batch_size)
    assert str(error.value) == message


def test_mask_stands_behind_the_ids_of_the_tokenizer_and_not_in_its_file(tmp_path: Path) -> None:
    found = encoded(text(tmp_path / "data", PROSE), "words", tmp_path / "cache")
    task = Task(objective="masked_lm", train_length=16, tokenizer=chosen("words"), sizes=found.sizes)
    library = LibraryTokenizer.from_file(str(found.folder / "tokenizer.json"))
    assert task.mask_id == found.sizes.vocab_size == library.get_vocab_size()
    assert library.id_to_token(task.mask_id) is None
    batch = found.parts(task).weights.batch(task, 32, torch.Generator().manual_seed(0))
    assert (batch.tokens == task.mask_id).any()
    assert int(batch.targets.max()) < task.mask_id


@pytest.mark.parametrize(
    ("kind", "metric", "by_hand"),
    [
        # 4 test tokens: a (5 of 12 training tokens), b (3), <eos> (3), and c, which training has not: <unk> (1).
        ("words", "word perplexity", (12 / 5 * 12 / 3 * 12 / 3 * 12 / 1) ** (1 / 4)),
        ("characters", "bits per character", None),
    ],
    ids=["words", "characters"],
)
def test_a_unigram_model_scores_what_is_computed_by_hand(
    tmp_path: Path, kind: str, metric: str, by_hand: float | None
) -> None:
    training, test = "a b a\na b a\na b z\n", "a b c\n"
    content = training + "b\n" + test
    found = encoded(
        text(tmp_path, content, (18, 20)), {"type": kind, "min_count": 2} if kind == "words" else kind, tmp_path
    )
    learnt, scored = streams(found)[4], streams(found)[3]
    counts = np.bincount(learnt, minlength=found.sizes.vocab_size)
    unseen = counts + (counts == 0)  # a character that training has not counts as seen once
    nats = float(np.mean(np.log(unseen.sum() / unseen[scored])))
    task = Task(tokenizer=chosen(kind), sizes=found.sizes)
    (told,) = metrics.metrics(task)
    assert told.name == metric
    if by_hand is None:
        seen = Counter(training)
        total = len(training) + 2  # <unk> and <eos>, each once
        by_hand = sum(math.log2(total / seen.get(character, 1)) for character in test) / len(test)
    assert told.of(metrics.Outcome(nats), task) == pytest.approx(by_hand, rel=1e-12)


def test_memory_does_not_grow_with_the_text(tmp_path: Path) -> None:
    folder = "folder = Path(sys.argv[1])"
    peak = "resource.getrusage(resource.RUSAGE_SELF).ru_maxrss"
    small = "t.encoded(t.text(folder, t.PROSE), 'characters', folder)"
    large = "t.encoded(t.large(folder, 48), 'characters', folder)"
    grown = run(f"{folder}; {small}; before = {peak}; {large}; print({peak} - before)", tmp_path)
    assert int(grown) < 32 << 10  # KiB; the text has 48 MiB


def large(folder: Path, mebibytes: int) -> Dataset:
    """A text that is written, and hashed, without being held."""
    digest = Settings().digest()
    block = (PROSE * (1 + (1 << 20) // len(PROSE.encode())))[: 1 << 19].encode()
    path = folder / "large.txt"
    with path.open("wb") as file:
        for _ in range((mebibytes << 20) // len(block)):
            file.write(block)
            digest.update(block)
    return Dataset(path, Card(digest.hexdigest(), Settings(), path.stat().st_size, n_rows=0))
