"""What a card tells of each kind of file, and that one content is one dataset, whatever it came as."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nas.errors import DataError
from nas.ingest import digests, stream
from nas.ingest.card import PARTS, Card, content, document_bin, document_digest, part_of
from nas.ingest.dealing import NEEDED
from nas.ingest.facts import Characters, Lengths
from nas.ingest.options import Options
from nas.ingest.read import ingest
from nas.text import MIN_BYTES
from tests.nas.ingest import files
from tests.nas.ingest.files import documents, jsonl, packed, parquet, read, table

PROSE = "To be, or not to be:\n\nthat is the queßtion\n".encode() * 50


@pytest.mark.parametrize("compression", ["none", "gzip", "zstd"])
def test_a_text_stays_as_it_came(compression: str, tmp_path: Path) -> None:
    card, canonical = read(tmp_path, packed(PROSE, compression), Options())
    assert canonical == PROSE
    assert card.fingerprint == hashlib.sha256(PROSE).hexdigest()
    assert (card.kind, card.n_bytes, card.n_rows) == ("text", len(PROSE), 150)
    assert card.n_characters == len(set(PROSE.decode()))
    assert card.lengths == ((1, 50), (2, 0), (4, 0), (8, 0), (16, 0), (32, 100))
    assert card.samples[0] == {"text": "To be, or not to be:"}
    assert len(card.samples) == 3
    assert Card.from_json(json.loads(json.dumps(card.to_json()))) == card


def test_a_text_may_be_one_line(tmp_path: Path) -> None:
    line = b"anarchism originated as a term " * 100_000
    card, _ = read(tmp_path, line, Options("text"))
    assert (card.n_rows, card.lengths) == (1, ((1 << 22, 1),))
    assert len(card.samples[0]["text"]) == 300


def test_what_is_said_of_a_text_is_part_of_its_fingerprint(tmp_path: Path) -> None:
    card, canonical = read(tmp_path, PROSE, Options("text", corpus="wikitext-2", ends=(100, 200)))
    assert canonical == PROSE
    assert card.settings.ends == (100, 200)
    assert card.fingerprint != hashlib.sha256(PROSE).hexdigest()


def test_members_of_a_packed_file_are_joined(tmp_path: Path) -> None:
    for compression in ("gzip", "zstd"):
        two = packed(PROSE, compression) + packed(PROSE, compression)
        assert read(tmp_path, two, Options())[1] == PROSE * 2


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7])
def test_blocks_may_end_within_characters_and_lines(size: int) -> None:
    text = "a\né€😀\n\n" * 3 + "zß"
    blocks = [text.encode()[at : at + size] for at in range(0, len(text.encode()), size)]
    whole = list(stream.whole_characters(blocks))
    assert b"".join(whole).decode() == text
    assert list(stream.lines(whole)) == text.split("\n")
    characters = Characters()
    for block in whole:
        characters.feed(block)
    assert len(characters) == len(set(text))


def test_lengths_are_counted_by_powers_of_two() -> None:
    lengths = Lengths()
    lengths.feed([5, 8, 9])
    lengths.feed([64])
    assert lengths.histogram() == ((8, 2), (16, 1), (32, 0), (64, 1))
    assert Lengths().histogram() == ()


def test_a_raw_text_is_moved_where_it_need_not_stay(tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    raw.write_bytes(PROSE)
    inode = raw.stat().st_ino
    card = ingest(raw, tmp_path / "kept", Options(), max_bytes=10_000, keep_raw=False)
    assert not raw.exists()
    assert (tmp_path / "kept" / card.file_name).stat().st_ino == inode
    raw.symlink_to(tmp_path / "kept" / card.file_name)
    ingest(raw, tmp_path / "other", Options(), max_bytes=10_000, keep_raw=False)
    assert raw.is_symlink()  # what it points to is someone else's
    assert (tmp_path / "kept" / card.file_name).read_bytes() == PROSE


def test_a_refused_raw_file_is_never_moved(tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    raw.write_bytes(PROSE + b"\0")
    with pytest.raises(DataError, match="NUL byte"):
        ingest(raw, tmp_path / "kept", Options(), max_bytes=10_000, keep_raw=False)
    assert raw.exists()
    assert not any((tmp_path / "kept").iterdir())


def test_progress_tells_bytes_of_the_raw_file(tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    for content_, options in ((PROSE * 1000, Options()), (parquet(documents(2000)), Options("parquet"))):
        raw.write_bytes(content_)
        told: list[int] = []
        ingest(raw, tmp_path / "kept", options, max_bytes=1 << 30, progress=told.append)
        assert told == sorted(told)
        assert len(told) > 1
        assert told[-1] == len(content_)


def test_labels_of_all_types_are_strings(tmp_path: Path) -> None:
    values = [True, False, 3, "three"]
    rows = [{"text": f"t{index}", "label": values[index % 4]} for index in range(400)]
    card, canonical = read(tmp_path, jsonl(rows), Options("jsonl"))
    assert card.labels == {"3": 100, "false": 100, "three": 100, "true": 100}
    assert list(card.labels) == sorted(card.labels)
    assert card.label_kind == "sequence"
    assert card.majority == 0.25
    assert json.loads(canonical.splitlines()[0]) == {"text": "t0", "label": "true"}


def test_words_have_labels_each(tmp_path: Path) -> None:
    rows = [{"w": ["Ada", "sleeps", f"n{index}"], "l": ["PER", "O", 1]} for index in range(200)]
    options = Options("jsonl", words="w", labels="l")
    card, canonical = read(tmp_path, jsonl(rows), options)
    assert card.label_kind == "token"
    assert card.labels == {"1": 200, "O": 200, "PER": 200}
    assert json.loads(canonical.splitlines()[7]) == {"words": ["Ada", "sleeps", "n7"], "labels": ["PER", "O", "1"]}
    assert card.lengths == ((16, 200),)
    assert card.samples[0] == {"words": ["Ada", "sleeps", "n0"], "labels": ["PER", "O", "1"]}


def test_a_pair_is_part_of_what_a_document_says(tmp_path: Path) -> None:
    rows = [{"text": "same", "other": f"t{index % 150}", "label": index % 2} for index in range(300)]
    card, canonical = read(tmp_path, jsonl(rows), Options("jsonl", pair="other"))
    assert card.n_duplicates == 150
    assert json.loads(canonical.splitlines()[3]) == {"text": "same", "pair": "t3", "label": "1"}
    assert card.lengths == ((8, 300),)


def test_blank_lines_and_a_byte_order_mark_are_passed_over(tmp_path: Path) -> None:
    plain = read(tmp_path, jsonl(documents()), Options("jsonl"))
    marked = b"\xef\xbb\xbf\n" + jsonl(documents()).replace(b"\n", b"\r\n\n")
    assert read(tmp_path, marked, Options("jsonl")) == plain
    marked = b"\xef\xbb\xbf" + table(documents()).replace(b"\n", b"\r\n") + b"\r\n"
    assert read(tmp_path, marked, Options("csv")) == plain


def test_given_parts_are_kept_and_duplicates_of_held_out_documents_left_out(tmp_path: Path) -> None:
    rows = [{"text": f"train {index}", "part": "train"} for index in range(500)]
    rows += [{"text": f"held {index}", "part": "validation"} for index in range(50)]
    rows += [{"text": f"test {index}", "part": "test"} for index in range(30)]
    rows += [{"text": "held 3", "part": "train"}] * 4 + [{"text": "test 3", "part": "train"}]
    card, canonical = read(tmp_path, jsonl(rows), Options("jsonl"))
    assert card.given_parts == {"train": 505, "validation": 50, "test": 30}
    assert card.part_rows == {"weights": 400, "alpha": 100, "validation": 50, "test": 30}
    assert (card.n_left_out, card.n_duplicates) == (5, 5)
    assert json.loads(canonical.splitlines()[-1]) == {"text": "test 3", "part": "train"}


@pytest.mark.parametrize(
    ("named", "part_rows"),
    [
        ("validation", {"weights": 320, "alpha": 80, "validation": 100, "test": 100}),
        ("test", {"weights": 288, "alpha": 72, "validation": 40, "test": 200}),
    ],
)
def test_a_part_that_no_row_names_is_cut_from_another(named: str, part_rows: Mapping[str, int], tmp_path: Path) -> None:
    rows = [{"text": f"train {index}", "part": "train"} for index in range(400)]
    rows += [{"text": f"held {index}", "part": named} for index in range(200)]
    card, canonical = read(tmp_path, jsonl(rows), Options("jsonl"))
    assert card.part_rows == part_rows
    assert dealt(card, canonical) == part_rows


def dealt(card: Card, canonical: bytes) -> dict[str, int]:
    """Documents of each part, one by one."""
    assert card.deal is not None
    found = Counter(
        PARTS[part_of(document_bin(content(row)), row.get("part"), card.deal)]
        for row in map(json.loads, canonical.splitlines())
    )
    return {part: found[part] for part in PARTS}


def test_twenty_different_documents_are_enough(tmp_path: Path) -> None:
    card, _ = read(tmp_path, jsonl({"text": f"t{index}"} for index in range(NEEDED)), Options("jsonl"))
    assert card.part_rows == {"weights": 15, "alpha": 3, "validation": 1, "test": 1}


def test_ids_are_kept_as_they_came(tmp_path: Path) -> None:
    for dtype in ("uint16", "uint32"):
        ids = (np.arange(700_001) % 50_000).astype(f"<{dtype.replace('uint', 'u')[0]}{int(dtype[4:]) // 8}").tobytes()
        options = Options.from_json({"format": "tokens", "dtype": dtype, "vocab_size": 50_000, "eos_id": 7})
        card, canonical = read(tmp_path, ids, options)
        assert canonical == ids
        assert (card.kind, card.n_rows, card.n_characters) == ("tokens", 700_001, None)
        assert (card.settings.dtype, card.settings.vocab_size, card.settings.eos_id) == (dtype, 50_000, 7)
        assert read(
            tmp_path, files.packed(ids, "gzip"), Options.from_json({**options.to_json(), "compression": "gzip"})
        )


def test_ids_that_look_like_a_packed_file_are_ids(tmp_path: Path) -> None:
    ids = b"\x1f\x8b\x08\0" * MIN_BYTES
    card, _ = read(tmp_path, ids, Options("tokens", dtype="uint16", vocab_size=65536))
    assert card.n_rows == 2 * MIN_BYTES


def test_a_tokenizer_is_kept_as_it_came(tmp_path: Path) -> None:
    vocabulary = {"<eos>": 0, "a": 1, "b": 2}
    told = {"version": "1.0", "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "<eos>"}}
    card, canonical = read(tmp_path, json.dumps(told).encode(), Options("tokenizer"))
    assert json.loads(canonical) == told
    assert (card.kind, card.n_rows) == ("tokenizer", 3)


TEXTS = st.text(
    st.characters(codec="utf-8", exclude_characters="\0") | st.sampled_from('",\t\r\n;\\'), min_size=1, max_size=12
).filter(lambda text: bool(text.strip()))
ROWS = st.lists(st.fixed_dictionaries({"text": TEXTS, "label": st.sampled_from(["a", 'b"', "c\n"])}), max_size=30)
FORMATS = {
    "jsonl": jsonl,
    "csv": table,
    "tsv": lambda rows: table(rows, "\t"),
    "parquet": parquet,
}
slow = settings(deadline=None, max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])


def read_or_refusal(folder: Path, data: bytes, options: Options) -> Any:
    """What came of a file: its card and content, or what was said."""
    raw = folder / "raw"
    raw.write_bytes(data)
    try:
        card = ingest(raw, folder / "kept", options, max_bytes=1 << 20)
    except DataError as error:
        return str(error)
    return card, (folder / "kept" / card.file_name).read_bytes()


@slow
@given(ROWS)
def test_one_content_is_one_dataset_whatever_it_came_as(tmp_path: Path, rows: list[dict[str, str]]) -> None:
    rows = documents(40) + rows
    found = []
    for name, write in FORMATS.items():
        for compression in ("none", "gzip", "zstd") if name != "parquet" else ("none",):
            options = Options.from_json({"format": name})
            found.append(read_or_refusal(tmp_path, packed(write(rows), compression), options))
    assert all(each == found[0] for each in found)
    if not isinstance(found[0], str):
        assert found[0][0].n_rows == len(rows)
        assert [json.loads(line) for line in found[0][1].split(b"\n")[:-1]] == rows


@slow
@given(st.lists(TEXTS, min_size=1, max_size=40), st.randoms(use_true_random=False))
def test_dealing_keeps_equal_documents_together_and_does_not_look_at_order(
    tmp_path: Path, texts: list[str], shuffled: Any
) -> None:
    rows = [{"text": text} for text in [*texts, *texts[:10], *map(str, range(200))]]
    first = read_or_refusal(tmp_path, jsonl(rows), Options("jsonl"))
    shuffled.shuffle(rows)
    second = read_or_refusal(tmp_path, jsonl(rows), Options("jsonl"))
    assert first[0].deal == second[0].deal
    assert first[0].part_rows == second[0].part_rows == dealt(*second)
    assert first[0].n_duplicates == len(rows) - len({row["text"] for row in rows})
    assert sum(first[0].part_rows.values()) == len(rows)


@pytest.mark.parametrize("run", [1, 7, 1 << 20])
def test_duplicates_are_counted_exactly_across_runs(run: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digests, "RUN", run)
    groups: dict[str | None, digests.Digests] = {
        name: digests.Digests(tmp_path / f"{name}") for name in ("train", "validation", "test")
    }
    told = {"train": [*range(90), 5, 5, 95], "validation": list(range(80, 100)), "test": [3, 99]}
    for name, numbers in told.items():
        for number in numbers:
            groups[name].add(document_digest(str(number).encode()))
    found = digests.tally(groups)
    assert found.n_duplicates == 93 + 20 + 2 - 100
    assert found.n_left_out == 10 + 1 + 1 + 1  # of train 80 to 89, 95, and 3; of validation 99
    assert {name: int(counts.sum()) for name, counts in found.counts.items()} == {
        "train": 81, "validation": 19, "test": 2,
    }  # fmt: skip


def run(*arguments: str) -> tuple[int, dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, "-m", "nas.ingest", *arguments], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.stderr == ""
    told: dict[str, Any] = json.loads(done.stdout)
    return done.returncode, told


def test_a_process_of_its_own_tells_a_card_or_an_error(tmp_path: Path) -> None:
    raw, kept = tmp_path / "raw", tmp_path / "kept"
    raw.write_bytes(PROSE)
    status, told = run(str(raw), str(kept), "{}", "100000")
    assert status == 0
    assert Card.from_json(told["card"]).n_bytes == len(PROSE)
    assert raw.exists()
    assert run(str(raw), str(kept), "{}", "10") == (
        1,
        {
            "error": {
                "code": "too-large",
                "message": "the content is more than 10 bytes, the most allowed; give a part of it",
            }
        },
    )
    status, told = run(str(tmp_path / "none"), str(kept), "{}", "10")
    message = "the file cannot be read or kept: no such file or directory"  # and not where it was looked for
    assert (status, told["error"]) == (1, {"code": "storage", "message": message})
    assert run(str(raw), str(kept), "{}", "100000", "--move")[0] == 0
    assert not raw.exists()


def test_too_little_memory_is_told(tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    raw.write_bytes(jsonl([{"text": "x" * 15_000_000}]))
    limited = "import resource, runpy, sys; resource.setrlimit(resource.RLIMIT_DATA, (60 << 20, 60 << 20)); "
    limited += "runpy.run_module('nas.ingest', run_name='__main__', alter_sys=True)"
    arguments = [str(raw), str(tmp_path / "kept"), '{"format": "jsonl"}', str(1 << 30)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", limited, *arguments], capture_output=True, text=True, check=False, env=environment
    )
    message = "the file takes more memory to read than is allowed; write shorter rows, or another format"
    assert json.loads(done.stdout) == {"error": {"code": "too-large", "message": message}}, done.stderr
    assert not any((tmp_path / "kept").iterdir())


def test_a_reader_that_is_ended_leaves_nothing(tmp_path: Path) -> None:
    raw, kept = tmp_path / "raw", tmp_path / "kept"
    raw.write_bytes(jsonl(documents(200_000)))
    process = subprocess.Popen(
        [sys.executable, "-m", "nas.ingest", str(raw), str(kept), '{"format": "jsonl"}', "999999999"]
    )
    while not kept.exists() or not any(kept.iterdir()):
        assert process.poll() is None
    process.terminate()
    assert process.wait(30) == 143
    assert not any(kept.iterdir())


def test_reading_text_imports_neither_numpy_nor_pyarrow() -> None:
    code = "import sys, nas.ingest.read; print(sorted({'numpy', 'pyarrow', 'torch', 'tokenizers'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
