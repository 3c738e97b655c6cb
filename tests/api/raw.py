"""Requests byte by byte over a socket: what no HTTP client would send."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import httpx

PATIENCE_S = 20


class Answer(NamedTuple):
    """`body` is JSON where it says so, else text; status 0 where the connection was closed without an answer."""

    status: int
    headers: dict[str, str]
    body: Any


@contextmanager
def connected(url: str) -> Iterator[socket.socket]:
    address = httpx.URL(url)
    with socket.create_connection((address.host, address.port), timeout=PATIENCE_S) as found:
        yield found


def head(method: str, target: str, **headers: str) -> bytes:
    """Request line and headers; underscores in names stand for hyphens."""
    lines = [f"{method} {target} HTTP/1.1", *(f"{name.replace('_', '-')}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def read_answer(connection: socket.socket, *, has_body: bool = True) -> Answer:
    """The answer to the last request, by its Content-Length, which counts for nothing in an answer to HEAD."""
    received = b""
    while b"\r\n\r\n" not in received:
        try:
            block = connection.recv(65536)
        except ConnectionResetError:
            block = b""
        if not block:
            return Answer(0, {}, received.decode(errors="replace"))
        received += block
    start, _, body = received.partition(b"\r\n\r\n")
    status, *lines = start.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    while has_body and len(body) < int(headers.get("content-length", 0)):
        block = connection.recv(65536)
        assert block, "the connection was closed in the middle of an answer"
        body += block
    text = body.decode(errors="replace")
    is_json = bool(text) and "json" in headers.get("content-type", "")
    return Answer(int(status.split()[1]), headers, json.loads(text) if is_json else text)


def exchange(url: str, request: bytes) -> Answer:
    """Send these bytes on a new connection and read one answer."""
    with connected(url) as connection:
        connection.sendall(request)
        return read_answer(connection, has_body=not request.startswith(b"HEAD "))
