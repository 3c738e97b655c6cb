"""Vocabularies are those of the training text, sorted as the head wants them; what is encoded decodes again."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import models, pre_tokenizers, processors

from nas.config.task import Tokenizer
from nas.data import pieces as pieces_module
from nas.data import vocabulary
from nas.data.pieces import pieces
from nas.data.tokenizer import Bytes, Characters, Encoder, Library, Words, from_file, learn, with_fingerprint
from nas.data.vocabulary import Training
from nas.errors import DataError
from nas.ingest.card import Settings
from tests.encoding import chosen

PROSE = "".join(
    f"the {n % 7} cats and {n % 5} dogs saw\n\tthe <unk> moon {n}, so\u00e9 \u20ac\U0001f600\n" for n in range(60)
)
SPACES = [chr(code) for code in range(0x3001) if chr(code).isspace()]
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)


def learnt(kind: str | dict[str, object], text: str, n_documents: int = 0) -> Encoder:
    """A tokenizer that has read this text, or so many documents that each are it."""
    training = Training([pieces([text.encode()]) for _ in range(n_documents or 1)], documents=n_documents > 0)
    return learn(chosen(kind), training, n_bytes=len(text.encode()))


def ids(encoder: Encoder, *text: str) -> list[int]:
    return encoder.encode(text)[0].tolist()


def library(encoder: Encoder) -> tokenizers.Tokenizer:
    content = encoder.to_json()
    assert content is not None
    return tokenizers.Tokenizer.from_str(content)


def in_order(encoder: Encoder) -> list[str]:
    vocabulary = library(encoder).get_vocab()
    return sorted(vocabulary, key=lambda entry: vocabulary[entry])


def test_bytes_are_what_utf8_is_and_end_a_document_with_the_one_that_no_text_holds() -> None:
    found, lengths = Bytes().encode(["né", "", "€"])
    assert found.tolist() == [110, 195, 169, 226, 130, 172]
    assert lengths.tolist() == [3, 0, 3]
    assert (Bytes.vocab_size, Bytes.eos_id, Bytes().to_json()) == (256, 0, None)


def test_characters_are_sorted_by_falling_frequency_then_by_text() -> None:
    encoder = learnt("characters", "bbaac\n")
    assert in_order(encoder) == ["a", "b", "\n", "c", "<eos>", "<unk>"]
    assert ids(encoder, "cab", "\n?") == [3, 0, 1, 2, 5]
    assert encoder.eos_id == 4
    assert in_order(learnt("characters", "bbaac\n", n_documents=2))[2:] == ["\n", "<eos>", "c", "<unk>"]


@given(text=texts)
def test_known_characters_decode_to_the_text(text: str) -> None:
    encoder = learnt("characters", text)
    assert library(encoder).decode(ids(encoder, text)) == text


@pytest.mark.parametrize("kind", ["characters", "words"])
@given(text=texts | st.text(st.sampled_from("theca é\n\r" + "".join(SPACES)), max_size=40))
def test_our_own_look_up_finds_what_the_library_finds(kind: str, text: str) -> None:
    encoder = learnt(kind, PROSE)
    assert isinstance(encoder, Characters | Words)
    found, lengths = encoder.encode([text, "the", text])
    same, as_long = Library.encode(encoder, [text, "the", text])
    np.testing.assert_array_equal(found, same)
    np.testing.assert_array_equal(lengths, as_long)
    assert found.dtype == same.dtype == np.uint8


def test_words_are_counted_with_line_ends_and_unknown_ones_among_them() -> None:
    encoder = learnt("words", "b a b\n\na <unk> c\n")
    assert in_order(encoder) == ["<eos>", "a", "b", "<unk>", "c"]
    assert ids(encoder, "a b\n", "new\n") == [1, 2, 0, 3, 0]
    assert in_order(learnt("words", "a a a b\n", n_documents=4))[:3] == ["a", "<eos>", "b"]  # 12, 4 + 4, 4


@pytest.mark.parametrize(
    ("options", "entries"),
    [
        ({}, ["d", "c", "b", "<eos>", "a", "<unk>"]),
        ({"min_count": 2}, ["d", "c", "b", "<eos>", "<unk>"]),
        ({"min_count": 3}, ["d", "<unk>", "c", "<eos>"]),
    ],
    ids=["all", "twice", "thrice"],
)
def test_seldom_words_become_unknown_which_stands_where_its_frequency_is(
    options: dict[str, object], entries: list[str]
) -> None:
    encoder = learnt({"type": "words", **options}, "a b b c c c d d d d\n")
    counts = {"d": 4, "c": 3, "b": 2, "a": 1, "<eos>": 1, "<unk>": 0}
    left_out = [word for word in counts if word not in entries]
    counts["<unk>"] = sum(counts.pop(word) for word in left_out)
    assert in_order(encoder) == sorted(counts, key=lambda word: (-counts[word], word))
    assert set(in_order(encoder)) == set(entries)


def test_most_frequent_words_fill_the_vocabulary() -> None:
    text = " ".join(f"w{number} " * (400 - number) for number in range(300))
    encoder = learnt({"type": "words", "vocab_size": 257}, text)
    kept = in_order(encoder)
    assert len(kept) == encoder.vocab_size == 257
    assert kept[0] == "<unk>"  # 45 words that stand 122.6 times on average
    assert kept[1:-1] == [f"w{number}" for number in range(255)]
    assert kept[-1] == "<eos>"
    assert ids(encoder, "w254 w255") == [255, 0]


@given(text=st.text(st.sampled_from("ab<>é" + "".join(SPACES)), max_size=40))
def test_words_are_pythons_whatever_the_white_space(text: str) -> None:
    encoder = learnt("words", text)
    words = in_order(encoder)
    assert [words[number] for number in ids(encoder, text)] == text.replace("\n", " <eos> ").split()
    assert set(words) == {*text.split(), "<eos>", "<unk>"}


def test_decoded_words_are_apart_and_lines_end_where_they_did() -> None:
    text = "\n = Head = \n\none ##two\nthree"
    encoder = learnt("words", text)
    assert library(encoder).decode(ids(encoder, text)) == "\n= Head =\n\none ##two\nthree"


def test_words_counted_in_several_runs_are_those_counted_in_one(monkeypatch: pytest.MonkeyPatch) -> None:
    once = learnt("words", PROSE).to_json()
    monkeypatch.setattr(vocabulary, "_DISTINCT", 10)
    monkeypatch.setattr(pieces_module, "BLOCK", 100)
    assert learnt("words", PROSE).to_json() == once


def test_too_many_words_are_refused_with_what_would_be_right(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vocabulary, "MAX_WORDS", 5)
    assert learnt("words", "a b c a\n").vocab_size == 5
    with pytest.raises(DataError, match=r"^the training parts have 4 different words; set tokenizer\.vocab_size to"):
        learnt("words", "a b c d a\n")


@given(text=texts)
def test_pairs_decode_to_any_text(text: str) -> None:
    encoder = learnt({"type": "bpe", "vocab_size": 300}, PROSE)
    assert encoder.vocab_size == 300
    assert library(encoder).decode(ids(encoder, text)) == text


def test_pairs_join_what_is_frequent_and_a_written_end_ends_nothing() -> None:
    encoder = learnt({"type": "bpe", "vocab_size": 300}, PROSE)
    assert "the" in in_order(encoder)
    assert {"<eos>"} == set(in_order(encoder)[:1])
    assert encoder.eos_id not in ids(encoder, "a <eos> b")
    assert library(encoder).decode(ids(encoder, "a <eos> b")) == "a <eos> b"


def test_pairs_are_learnt_from_stretches_all_over_a_long_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vocabulary, "BPE_BYTES", 100)
    monkeypatch.setattr(vocabulary, "_STRETCH", 10)
    lines = [f"{number:04}\n" for number in range(200)]  # 1,000 bytes: every tenth stretch
    assert list(vocabulary._spread(lines, 1000)) == [line for n, line in enumerate(lines) if n // 2 % 10 == 0]
    assert list(vocabulary._spread(lines, 100)) == lines


def saved(folder: Path, special: Iterable[str] = (), words: Iterable[str] = ("a", "b", "[UNK]")) -> Path:
    """A tokenizer.json as somebody may have it: it cuts, pads, and puts something before each text."""
    made = tokenizers.Tokenizer(models.WordLevel({word: n for n, word in enumerate(words)}, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    made.post_processor = processors.TemplateProcessing(single="b $A", special_tokens=[("b", 1)])
    made.enable_truncation(2)
    made.enable_padding(length=9)
    made.add_special_tokens(list(special))
    path = folder / "tokenizer.json"
    made.save(str(path))
    return path


def panicking() -> tokenizers.Tokenizer:
    """The library panics with it; that is no Exception."""
    own = tokenizers.Tokenizer(models.WordLevel({"a": 0}, unk_token="a"))
    own.pre_tokenizer = pre_tokenizers.FixedLength(0)
    return own


@pytest.mark.parametrize(
    ("special", "words", "eos_id", "vocab_size"),
    [
        (["[PAD]", "[SEP]", "</s>"], ["a", "b", "[UNK]"], 5, 6),
        (["[PAD]"], ["a", "b", "[UNK]"], 4, 5),
        ([], ["a", "b", "<eos>", "[UNK]"], 2, 4),
    ],
    ids=["named", "appended", "of the vocabulary"],
)
def test_a_file_brings_its_end_of_a_document_or_gets_one(
    tmp_path: Path, special: list[str], words: list[str], eos_id: int, vocab_size: int
) -> None:
    encoder = from_file(saved(tmp_path, special, words))
    assert (encoder.eos_id, encoder.vocab_size) == (eos_id, vocab_size)
    assert ids(encoder, "a b a b", "b") == [0, 1, 0, 1, 1]  # neither cut nor padded, and nothing before
    again = library(encoder)
    assert again.truncation is None
    assert again.padding is None
    assert again.get_vocab_size() == vocab_size


def test_a_file_encodes_the_same_text_in_the_same_way_each_time(tmp_path: Path) -> None:
    pairs = models.BPE(vocab={"a": 0, "aa": 1, "aaaa": 2}, merges=[("a", "a"), ("aa", "aa")], dropout=0.5)
    path = tmp_path / "dropout.json"
    tokenizers.Tokenizer(pairs).save(str(path))
    encoder = from_file(path)
    assert ids(encoder, *["a" * 8] * 50) == [2] * 100
    assert library(encoder).model.dropout is None


def test_an_end_of_a_document_that_would_be_another_entry_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "gaps.json"
    tokenizers.Tokenizer(models.WordLevel({"[UNK]": 0, "b": 2}, unk_token="[UNK]")).save(str(path))
    with pytest.raises(DataError) as caught:
        from_file(path)
    assert str(caught.value) == (
        "the tokenizer has no end of a document (<eos>), and its ids have gaps: 2, the next one, is 'b'; "
        "give it the entry <eos>"
    )


@pytest.mark.parametrize(
    ("own", "reason"),
    [
        (tokenizers.Tokenizer(models.WordLevel({"a": 0})), "WordLevel error: Missing [UNK] token from the vocabulary"),
        (panicking(), "chunk size must be non-zero"),
    ],
    ids=["unknown", "panic"],
)
def test_a_file_that_cannot_encode_is_told_as_such(own: tokenizers.Tokenizer, reason: str, tmp_path: Path) -> None:
    own.save(str(tmp_path / "own.json"))
    encoder = from_file(tmp_path / "own.json")
    with pytest.raises(DataError) as caught:
        encoder.encode(["b"])
    assert str(caught.value) == f"the tokenizer cannot encode the dataset: {reason}; use another tokenizer"


def test_a_file_is_known_by_its_fingerprint_and_refused_under_another(tmp_path: Path) -> None:
    path = saved(tmp_path)
    digest = Settings(kind="tokenizer").digest()
    digest.update(path.read_bytes())
    named = Tokenizer(type="file", name="mine")
    assert with_fingerprint(named, path).fingerprint == digest.hexdigest()
    wrong = named.model_copy(update={"fingerprint": "0" * 64})
    with pytest.raises(DataError, match=r"^the file of tokenizer 'mine' has fingerprint [0-9a-f]{64}, not 0{64} as"):
        with_fingerprint(wrong, path)


LONG = st.lists(st.sampled_from(["a", "é", "€", " ", "\t", "\n", "bcd" * 5, "€" * 9]), max_size=60).map("".join)


@given(text=LONG, sizes=st.lists(st.integers(1, 20), min_size=1, max_size=80))
def test_pieces_rejoin_to_the_text_and_are_the_same_however_it_is_read(text: str, sizes: list[int]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pieces_module, "LONGEST", 16)
        content = text.encode()
        found = list(pieces([content]))
        assert "".join(found) == text
        assert all(0 < len(piece.encode()) <= 16 for piece in found)
        blocks, at = [], 0
        for size in [*sizes, len(content)]:
            blocks.append(content[at : at + size])
            at += size
        assert list(pieces(blocks)) == found


def test_long_lines_are_cut_before_white_space_or_hard_between_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces_module, "LONGEST", 8)
    assert list(pieces([b"ab cd ef gh\n"])) == ["ab cd", " ef gh\n"]
    assert list(pieces(["€€€€\n".encode()])) == ["€€", "€€\n"]
    assert list(pieces([b" bcdefghij\n"])) == [" bcdefgh", "ij\n"]
    assert list(pieces([b"short\n\nlast"])) == ["short\n", "\n", "last"]
