"""What people see of a dataset in a terminal: size, parts, labels, lengths, first rows, encodings.

Prints what GET /api/v1/datasets/{name} answers; a dataset without a card shows the little that is known.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.text import Text

from api.plain import plain

BAR = 30  # cells of the longest bar
MAX_LABELS = 12  # that are shown; the rest is summed up
_ROWS = {"text": "line", "documents": "document", "tokens": "token", "tokenizer": "entry"}
_PLURALS = {"line": "lines", "document": "documents", "token": "tokens", "entry": "entries"}


def rows(found: Mapping[str, Any]) -> str:
    """How much it holds, in a few words; empty where that is not known."""
    card = found["card"]
    if card is None:
        return ""
    unit = _ROWS[found["kind"]]
    told = f"{card['n_rows']:,} {unit if card['n_rows'] == 1 else _PLURALS[unit]}"
    return told if not card["labels"] else f"{told}, {len(card['labels']):,} labels"


def lines(found: Mapping[str, Any]) -> Iterator[Text]:
    """Everything of a dataset, line by line."""
    yield Text(f"{found['name']}  {found['description']}{_size(found)}")
    if found["fingerprint"]:
        yield Text(f"sha256 {found['fingerprint']}")
    for search_id in found["in_use_by"]:
        yield Text(f"in use by {search_id}")
    card = found["card"]
    if card is not None:
        yield from _facts(found["kind"], card)
    for each in found["encodings"]:
        yield Text(
            f"encoded as {_tokenizer(each['tokenizer'])}: {each['vocab_size']:,} ids, {_parts(each['n_tokens'])}"
        )
    if found["excerpt"]:
        yield Text(plain(found["excerpt"]), style="dim")
    elif card is not None:
        for sample in card["samples"]:
            yield Text(_sample(sample), style="dim", no_wrap=True, overflow="ellipsis")


def _size(found: Mapping[str, Any]) -> str:
    if found["kind"] == "synthetic":
        return ", examples drawn on the fly"
    if found["n_bytes"] is None:
        return ", size known after its first use"
    told = rows(found)
    return f", {found['n_bytes']:,} bytes" + (f", {told}" if told else "")


def _facts(kind: str, card: Mapping[str, Any]) -> Iterator[Text]:
    settings = card["settings"]
    if settings["corpus"]:
        yield Text(f"standard corpus {settings['corpus']}")
    if card["n_characters"]:
        yield Text(f"{card['n_characters']:,} distinct characters")
    if settings["dtype"]:
        end = "" if settings["eos_id"] is None else f", {settings['eos_id']} ends a document"
        yield Text(f"{settings['dtype']} ids below {settings['vocab_size']:,}{end}")
    if card["part_rows"]:
        how = "as the rows say" if card["given_parts"] else "dealt by content, 72:18:5:5"
        yield Text(f"parts: {_parts(card['part_rows'])} ({how})")
    elif settings["ends"]:
        yield Text(f"parts: training ends at byte {settings['ends'][0]:,}, validation at {settings['ends'][1]:,}")
    if card["n_duplicates"]:
        yield Text(f"{card['n_duplicates']:,} duplicates; equal documents share a part")
    if card["n_left_out"]:
        yield Text(f"{card['n_left_out']:,} documents also stand in a later given part: left out of the earlier one")
    if card["labels"]:
        yield from _labels(card)
    if card["lengths"]:
        yield Text(f"bytes of a {_ROWS[kind]}")
        yield from _bars([(f"to {most:,}", number) for most, number in card["lengths"]])


def _labels(card: Mapping[str, Any]) -> Iterator[Text]:
    counts = sorted(card["labels"].items(), key=lambda each: (-each[1], each[0]))
    total = sum(card["labels"].values())
    what = "word" if card["label_kind"] == "token" else "document"
    yield Text(f"labels, one for each {what}; always the most frequent scores {100 * counts[0][1] / total:.1f}%")
    shown = [(plain(label)[:30], number) for label, number in counts[:MAX_LABELS]]
    rest = sum(number for _, number in counts[MAX_LABELS:])
    if rest:
        shown.append((f"{len(counts) - MAX_LABELS} more", rest))
    yield from _bars(shown, total)


def _bars(values: list[tuple[str, int]], total: int | None = None) -> Iterator[Text]:
    """One bar a line, the longest BAR cells; with a total the share in percent."""
    longest = max(number for _, number in values) or 1
    wide = max(len(name) for name, _ in values)
    for name, number in values:
        cells = "█" * max(round(BAR * number / longest), 1 if number else 0)
        share = "" if total is None else f" {100 * number / total:5.1f}%"
        yield Text(f"  {name:>{wide}}{share} {cells} {number:,}")


def _parts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {number:,}" for name, number in counts.items())


def _tokenizer(tokenizer: Mapping[str, Any]) -> str:
    told = tokenizer["type"] if tokenizer.get("name") is None else f"{tokenizer['type']} {tokenizer['name']}"
    return told if tokenizer.get("vocab_size") is None else f"{told} of at most {tokenizer['vocab_size']:,}"


def _sample(row: Mapping[str, Any]) -> str:
    """A row on one line: label and part first, so that a long text does not push them out of sight."""
    said = [f"[{row[name]}]" for name in ("part", "label") if row.get(name) is not None]
    if row.get("words"):
        labels = row.get("labels") or [""] * len(row["words"])
        said.append(" ".join(f"{word}/{label}" for word, label in zip(row["words"], labels, strict=False)))
    said.extend(str(row[name]) for name in ("text", "pair") if row.get(name) is not None)
    return plain("  ".join(said)).replace("\n", "⏎")
