"""What the card of an uploaded or built-in dataset tells; the kind of one that was stored before there were cards."""

from __future__ import annotations

from db.datasets import Dataset
from nas.ingest.card import SUFFIXES, Card, Kind


def card_of(row: Dataset) -> Card | None:
    """None: nobody has read it since cards are kept."""
    return None if row.card is None else Card.from_json(row.card)


def kind_of(row: Dataset) -> Kind:
    """By its card, or by the name of its file; a built-in corpus has none and is a text."""
    if row.card is not None:
        return Card.from_json(row.card).kind
    path = row.path or ""
    return next((kind for kind, suffix in SUFFIXES.items() if path.endswith(suffix)), "text")
