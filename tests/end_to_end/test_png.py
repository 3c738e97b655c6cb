from __future__ import annotations

import struct
import zlib

import numpy as np
import pytest

from tests.end_to_end.png import SIGNATURE, read, smaller, write


def filtered(pixels: np.ndarray, kind: int) -> bytes:
    """A PNG whose rows all have this filter, by the definition of section 6, byte by byte."""
    height, width, channels = pixels.shape
    rows = pixels.reshape(height, -1).astype(int)
    lines = b""
    for y in range(height):
        line = [kind]
        for x in range(width * channels):
            left = rows[y, x - channels] if x >= channels else 0
            up = rows[y - 1, x] if y else 0
            corner = rows[y - 1, x - channels] if y and x >= channels else 0
            nearest = min(
                (abs(left + up - corner - guess), order, guess) for order, guess in enumerate((left, up, corner))
            )
            line.append((rows[y, x] - [0, left, up, (left + up) // 2, nearest[2]][kind]) % 256)
        lines += bytes(int(each) for each in line)
    header = struct.pack(">IIBBBBB", width, height, 8, {3: 2, 4: 6}[channels], 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(lines)), (b"IEND", b"")]
    return SIGNATURE + b"".join(struct.pack(">I", len(body)) + name + body + b"crc." for name, body in chunks)


@pytest.mark.parametrize("channels", [3, 4])
@pytest.mark.parametrize("kind", range(5))
def test_every_filter_is_undone(kind: int, channels: int) -> None:
    pixels = np.random.default_rng(kind).integers(0, 256, (7, 9, channels), dtype=np.uint8)
    np.testing.assert_array_equal(read(filtered(pixels, kind)), pixels[:, :, :3])


def test_few_colours_are_kept_exactly() -> None:
    pixels = np.random.default_rng(0).integers(0, 6, (40, 50, 3), dtype=np.uint8) * 40
    image = smaller(filtered(pixels, 4))
    assert _palette_of(image).shape[0] <= 256
    np.testing.assert_array_equal(_seen(image), pixels)


def test_many_colours_become_near_ones() -> None:
    ramp = np.linspace(0, 255, 60).astype(np.uint8)
    pixels = np.stack(np.broadcast_arrays(ramp[:, None], ramp[None, :], np.uint8(128)), axis=2)
    seen = _seen(smaller(filtered(pixels, 0)))
    assert np.abs(seen.astype(int) - pixels).max() <= 16


def _chunk(image: bytes, name: bytes) -> bytes:
    at = image.index(name)
    (length,) = struct.unpack(">I", image[at - 4 : at])
    return image[at + 4 : at + 4 + length]


def _palette_of(image: bytes) -> np.ndarray:
    return np.frombuffer(_chunk(image, b"PLTE"), np.uint8).reshape(-1, 3)


def _seen(image: bytes) -> np.ndarray:
    width, height = struct.unpack(">II", _chunk(image, b"IHDR")[:8])
    rows = np.frombuffer(zlib.decompress(_chunk(image, b"IDAT")), np.uint8).reshape(height, width + 1)
    return _palette_of(image)[rows[:, 1:]]


def test_what_is_written_is_a_png() -> None:
    image = write(np.zeros((2, 3), np.uint8), np.array([[1, 2, 3]], np.uint8))
    assert zlib.crc32(b"IEND") == struct.unpack(">I", image[-4:])[0]
