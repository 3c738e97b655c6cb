"""Built-in corpora are the same bytes at every read and hold no tests; files are refused when they are not text."""

import hashlib
from pathlib import Path

import pytest

from nas.catalog import DATASETS, TASKS
from nas.data import corpora
from nas.data.corpora import built_in, fingerprint, read_corpus, text_file
from nas.errors import DataError, InvalidInput
from nas.text import check_text


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """A folder laid out as a standard library is."""
    texts = {
        "zeta.py": b"zeta = 1\n",
        "alpha.py": b"alpha = 1\n",
        "pkg/__init__.py": b"",
        "pkg/core.py": b"core = 1\n",
        "pkg/data.txt": b"not a source\n",
        "pkg/test/test_core.py": b"hidden\n",
        "pkg/tests/test_core.py": b"hidden\n",
        "idlelib/idle_test/test_a.py": b"hidden\n",
        "test/test_alpha.py": b"hidden\n",
        "site-packages/other.py": b"hidden\n",
        "dist-packages/other.py": b"hidden\n",
        "__pycache__/alpha.py": b"hidden\n",
        "config-3.11-x86_64-linux-gnu/python-config.py": b"hidden\n",
        "_sysconfigdata__linux_x86_64-linux-gnu.py": b"hidden\n",
        "latin.py": b"# caf\xe9\n",
        "nul.py": b"a\0b\n",
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(text)
    return tmp_path


def test_sources_are_joined_in_the_order_of_their_paths_without_tests_and_undecodable_files(library: Path) -> None:
    assert corpora._python_stdlib(library) == b"alpha = 1\ncore = 1\nzeta = 1\n"


def test_stdlib_ends_before_the_file_that_would_cross_the_limit(library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpora, "STDLIB_LIMIT_BYTES", 20)
    assert corpora._python_stdlib(library) == b"alpha = 1\ncore = 1\n"


@pytest.mark.parametrize("name", sorted(DATASETS))
def test_built_in_corpus_is_text_and_the_same_at_every_read(name: str) -> None:
    corpus = read_corpus(name)
    assert corpus == read_corpus(name)
    assert 200_000 < len(corpus) <= corpora.STDLIB_LIMIT_BYTES
    check_text(corpus)


def test_python_docs_tells_of_the_language() -> None:
    assert b"Lambdas" in read_corpus("python-docs")


def test_fingerprint_is_the_sha256_of_the_text() -> None:
    assert fingerprint(b"abc") == hashlib.sha256(b"abc").hexdigest()


def test_unknown_dataset_names_the_known_ones(tmp_path: Path) -> None:
    known = ", ".join(sorted([*DATASETS, *TASKS, "mine"]))
    with pytest.raises(InvalidInput, match=rf"^unknown dataset 'nope'; known: {known}$"):
        built_in("nope", tmp_path, known=["mine"])


def test_a_text_at_hand_becomes_a_file_once(tmp_path: Path) -> None:
    first = text_file(b"some text", tmp_path / "cache")
    assert first.path.read_bytes() == b"some text"
    assert first.card.fingerprint == fingerprint(b"some text")
    made = first.path.stat().st_mtime_ns
    assert text_file(b"some text", tmp_path / "cache") == first
    assert first.path.stat().st_mtime_ns == made
    assert built_in("python-docs", tmp_path).path.read_bytes() == read_corpus("python-docs")
    assert not [*tmp_path.glob(".*")]


@pytest.mark.parametrize(
    ("corpus", "message"),
    [
        (b"", "the text is empty"),
        (b" \n\t\n", "the text is empty"),
        (b"abc\0def", "the file is binary: NUL byte at offset 3"),
        (b"abc \xff\xfe def", "the file is not UTF-8 text: invalid byte at offset 4"),
        (b"cut in a character \xc3", "the file is not UTF-8 text: invalid byte at offset 19"),
    ],
    ids=["empty", "blank", "nul", "invalid", "cut"],
)
def test_what_is_not_text_is_refused(corpus: bytes, message: str) -> None:
    with pytest.raises(DataError, match=f"^{message}"):
        check_text(corpus)
