"""The bytes of a file, unpacked block by block and cut into characters and lines, in memory that does not grow."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Protocol

from nas.ingest.errors import Damaged, TooLarge, WrongFormat
from nas.ingest.options import Compression
from nas.text import Binary, NotUtf8, TooShort

BLOCK = 1 << 20
MAX_ROW = 16 << 20  # bytes; what a row is read into may take a dozen times as much
MAX_RATIO = 100  # of unpacked to packed bytes, which text does not reach; looked at from FREE bytes on
FREE = 64 << 20
MAGIC: tuple[tuple[bytes, str, str], ...] = (
    (b"PK\x03\x04", "a zip archive", "unpack it and give a file of it"),
    (b"PK\x05\x06", "an empty zip archive", "give the file itself"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive", "unpack it and give a file of it"),
    (b"Rar!", "a rar archive", "unpack it and give a file of it"),
    (b"BZh", "compressed with bzip2", "unpack it, or compress it with gzip or zstd"),
    (b"\xfd7zXZ\0", "compressed with xz", "unpack it, or compress it with gzip or zstd"),
    (b"PAR1", "parquet", "give format parquet, not compressed once more"),
    (b"\x1f\x8b\x08", "compressed with gzip", "give compression gzip, and compress only once"),
    (b"\x28\xb5\x2f\xfd", "compressed with zstd", "give compression zstd, and compress only once"),
    (b"\xff\xfe", "UTF-16", "save it as UTF-8"),
    (b"\xfe\xff", "UTF-16", "save it as UTF-8"),
)
_PACKED: dict[str, bytes] = {"gzip": b"\x1f\x8b", "zstd": b"\x28\xb5\x2f\xfd"}
_TAR = slice(257, 262)  # where a tar archive says "ustar"


class Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


def head(raw: Path) -> bytes:
    """The first 512 bytes, by which formats are told."""
    with raw.open("rb") as file:
        return file.read(512)


def found_compression(raw: Path, told: Compression) -> Compression:
    """What a file is compressed with: as told, else by its first bytes.

    Raises:
        WrongFormat: it does not begin as it should by what was told.
    """
    first = head(raw)
    if told == "auto":
        return next((name for name in ("gzip", "zstd") if first.startswith(_PACKED[name])), "none")
    if told != "none" and first and not first.startswith(_PACKED[told]):
        raise WrongFormat(
            f"the file is not compressed with {told}: it begins with {first[:4].hex(' ')}; give compression none"
        )
    return told


def refuse_foreign(first: bytes) -> None:
    """Raises: WrongFormat: the first bytes are those of an archive, or of another format than text."""
    for magic, what, remedy in MAGIC:
        if first.startswith(magic):
            raise WrongFormat(f"the file is {what}; {remedy}")
    if first[_TAR] == b"ustar":
        raise WrongFormat("the file is a tar archive; unpack it and give a file of it")


def unpacked(
    raw: Path, compression: Compression, max_bytes: int, progress: Callable[[int], None] | None = None
) -> Iterator[bytes]:
    """The file's content in blocks of at most BLOCK bytes.

    Args:
        compression: what `found_compression` gave.
        max_bytes: of the content that are allowed.
        progress: told after each block how many bytes of the file have been read.

    Raises:
        TooShort: nothing.
        Damaged: truncated or corrupt.
        TooLarge: more than max_bytes, or a ratio that only a bomb has.
    """
    size = raw.stat().st_size
    n_bytes = 0
    with raw.open("rb") as file, _opened(file, compression) as stream:
        while block := _read(stream, compression, n_bytes):
            n_bytes += len(block)
            if n_bytes > max_bytes:
                raise too_large(max_bytes)
            if n_bytes > FREE and n_bytes > MAX_RATIO * size:
                raise TooLarge(
                    f"{size:,} bytes of {compression} unpack to more than {MAX_RATIO} times as many; "
                    "give the file uncompressed if it really is so regular"
                )
            if progress is not None:
                progress(file.tell())
            yield block
    if not n_bytes:
        raise TooShort("the file is empty; give at least a few thousand bytes")


def too_large(max_bytes: int) -> TooLarge:
    return TooLarge(f"the content is more than {max_bytes:,} bytes, the most allowed; give a part of it")


@contextmanager
def _opened(file: BinaryIO, compression: Compression) -> Iterator[Readable]:
    if compression == "gzip":
        with gzip.GzipFile(fileobj=file) as unpacking:
            yield unpacking
    elif compression == "zstd":
        import pyarrow  # only here: reading plain files does not need it

        with pyarrow.CompressedInputStream(pyarrow.PythonFile(file, mode="r"), "zstd") as unpacking:
            yield unpacking
    else:
        yield file


def _read(stream: Readable, compression: Compression, n_bytes: int) -> bytes:
    if compression == "none":
        return stream.read(BLOCK)
    try:
        return stream.read(BLOCK)
    except (EOFError, zlib.error, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # of the disk
        early = isinstance(error, EOFError) or "Truncated" in str(error)
        how = "is truncated: it ends early" if early else "is corrupt"
        raise Damaged(
            f"the {compression} stream {how}, somewhere after {n_bytes:,} unpacked bytes; copy or compress it again"
        ) from None


def whole_characters(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes, checked, in blocks that end between characters.

    Raises:
        NotUtf8, Binary: with the offset (from 0, of the unpacked file) and the line (from 1) of the first wrong byte.
        WrongFormat: the file begins like an archive.
    """
    held = b""
    offset, line = 0, 1  # of the first byte of `whole`
    first = True
    for block in blocks:
        if first:
            refuse_foreign(block)
            first = False
        whole, held = _cut(held + block)
        _check(whole, offset, line)
        offset += len(whole)
        line += whole.count(b"\n")
        if whole:
            yield whole
    _check(held, offset, line)


