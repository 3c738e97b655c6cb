"""What a text must be to be trained on: UTF-8 without NUL bytes, and long enough. No torch: the api uses it too.

The weights, alpha, validation and test parts are cut at `ENDS_PERCENT`; `nas.data.parts` does the cutting.
"""

from __future__ import annotations

import codecs

from nas.errors import DataError

NAME = r"^[a-z0-9][a-z0-9_.-]{0,63}$"  # of a text; it is never a path
ENDS_PERCENT = (72, 90, 95)  # weights 72, alpha 18, validation 5, test 5
_BLOCK = 1 << 20


class NotUtf8(DataError):
    """Bytes that are no UTF-8."""

    code = "not-utf8"


class Binary(DataError):
    """A file with NUL bytes."""

    code = "binary"


class TooShort(DataError):
    """Nothing, or less than the windows need."""

    code = "too-short"


class TextCheck:
    """Checks a text block by block, in memory that does not grow with it; `n_bytes` is what it has seen."""

    def __init__(self) -> None:
        self.n_bytes = 0
        self._blank = True
        self._decoder = codecs.getincrementaldecoder("utf-8")()

    def feed(self, block: bytes) -> None:
        """The next bytes; a character may begin in one block and end in the next.

        Raises:
            Binary, NotUtf8: with the offset of the first byte that is wrong, in the whole text.
        """
        nul = block.find(b"\0")
        self._decode(block if nul < 0 else block[:nul], final=nul >= 0)
        if nul >= 0:
            raise Binary(f"the file is binary: NUL byte at offset {self.n_bytes + nul}; give UTF-8 text")
        self._blank = self._blank and not block.strip()
        self.n_bytes += len(block)

    def finish(self) -> None:
        """The text ends here.

        Raises:
            NotUtf8: in the middle of a character.
            TooShort: there is nothing but white space.
        """
        self._decode(b"", final=True)
        if self._blank:
            raise TooShort("the text is empty; give at least a few thousand bytes of UTF-8 text")

    def _decode(self, block: bytes, *, final: bool) -> None:
        held = len(self._decoder.getstate()[0])  # the beginning of a character, from the block before
        try:
            self._decoder.decode(block, final)
        except UnicodeDecodeError as error:
            offset = self.n_bytes - held + error.start
            raise NotUtf8(f"the file is not UTF-8 text: invalid byte at offset {offset}") from None


def check_text(corpus: bytes) -> None:
    """Refuse what is not text.

    Raises:
        DataError: the corpus is empty, holds NUL bytes, or is not valid UTF-8; what stands first is named.
    """
    check = TextCheck()
    whole = memoryview(corpus)
    for start in range(0, len(corpus), _BLOCK):  # decoded whole, it could take four bytes of memory for each of its own
        check.feed(bytes(whole[start : start + _BLOCK]))
    check.finish()


def needed_bytes(train_length: int, batch_size: int) -> int:
    """Shortest text that can be split, in bytes.

    Args:
        train_length: tokens T of a training window; a token is a byte.
        batch_size: windows of a batch; the weights and the alpha part must each hold one batch without overlap, the
            other two parts two windows each, since one tells nothing of the spread.
    """
    batch = batch_size * train_length + 1
    return max(-(-batch * 100 // 18), -(-(2 * train_length + 1) * 100 // 5))


MIN_BYTES = needed_bytes(2, 1)  # below it no request can use a text


def check_length(n_bytes: int, train_length: int, batch_size: int) -> None:
    """Raises: TooShort: less than `needed_bytes`."""
    needed = needed_bytes(train_length, batch_size)
    if n_bytes < needed:
        raise TooShort(
            f"the text has {n_bytes} bytes; batches of {batch_size} windows of {train_length} tokens "
            f"need at least {needed}"
        )
