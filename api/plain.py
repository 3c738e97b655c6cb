"""Text from files on its way to a terminal or a page."""

from __future__ import annotations

import re

_ORDERS = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def plain(text: str) -> str:
    """Without colours and whatever else a terminal would take as an order; lines and tabs stay."""
    return _ORDERS.sub("", text)
