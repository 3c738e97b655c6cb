"""Rows become documents: checked, written as canonical lines, counted, and dealt to the four parts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from nas.ingest.card import BINS, GIVEN_PARTS, PARTS, Card, document_digest
from nas.ingest.dealing import NEEDED, NEEDED_TRAIN, deal_all, deal_given, rows_of_parts
from nas.ingest.digests import Digests, Tally, tally
from nas.ingest.errors import BadLabels
from nas.ingest.facts import Characters, Lengths
from nas.ingest.fields import (
    MAX_LABEL_CHARACTERS,
    MAX_LABELS,
    Fields,
    bad_text,
    half_a_character,
    label_of,
    labels_of,
    late,
    part_of_row,
)
from nas.ingest.sink import Sink
from nas.ingest.stream import BLOCK, MAX_ROW, row_too_large
from nas.text import TooShort

_quote = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class Documents:
    """Takes rows one by one; `card` ends it.

    Args:
        scratch: folder for the digests.
    """

    def __init__(self, fields: Fields, sink: Sink, scratch: Path) -> None:
        self._fields = fields
        self._sink = sink
        self._scratch = scratch
        self._n_rows = 0
        self._groups: dict[str | None, Digests] = {}
        self._given: dict[str | None, int] = {}  # rows
        self._labels: dict[str, list[int]] = {}  # how often, and the first bin of training documents
        self._n_label_characters = 0
        self._characters = Characters()
        self._lengths = Lengths()
        self._pending: list[bytes] = []
        self._n_pending = 0
        self._samples: list[dict[str, Any]] = []

    def add(self, number: int, row: dict[str, Any]) -> None:
        """Check a row and write its document.

        Raises:
            BadRow, BadLabels, TooLarge: with the row's number.
        """
        fields = self._fields
        given = part_of_row(fields.part, number, row) if fields.part is not None else fields.given
        if fields.words is not None:
            words, labels = labels_of(fields, number, row)
            texts = [" ".join(words)]
            said = f'{{"words":{_quote(words)}'
            label_json = f',"labels":{_quote(labels)}'
        else:
            texts, said = self._texts(number, row)
            labels, label_json = [], ""
            if fields.label is not None:
                value = row.get(fields.label)
                seen = isinstance(value, str) and value in self._labels
                label = str(value) if seen else label_of(fields.label, number, row)
                labels, label_json = [label], f',"label":{_quote(label)}'
        for name in fields.absent:
            if name in row:
                raise late(name, number)
        part_json = "" if given is None else f',"part":"{given}"'
        try:
            content = said.encode()
            line = content + f"{label_json}{part_json}}}\n".encode()
            self._look([text.encode() for text in texts])
        except UnicodeEncodeError:
            raise half_a_character(number) from None
        if len(line) > MAX_ROW:
            raise row_too_large("row", number)
        self._sink.write(line)
        digest = document_digest(content + b"}")
        self._group(given).add(digest)
        self._given[given] += 1
        self._n_rows += 1
        if labels:
            self._count(number, labels, digest >> 48 if given in (None, "train") else BINS)
        if len(self._samples) < 3:
            self._samples.append({name: _cut(value) for name, value in json.loads(line).items()})

    def _texts(self, number: int, row: dict[str, Any]) -> tuple[list[str], str]:
        """Of the text and the pair: themselves, and the beginning of the canonical JSON."""
        texts = []
        for name in (self._fields.text, self._fields.pair):
            if name is None:
                continue
            text = row.get(name)
            if not isinstance(text, str) or not text or text.isspace() or "\0" in text:
                raise bad_text(name, number, row)
            texts.append(text)
        said = f'{{"text":{_quote(texts[0])}'
        return texts, said if len(texts) == 1 else f'{said},"pair":{_quote(texts[1])}'

    def _group(self, given: str | None) -> Digests:
        if given not in self._groups:
            self._groups[given] = Digests(self._scratch / f"digests-{given}")
            self._given[given] = 0
        return self._groups[given]

    def _count(self, number: int, labels: list[str], bin_number: int) -> None:
        for label in labels:
            known = self._labels.get(label)
            if known is None:
                if len(self._labels) == MAX_LABELS:
                    raise BadLabels(
                        f"row {number:,} brings one label more than {MAX_LABELS:,}, {label!r:.80}; "
                        "name a field of classes, or leave the labels out"
                    )
                self._n_label_characters += len(label)
                if self._n_label_characters > MAX_LABEL_CHARACTERS:
                    raise BadLabels(
                        f"row {number:,} brings the labels to more than {MAX_LABEL_CHARACTERS:,} characters together; "
                        "give shorter names, or leave the labels out"
                    )
                self._labels[label] = [1, bin_number]
            else:
                known[0] += 1
                if bin_number < known[1]:
                    known[1] = bin_number

    def _look(self, texts: list[bytes]) -> None:
        self._pending += texts
        self._n_pending += sum(map(len, texts))
        if self._n_pending >= BLOCK or len(self._pending) >= BLOCK >> 4:
            self._flush()

    def _flush(self) -> None:
        self._characters.feed(b"".join(self._pending))
        pairs = 1 if self._fields.pair is None else 2
        lengths = iter(map(len, self._pending))
        self._lengths.feed(map(sum, zip(*[lengths] * pairs, strict=True)))
        self._pending.clear()
        self._n_pending = 0

    def card(self) -> Card:
        """The dataset's card, once all rows have been added.

        Raises:
            BadLabels: one class only, or one that no training document has.
            TooShort: a part would be empty.
        """
        self._flush()
        named = {name: self._given[name] for name in GIVEN_PARTS if name in self._given}
        _check_named(named, self._n_rows)
        found = tally(self._groups)
        counts = sorted((label, often) for label, (often, _) in self._labels.items())
        if len(counts) == 1:
            raise BadLabels(
                f"all {self._n_rows:,} documents have one label, {counts[0][0]!r}; give at least two classes"
            )
        deal = deal_given(found, named) if named else deal_all(found)
        part_rows = rows_of_parts(deal, found)
        self._check_parts(part_rows, found, named)
        self._check_labels(deal[2] if named else deal[1])
        return Card(
            self._sink.fingerprint(),
            self._sink.settings,
            self._sink.n_bytes,
            self._n_rows,
            n_characters=len(self._characters),
            lengths=self._lengths.histogram(),
            label_kind=None if not counts else "token" if self._fields.words is not None else "sequence",
            labels=dict(counts) if counts else None,
            given_parts=named or None,
            deal=deal,
            part_rows=part_rows,
            n_duplicates=found.n_duplicates,
            n_left_out=found.n_left_out,
            samples=tuple(self._samples),
        )

    def _check_parts(self, part_rows: Mapping[str, int], found: Tally, named: Mapping[str, int]) -> None:
        if empty := next((part for part in PARTS if not part_rows[part]), None):
            said = f"{self._n_rows:,} documents, {found.n_duplicates:,} of them duplicates"
            if found.n_left_out:
                said += f" and {found.n_left_out:,} left out, since they also stand in a later part"
            needed = f"at least {NEEDED} different ones"
            if named:
                needed = f"at least {NEEDED_TRAIN if len(named) == 3 else NEEDED} different ones of each part"
            raise TooShort(f"the {empty} part would be empty: there are {said}; give {needed}")

    def _check_labels(self, end: int) -> None:
        """Training documents, of weights and alpha, are those of bins below `end`."""
        missing = [label for label, (_, first) in sorted(self._labels.items()) if first >= end]
        if missing:
            more = f" (nor do {len(missing) - 1:,} others)" if len(missing) > 1 else ""
            raise BadLabels(
                f"label {missing[0]!r} stands in no training document{more}, so it can never be predicted; "
                f"it stands {self._labels[missing[0]][0]:,} times: give more documents of it, or leave it out"
            )


def _check_named(named: Mapping[str, int], n_rows: int) -> None:
    """Raises: TooShort: there is nothing to train on, or nothing held out."""
    if named and ("train" not in named or len(named) == 1):
        rows = " and ".join(repr(name) for name in named)
        raise TooShort(
            f"all {n_rows:,} rows name the part {rows}; "
            "name 'train' and one of 'validation' and 'test', or no part at all"
        )


def _cut(value: Any) -> Any:
    if isinstance(value, str):
        return value[:300]
    return [word[:300] for word in value[:60]]


def read_documents(fields: Fields, rows: Iterator[tuple[int, dict[str, Any]]], sink: Sink, scratch: Path) -> Card:
    """Write all rows' documents to the sink.

    Raises:
        DataError: what `Documents` refuses, or the rows.
    """
    documents = Documents(fields, sink, scratch)
    for number, row in rows:
        documents.add(number, row)
    return documents.card()
