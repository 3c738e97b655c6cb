"""Answers to requests whose body was not read to its end: they arrive, and the rest of the body does not.

A server that answers early and goes on reading takes gigabytes it has refused; one that closes at once resets the
connection, and a client that is still sending may never see why. So: say that the connection ends, answer, read on for
a moment, close. Outside of everything else, pure ASGI.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LINGER_S = 2.0
LINGER_BYTES = 64 * 2**20
_SMALL = 64 * 1024  # what is left of so little is on its way already: the connection can be kept


class Linger:
    """See the module."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not _may_be_long(Headers(scope=scope)):
            await self.app(scope, receive, send)
            return
        is_read = False
        closing = False
        lingered = 0

        async def watched() -> Message:
            nonlocal is_read
            message = await receive()
            is_read = message["type"] != "http.request" or not message.get("more_body", False)
            return message

        async def send_and_linger(message: Message) -> None:
            nonlocal closing, lingered
            if message["type"] == "http.response.start" and not is_read:
                closing = True
                MutableHeaders(scope=message)["Connection"] = "close"
            elif message["type"] == "http.response.body" and closing and not message.get("more_body", False):
                await send({**message, "more_body": True})
                with suppress(TimeoutError):
                    async with asyncio.timeout(LINGER_S):
                        while not is_read and lingered < LINGER_BYTES:
                            lingered += len((await watched()).get("body", b""))
                message = {"type": "http.response.body", "body": b""}
            await send(message)

        await self.app(scope, watched, send_and_linger)


def _may_be_long(headers: Headers) -> bool:
    length = headers.get("content-length", "0")
    return "transfer-encoding" in headers or not length.isdecimal() or int(length[:20]) > _SMALL
