"""Why a file cannot become a dataset; besides NotUtf8, Binary and TooShort of `nas.text`. `code` is the stable name.

Every message is one line that names the row (from 1; a header is not counted) or the byte, and the remedy.
"""

from __future__ import annotations

from nas.errors import DataError


class WrongOptions(DataError):
    """Options that are unknown or do not go together."""

    code = "wrong-options"


class BadRow(DataError):
    """A row that is not what its format or the options ask for."""

    code = "bad-row"


class BadLabels(DataError):
    """Labels from which nothing can be learnt: one class only, too many, or never in training."""

    code = "bad-labels"


class Damaged(DataError):
    """A file that ends early or was changed: truncated, or corrupt."""

    code = "damaged"


class WrongFormat(DataError):
    """A file of another format than it is read as, or of one that is not read: an archive."""

    code = "wrong-format"


class TooLarge(DataError):
    """More than is allowed: of the whole, once unpacked, or of one row."""

    code = "too-large"
