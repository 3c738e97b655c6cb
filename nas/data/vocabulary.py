"""What a tokenizer learns from the training parts: characters, words, or byte-level pairs.

Entries are sorted by falling frequency, equally frequent ones by text: the same training text gives the same ids, and
adaptive softmax finds the frequent ones first. Byte-level pairs: Sennrich et al. 2016 (arXiv:1508.07909) over bytes, as
in GPT-2 (Radford et al. 2019, section 2.2).
"""

from __future__ import annotations

import heapq
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain, groupby
from pathlib import Path

import numpy as np
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from nas.data.pieces import batches
from nas.errors import DataError

EOS, UNKNOWN = "<eos>", "<unk>"
MAX_WORDS = 2**20  # what a request may ask for at most, and so without asking too
BPE_BYTES = 32 << 20  # of text that pairs are learnt from; memory and time grow with it, the vocabulary hardly changes
_DISTINCT = 300_000  # words counted in memory, about 40 MB; more are put aside, sorted, and added up at the end
_STRETCH = 1 << 18  # characters that are taken or left together
_CODES = 0x110000  # of Unicode


class Training:
    """Pieces to learn from; `n_ends` is how many documents, each of which EOS ends, have gone by so far.

    Args:
        texts: pieces of each; read once.
        documents: whether each is one, or a stretch of a single text.
    """

    def __init__(self, texts: Iterable[Iterable[str]], *, documents: bool) -> None:
        self._texts = texts
        self._documents = documents
        self.n_ends = 0

    def __iter__(self) -> Iterator[str]:
        for text in self._texts:
            yield from text
            self.n_ends += self._documents


def learn_characters(training: Training) -> Tokenizer:
    """Each character is a token."""
    counts = np.zeros(_CODES, np.int64)
    for batch in batches(training):
        found = np.bincount(codes(batch))
        counts[: len(found)] += found
    entries = {chr(code): int(counts[code]) for code in np.flatnonzero(counts)}
    vocabulary = _by_frequency(entries | {EOS: training.n_ends, UNKNOWN: 0})
    made = Tokenizer(models.WordLevel(vocabulary, unk_token=UNKNOWN))
    made.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    made.decoder = decoders.Fuse()
    return made


def codes(pieces: Iterable[str]) -> np.ndarray[tuple[int], np.dtype[np.uint32]]:
    """The characters' numbers in Unicode."""
    return np.frombuffer("".join(pieces).encode("utf-32-le"), np.dtype("<u4"))


def learn_words(training: Training, vocab_size: int | None, min_count: int, scratch: Path | None = None) -> Tokenizer:
    """What stands between white space is a token, and so is each line end: EOS, as in WikiText.

    Args:
        training: what is counted.
        vocab_size: most entries, EOS and UNKNOWN among them; None: all words.
        min_count: words seldomer than this are left out.
        scratch: folder for counts that memory does not hold; None: the system's.

    Raises:
        DataError: there are more words than a vocabulary may have.
    """
    totals = {EOS: 0, UNKNOWN: 0}
    n_words = 0
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        words = _WordCounts(Path(folder))
        for batch in batches(training):
            totals[EOS] += sum(piece.count("\n") for piece in batch)
            words.add(chain.from_iterable(map(str.split, batch)))  # each piece by itself: documents end without a break
        totals[EOS] += training.n_ends

        def frequent() -> Iterator[tuple[int, str]]:
            nonlocal n_words
            for word, count in words.items():
                if word in totals:
                    totals[word] += count
                    continue
                totals[UNKNOWN] += count  # taken back below where the word is kept
                if count >= min_count:
                    n_words += 1
                    yield -count, word

        kept = heapq.nsmallest((vocab_size or MAX_WORDS) - len(totals), frequent())
    if vocab_size is None and n_words > len(kept):
        raise DataError(
            f"the training parts have {n_words:,} different words; set tokenizer.vocab_size to at most {MAX_WORDS:,}, "
            "or raise tokenizer.min_count"
        )
    totals[UNKNOWN] += sum(count for count, _ in kept)  # counts are negative here
    vocabulary = _by_frequency({word: -count for count, word in kept} | totals)
    found = Tokenizer(models.WordLevel(vocabulary, unk_token=UNKNOWN))
    # Python's white space, which counted the words: it has four control characters more than Unicode's.
    found.normalizer = normalizers.Sequence(
        [normalizers.Replace("\n", f" {EOS} "), normalizers.Replace(Regex("[\x1c-\x1f]"), " ")]
    )
    found.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    # A space before each word but the first, since none begins with the prefix " "; then line ends as they were.
    spaced = decoders.WordPiece(prefix=" ", cleanup=False)
    found.decoder = decoders.Sequence([spaced, decoders.Fuse(), decoders.Replace(Regex(f" ?{EOS} ?"), "\n")])
    return found


class _WordCounts:
    """How often each word stands, in memory that does not grow with the number of different ones."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._counts: Counter[str] = Counter()
        self._runs: list[Path] = []

    def add(self, words: Iterable[str]) -> None:
        self._counts.update(words)
        if len(self._counts) > _DISTINCT:
            self._put_aside()

    def _put_aside(self) -> None:
        self._runs.append(self._folder / str(len(self._runs)))
        with self._runs[-1].open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{word} {count}\n" for word, count in sorted(self._counts.items()))
        self._counts.clear()

    def items(self) -> Iterator[tuple[str, int]]:
        """Each word once."""
        if not self._runs:
            yield from self._counts.items()
            return
        if self._counts:
            self._put_aside()
        merged = heapq.merge(*map(_read_run, self._runs))
        for word, counts in groupby(merged, key=lambda item: item[0]):
            yield word, sum(count for _, count in counts)


def _read_run(path: Path) -> Iterator[tuple[str, int]]:
    with path.open(encoding="utf-8", newline="\n") as file:
        for line in file:
            word, count = line.split(" ")
            yield word, int(count)


def learn_pairs(training: Training, n_characters: int, vocab_size: int) -> Tokenizer:
    """Byte-level pairs, learnt from at most BPE_BYTES of the training text, evenly spread over it.

    Args:
        training: what is read.
        n_characters: how long it is, roughly; bytes will do.
        vocab_size: most entries, 256 bytes and EOS among them.
    """
    found = Tokenizer(models.BPE())
    found.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    found.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=[EOS],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    found.train_from_iterator(_spread(training, n_characters), trainer)
    return found


def _spread(pieces: Iterable[str], n_characters: int) -> Iterator[str]:
    """All of a short text; of a longer one every n-th stretch."""
    every = max(1, -(-n_characters // BPE_BYTES))
    at = 0
    for piece in pieces:
        if at // _STRETCH % every == 0:
            yield piece
        at += len(piece)


def _by_frequency(counts: dict[str, int]) -> dict[str, int]:
    """Ids of the entries."""
    return {entry: number for number, entry in enumerate(sorted(counts, key=lambda entry: (-counts[entry], entry)))}
