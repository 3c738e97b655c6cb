"""A folder of text files: one document each, always in the same order."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nas.errors import DataError
from nas.ingest.folder import folder
from nas.ingest.options import Options
from nas.ingest.stream import MAX_ROW
from tests.nas.ingest.files import read


def write(root: Path, files: dict[str, bytes]) -> None:
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)


def test_files_are_documents_in_the_order_of_their_paths(tmp_path: Path) -> None:
    root = tmp_path / "in"
    outside = tmp_path / "outside.txt"
    outside.write_text("not ours")
    write(root, {"b.txt": b"second", "a/z.txt": "\ufefffirst é\n".encode(), "c": b"third", "blank.txt": b" \n"})
    write(root, {".hidden": b"x", ".git/config": b"x"})
    (root / "link.txt").symlink_to(outside)
    (root / "up").symlink_to(tmp_path)
    lines, options = folder(root)
    assert [json.loads(line)["text"] for line in lines] == ["first é\n", "second", "third"]
    assert options == Options("jsonl", "none")


def test_a_folder_becomes_a_dataset(tmp_path: Path) -> None:
    write(tmp_path / "in", {f"{index:03}.txt": f"text {index}".encode() for index in range(50)})
    lines, options = folder(tmp_path / "in")
    card, _ = read(tmp_path, b"".join(lines), options)
    assert (card.n_rows, card.labels) == (50, None)


def test_a_file_that_cannot_be_a_document_is_named(tmp_path: Path) -> None:
    cases = {
        "latin.txt": (b"caf\xe9", "file 'latin.txt': the file is not UTF-8: byte 0xe9 at offset 3, in line 1; "
            "save it as UTF-8"),
        "sub/nul.bin": (b"a\0", "file 'sub/nul.bin': the file is binary: NUL byte at offset 1, in line 1; "
            "give UTF-8 text"),
        "large.txt": (b"a" * (MAX_ROW // 2 + 1), "file 'large.txt' has 8,388,609 bytes, a document has at most "
            "8,388,608; give it alone as a plain text, or cut it"),
    }  # fmt: skip
    for number, (name, (content, message)) in enumerate(cases.items()):
        write(tmp_path / str(number), {name: content})
        with pytest.raises(DataError) as caught:
            list(folder(tmp_path / str(number))[0])
        assert str(caught.value) == message


def test_a_folder_without_texts_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"has no text files; give a folder with one file for each document$"):
        list(folder(tmp_path)[0])
    with pytest.raises(DataError, match=r"none is no folder; give a folder of text files$"):
        folder(tmp_path / "none")


@pytest.mark.parametrize("name", ["dataset_dict.json", "dataset_info.json"])
def test_a_folder_of_the_library_datasets_is_no_folder_of_texts(name: str, tmp_path: Path) -> None:
    write(tmp_path, {name: b"{}", "a.txt": b"text"})
    with pytest.raises(
        DataError, match=r"is what Dataset\.save_to_disk wrote, not a folder of texts; give it to --from-disk$"
    ):
        folder(tmp_path)