def _cut(block: bytes) -> tuple[bytes, bytes]:
    """A character of four bytes has its first among the last three of a block that ends within it."""
    for back in range(1, min(3, len(block)) + 1):
        lead = block[-back]
        if lead >= 0xC0:
            needed = 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
            return (block[:-back], block[-back:]) if needed > back else (block, b"")
        if lead < 0x80:
            break
    return block, b""


def _check(block: bytes, offset: int, line: int) -> None:
    nul = block.find(b"\0")
    try:
        (block if nul < 0 else block[:nul]).decode()
    except UnicodeDecodeError as error:
        where = f"byte {block[error.start]:#04x} at offset {offset + error.start:,}"
        line += block.count(b"\n", 0, error.start)
        raise NotUtf8(f"the file is not UTF-8: {where}, in line {line:,}; save it as UTF-8") from None
    if nul >= 0:
        line += block.count(b"\n", 0, nul)
        raise Binary(f"the file is binary: NUL byte at offset {offset + nul:,}, in line {line:,}; give UTF-8 text")


def lines(blocks: Iterable[bytes]) -> Iterator[str]:
    """The lines of a file without their line breaks (LF); a byte order mark is left out.

    Args:
        blocks: of whole characters.

    Raises:
        TooLarge: a line of more than MAX_ROW bytes; no more of it than that is read.
    """
    held: list[str] = []
    n_held = 0
    n_lines = 0
    for block in blocks:
        first, *others = block.decode().split("\n")
        if not n_lines and not held:
            first = first.removeprefix("\ufeff")
        held.append(first)
        n_held += len(block) if not others else len(first)
        if n_held > MAX_ROW:
            raise row_too_large("line", n_lines + 1)
        if others:
            yield "".join(held)
            yield from others[:-1]
            n_lines += len(others)
            held, n_held = [others[-1]], len(others[-1])
    if held and (last := "".join(held)):
        yield last


def row_too_large(what: str, number: int) -> TooLarge:
    return TooLarge(
        f"{what} {number:,} has more than {MAX_ROW:,} bytes, the most of a row; "
        "write one document a row, or give a long text as plain text (format text)"
    )
