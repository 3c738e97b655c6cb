"""Makes a browser's PNG smaller: the same pixels by a palette of at most 256 colours, well compressed.

A page has few colours but many shades of anti-aliased letters; the rarest of these go to their nearest neighbour.
"""

from __future__ import annotations

import struct
import zlib

import numpy as np
from numpy.typing import NDArray

SIGNATURE = b"\x89PNG\r\n\x1a\n"
COLOURS = 256


def smaller(image: bytes) -> bytes:
    """The image with a palette.

    Args:
        image: a PNG of 8-bit RGB or RGBA, not interlaced, as Chromium writes them; transparency is dropped.
    """
    return write(*quantised(read(image)))


def read(image: bytes) -> NDArray[np.uint8]:
    """(H, W, 3) pixels."""
    assert image.startswith(SIGNATURE)
    at, data = len(SIGNATURE), b""
    width = height = channels = 0
    while at < len(image):
        length, kind = struct.unpack(">I4s", image[at : at + 8])
        body = image[at + 8 : at + 8 + length]
        if kind == b"IHDR":
            width, height, depth, colour, *_, interlaced = struct.unpack(">IIBBBBB", body)
            assert (depth, interlaced) == (8, 0)
            channels = {2: 3, 6: 4}[colour]
        elif kind == b"IDAT":
            data += body
        at += 12 + length
    rows = np.frombuffer(zlib.decompress(data), np.uint8).reshape(height, 1 + width * channels)
    return _unfiltered(rows, channels).reshape(height, width, channels)[:, :, :3]


def _unfiltered(rows: NDArray[np.uint8], channels: int) -> NDArray[np.uint8]:
    """Undo the filter of each row (PNG 1.2, section 6)."""
    height, width = rows.shape[0], rows.shape[1] - 1
    out = np.zeros((height + 1, width), np.uint8)  # a row of zeros stands above the first
    for number, (kind, row) in enumerate(zip(rows[:, 0], rows[:, 1:], strict=True)):
        above, line = out[number], out[number + 1]
        if kind == 0:
            line[:] = row
        elif kind == 1:  # each channel is a running sum along the row, modulo 256
            line[:] = np.cumsum(row.reshape(-1, channels), axis=0, dtype=np.uint8).reshape(-1)
        elif kind == 2:
            line[:] = row + above
        else:
            _recursive(int(kind), row.tolist(), above.tolist(), line, channels)
    return out[1:]


def _recursive(kind: int, row: list[int], above: list[int], line: NDArray[np.uint8], channels: int) -> None:
    """Average and Paeth: each byte needs the one before it."""
    done: list[int] = []
    for at, byte in enumerate(row):
        left = done[at - channels] if at >= channels else 0
        up = above[at]
        if kind == 3:
            guess = (left + up) // 2
        else:
            corner = above[at - channels] if at >= channels else 0
            to_left, to_up, to_corner = abs(up - corner), abs(left - corner), abs(left + up - 2 * corner)
            guess = left if to_left <= min(to_up, to_corner) else up if to_up <= to_corner else corner
        done.append((byte + guess) % 256)
    line[:] = done


def quantised(pixels: NDArray[np.uint8]) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """(H, W) indices and the (n, 3) palette: exact for the commonest colours, the nearest for the others."""
    height, width, _ = pixels.shape
    packed = pixels.astype(np.uint32) @ np.array([65536, 256, 1], np.uint32)
    found, inverse, counts = np.unique(packed.reshape(-1), return_inverse=True, return_counts=True)
    colours = np.stack([found >> 16, found >> 8 & 255, found & 255], axis=1).astype(np.int32)
    chosen = _spread(colours, counts) if len(found) > COLOURS else np.arange(len(found))
    palette = colours[chosen]
    nearest = np.empty(len(found), np.uint8)
    for start in range(0, len(found), 4096):
        part = colours[start : start + 4096]
        nearest[start : start + 4096] = ((part[:, None] - palette[None]) ** 2).sum(axis=2).argmin(axis=1)
    return nearest[inverse].reshape(height, width), palette.astype(np.uint8)


def _spread(colours: NDArray[np.int32], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Colours that leave little error: one by one the one whose pixels are worst served by those before it."""
    distance = np.full(len(colours), np.iinfo(np.int32).max, np.int64)
    chosen: list[int] = []
    for _ in range(COLOURS):
        best = int((distance * counts).argmax()) if chosen else int(counts.argmax())
        chosen.append(best)
        distance = np.minimum(distance, ((colours - colours[best]) ** 2).sum(axis=1))
    return np.array(chosen)


def write(indices: NDArray[np.uint8], palette: NDArray[np.uint8]) -> bytes:
    """A PNG with a palette; rows unfiltered, which suits areas of one colour."""
    height, width = indices.shape
    rows = np.concatenate([np.zeros((height, 1), np.uint8), indices], axis=1)
    parts = [
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)),
        (b"PLTE", palette.tobytes()),
        (b"IDAT", zlib.compress(rows.tobytes(), 9)),
        (b"IEND", b""),
    ]
    chunks = [
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body)) for kind, body in parts
    ]
    return SIGNATURE + b"".join(chunks)
