"""How an exported model's text becomes token ids, and ids text: by bytes, by its tokenizer.json, or not at all.

It is joined into `model.py` as nas.export.program is, so the same rules hold. What the network's config does not say
stands in the export's text.json; without one the model is a language model of bytes, and tokenizer.json says it all.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Protocol

OBJECTIVES = ("causal_lm", "masked_lm", "sequence_classification", "token_classification")


@dataclass(frozen=True)
class Form:
    """What goes into a model and comes out.

    Args:
        objective: one of OBJECTIVES.
        tokenizer: "bytes"; "ids" where the model reads token ids; else the type of what made tokenizer.json.
        eos_id: ends a document, and stands before one that is to be classified; None: nothing does.
        mask_id: stands for a hidden token; of masked_lm only.
        labels: of the classes, by number; None: they have no names.
    """

    objective: str
    tokenizer: str
    eos_id: int | None = None
    mask_id: int | None = None
    labels: Sequence[str] | None = None

    @property
    def classifies(self) -> bool:
        return self.objective in ("sequence_classification", "token_classification")

    def label(self, number: int) -> str:
        return str(number) if self.labels is None else harmless(self.labels[number])


def read_form(folder: Path) -> Form:
    """Of an export's folder.

    Raises:
        ValueError: a file is missing or damaged.
    """
    path = folder / "text.json"
    if path.exists():
        values = read_json(path)
        try:
            form = Form(**{each.name: values[each.name] for each in fields(Form)})
        except (KeyError, TypeError) as error:
            raise ValueError(f"{path} does not tell how text becomes token ids: {error}") from error
        if form.objective not in OBJECTIVES:
            raise ValueError(f"{path} has objective {form.objective!r}; known: {', '.join(OBJECTIVES)}")
        return form
    tokenizer = read_json(folder / "tokenizer.json")
    if not isinstance(tokenizer, dict) or tokenizer.get("type") != "bytes":
        raise ValueError(f"{folder / 'tokenizer.json'} is not of type 'bytes', and there is no text.json beside it")
    mask_id = tokenizer.get("mask_id")
    return Form("causal_lm" if mask_id is None else "masked_lm", "bytes", 0, mask_id)


def read_json(path: Path) -> Any:
    """Raises: ValueError: the file is missing or no JSON."""
    try:
        return json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(f"cannot read {path}: {error}") from error


class Vocabulary(Protocol):
    """A model's token ids and what they stand for."""

    def ids(self, text: str) -> list[int]:
        """Of what was typed."""

    def masked(self, text: str, mask: str, mask_id: int) -> list[int]:
        """The same with mask_id wherever the mask stands."""

    def text(self, ids: Iterable[int]) -> str:
        """What ids stand for, harmless to a terminal."""


def read_vocabulary(folder: Path, form: Form) -> Vocabulary:
    """Of an export's folder. Raises: ValueError: as `LibraryVocabulary`."""
    if form.tokenizer == "ids":
        return IdVocabulary()
    return ByteVocabulary() if form.tokenizer == "bytes" else LibraryVocabulary(folder / "tokenizer.json", form)


def printable(data: bytes) -> str:
    """UTF-8 text of sampled bytes; what is no character, or would command the terminal, becomes U+FFFD."""
    return harmless(data.decode("utf-8", "replace"))


def harmless(text: str) -> str:
    """The text with U+FFFD for what would command the terminal."""
    return "".join(each if each.isprintable() or each in "\n\t" else "\ufffd" for each in text)


class ByteVocabulary:
    """A token is a byte."""

    def ids(self, text: str) -> list[int]:
        return list(os.fsencode(text))  # the very bytes that were typed

    def masked(self, text: str, mask: str, mask_id: int) -> list[int]:
        (hidden,) = os.fsencode(mask)
        return [mask_id if each == hidden else each for each in self.ids(text)]

    def text(self, ids: Iterable[int]) -> str:
        return printable(bytes(ids))


class IdVocabulary:
    """What is typed is token ids, with spaces between."""

    def ids(self, text: str) -> list[int]:
        """Raises: ValueError: something else is."""
        for each in text.split():
            if not (each.isascii() and each.isdigit()):
                raise ValueError(f"--ids has {each!r}; it must be whole numbers with spaces between")
        return [int(each) for each in text.split()]

    def masked(self, text: str, mask: str, mask_id: int) -> list[int]:
        return [mask_id if each == mask else self.ids(each)[0] for each in text.split()]

    def text(self, ids: Iterable[int]) -> str:
        return " ".join(map(str, ids))


class LibraryVocabulary:
    """A tokenizer.json of the library `tokenizers`.

    Args:
        path: of the file.
        form: of the model.

    Raises:
        ValueError: the library is not installed, or cannot read the file.
    """

    def __init__(self, path: Path, form: Form) -> None:
        try:
            from tokenizers import Tokenizer
        except ImportError:
            raise ValueError("this model's tokenizer.json needs a package more: pip install tokenizers") from None
        try:
            self.found = Tokenizer.from_file(str(path))
        except Exception as error:  # the library raises nothing narrower
            raise ValueError(f"cannot read {path}: {error}") from error
        self.eos_id = form.eos_id
        self.carries_spaces = form.tokenizer in ("bpe", "file")
        if form.tokenizer == "bpe":  # as in training, and not told by the file: "<eos>" in a text ends nothing
            self.found.encode_special_tokens = True

    def ids(self, text: str) -> list[int]:
        """As `Vocabulary.ids`: line by line, as in training, so that no token reaches over a line's end."""
        lines = re.findall(r"[^\n]*\n|[^\n]+", text)
        return [each for line in lines for each in self.found.encode(line, add_special_tokens=False).ids]

    def masked(self, text: str, mask: str, mask_id: int) -> list[int]:
        """As `Vocabulary.masked`; where tokens begin with the space before a word, the hidden ones do too."""
        first, *others = text.split(mask)
        pieces = [piece.rstrip(" ") if self.carries_spaces else piece for piece in [first, *others[:-1]]]
        ids = self.ids(pieces[0] if others else first)
        for piece in [*pieces[1:], *others[-1:]]:
            ids += [mask_id, *self.ids(piece)]
        return ids

    def text(self, ids: Iterable[int]) -> str:
        """As `Vocabulary.text`; each end of a document is a line break."""
        documents: list[list[int]] = [[]]
        for each in ids:
            if each == self.eos_id:
                documents.append([])
            else:
                documents[-1].append(each)
        return harmless("\n".join(self.found.decode(each, skip_special_tokens=False) for each in documents))
