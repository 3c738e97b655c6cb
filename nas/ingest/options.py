"""What a user says about a file that is to be read: its format, and which of its fields mean what.

Standard library only: the api builds it from query parameters, the command line from its options.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import PurePath
from typing import Any, Literal, get_args

from nas.ingest.card import GIVEN_PARTS
from nas.ingest.errors import WrongOptions

Format = Literal["auto", "text", "jsonl", "csv", "tsv", "parquet", "tokens", "tokenizer"]
Compression = Literal["auto", "none", "gzip", "zstd"]
Dtype = Literal["uint16", "uint32"]
FORMATS: tuple[Format, ...] = get_args(Format)
COMPRESSIONS: tuple[Compression, ...] = get_args(Compression)
DTYPES: tuple[Dtype, ...] = get_args(Dtype)
CORPORA = ("enwik8", "text8", "wikitext-2", "wikitext-103", "mrpc", "sst-2")
TABLES = ("jsonl", "csv", "tsv", "parquet")  # formats whose rows are documents
HUNDRED_MILLION = ("enwik8", "text8")  # corpora of so many bytes, cut at 90 and 95 million (Transformer-XL and others)
STANDARD_BYTES, STANDARD_ENDS = 100_000_000, (90_000_000, 95_000_000)
_SUFFIXES: Mapping[str, Format] = {
    **dict.fromkeys((".txt", ".text", ".md", ".raw"), "text"),
    **dict.fromkeys((".jsonl", ".ndjson", ".json"), "jsonl"),
    ".csv": "csv",
    **dict.fromkeys((".tsv", ".tab"), "tsv"),
    **dict.fromkeys((".parquet", ".pq"), "parquet"),
    ".bin": "tokens",
}
_COMPRESSED: Mapping[str, Compression] = {".gz": "gzip", ".gzip": "gzip", ".zst": "zstd", ".zstd": "zstd"}


@dataclass(frozen=True)
class Options:
    """How to read a file; the defaults suit a text, and rows that call their fields "text" and "label".

    Args:
        format: "auto": by the first bytes where they tell (parquet), else text.
        compression: "auto": by the first bytes.
        text: name of the field or column that holds a document; None: "text".
        pair: name of the one that holds a second text, as in paraphrases.
        label: name of the one that holds the document's label; None: "label" where the rows have it.
        words: name of the one that holds a list of words, instead of a text.
        labels: name of the one that holds a label for each word.
        corpus: name of the standard corpus, one of CORPORA.
        ends: of a text: byte offsets at which the training and the validation part end; those of HUNDRED_MILLION are
            known.
        dtype: of tokens.
        vocab_size: of tokens: ids are below it.
        eos_id: of tokens: the id that ends a document.
        part: what all rows are given as: "train", "validation" or "test"; None: a field "part" says so, or we deal.
    """

    format: Format = "auto"
    compression: Compression = "auto"
    text: str | None = None
    pair: str | None = None
    label: str | None = None
    words: str | None = None
    labels: str | None = None
    corpus: str | None = None
    ends: tuple[int, int] | None = None
    dtype: Dtype | None = None
    vocab_size: int | None = None
    eos_id: int | None = None
    part: str | None = None

    @property
    def is_table(self) -> bool:
        return self.format in TABLES

    @staticmethod
    def guess(file_name: str) -> Options:
        """Format and compression by a name's suffixes, such as reviews.jsonl.gz; "auto" where they do not tell."""
        path = PurePath(file_name.lower())
        compression = _COMPRESSED.get(path.suffix, "auto")
        if compression != "auto":
            path = PurePath(path.stem)
        if path.name == "tokenizer.json":
            return Options("tokenizer", compression)
        return Options(_SUFFIXES.get(path.suffix, "auto"), compression)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Options:
        """Read what `to_json` gave.

        Raises:
            WrongOptions: an unknown member, or what `check` refuses.
        """
        known = {each.name for each in fields(cls)}
        if unknown := sorted(set(data) - known):
            raise WrongOptions(f"unknown option {unknown[0]!r}; known: {', '.join(sorted(known))}")
        values = dict(data)
        if isinstance(values.get("ends"), list):
            values["ends"] = tuple(values["ends"])
        options = cls(**values)
        options.check()
        return options

    def to_json(self) -> dict[str, Any]:
        """Without what is as by default."""
        default = asdict(Options())
        return {name: value for name, value in asdict(self).items() if value != default[name]}

    def check(self) -> None:
        """Raises: WrongOptions: values that are unknown, or do not go together."""
        _one_of("format", self.format, FORMATS)
        _one_of("compression", self.compression, COMPRESSIONS)
        for name, known in (("corpus", CORPORA), ("dtype", DTYPES), ("part", GIVEN_PARTS)):
            if getattr(self, name) is not None:
                _one_of(name, getattr(self, name), known)
        for name in ("text", "pair", "label", "words", "labels"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, str) and 0 < len(value) <= 200):
                raise WrongOptions(f"{name} is {value!r:.300}; give the name of a field, of 1 to 200 characters")
        self._check_corpus()
        self._check_fields()
        self._check_tokens()
        if self.ends is not None:
            self._check_ends(self.ends)

    def _check_corpus(self) -> None:
        """The published files of some are texts, those of the others rows: else its name would be no more than that."""
        if self.corpus in ("wikitext-2", "wikitext-103") and self.ends is None:
            raise WrongOptions(f"corpus is {self.corpus}, which has parts of its own; give the ends of the first two")
        if self.corpus is None or self.format == "auto":
            return
        wanted = TABLES if self.corpus in ("mrpc", "sst-2") else ("text",)
        if self.format not in wanted:
            raise WrongOptions(
                f"corpus is {self.corpus}, the format is {self.format}; give {', '.join(wanted)}, or no corpus"
            )

    def _check_fields(self) -> None:
        for name in ("text", "pair", "label", "words", "labels", "part"):
            if getattr(self, name) is not None and not (self.is_table or self.format == "auto"):
                raise WrongOptions(f"{name} is for rows, the format is {self.format}; give one of {', '.join(TABLES)}")
        if (self.words is None) != (self.labels is None):
            raise WrongOptions("words and labels go together; name the fields of both, or of neither")
        if self.words is not None and not (self.text is self.pair is self.label is None):
            raise WrongOptions("words and labels stand instead of text, pair and label; give the ones or the others")
        if self.words is not None and self.format in ("csv", "tsv"):
            raise WrongOptions(f"words and labels are lists, which {self.format} has not; give jsonl or parquet")
        text = self.text or ("text" if self.words is None else None)
        named = [name for name in (text, self.pair, self.label, self.words, self.labels) if name]
        if len(set(named)) < len(named):
            raise WrongOptions(f"one field is named for two things: {', '.join(named)}; name different fields")

    def _check_tokens(self) -> None:
        if self.format != "tokens":
            for name in ("dtype", "vocab_size", "eos_id"):
                if getattr(self, name) is not None:
                    raise WrongOptions(f"{name} is for tokens, the format is {self.format}; give format tokens")
            return
        if self.dtype is None or self.vocab_size is None:
            raise WrongOptions("tokens need a dtype (uint16 or uint32) and a vocab_size; give both")
        most = 1 << (16 if self.dtype == "uint16" else 31)  # indices of a table of embeddings are signed
        if not _is_int(self.vocab_size) or not 2 <= self.vocab_size <= most:
            raise WrongOptions(f"vocab_size is {self.vocab_size!r:.80}; {self.dtype} allows 2 to {most:,}")
        if self.eos_id is not None and not (_is_int(self.eos_id) and 0 <= self.eos_id < self.vocab_size):
            raise WrongOptions(f"eos_id is {self.eos_id!r:.80}; give an id below vocab_size, {self.vocab_size:,}")

    def _check_ends(self, ends: tuple[int, int]) -> None:
        if self.format not in ("text", "auto"):
            raise WrongOptions(f"ends are for a text, the format is {self.format}; give format text")
        if not (isinstance(ends, tuple) and len(ends) == 2 and all(map(_is_int, ends)) and 0 < ends[0] < ends[1]):
            raise WrongOptions(f"ends are {ends!r:.80}; give two growing byte offsets")
        if self.corpus in HUNDRED_MILLION and ends != STANDARD_ENDS:
            raise WrongOptions(
                f"ends are {ends[0]:,} and {ends[1]:,}, those of {self.corpus} are 90,000,000 and 95,000,000; "
                "leave them out, or leave out the corpus"
            )


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _one_of(name: str, value: object, known: tuple[str, ...]) -> None:
    if value not in known:
        raise WrongOptions(f"unknown {name} {value!r:.80}; known: {', '.join(known)}")
