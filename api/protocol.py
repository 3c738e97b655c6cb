"""HTTP/1.1 by uvicorn, with two additions: what is no HTTP at all is answered by a problem too, where uvicorn answers
in plain text; and a connection on which no request comes is closed, where uvicorn keeps it for ever.
"""

from __future__ import annotations

import asyncio
import uuid

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from api.errors import problem

PATIENCE_S = 30.0  # in which the whole head of the next request must arrive


class Protocol(H11Protocol):
    """For uvicorn's `http`."""

    _silence: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._expect_request()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._expect_request()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self._silence is not None:
            self._silence.cancel()

    def _expect_request(self) -> None:
        """No byte of a head puts this off: a client that sends one now and then would never be done."""
        if self._silence is not None:
            self._silence.cancel()
        if not self.transport.is_closing():
            self._silence = self.loop.call_later(PATIENCE_S, self._give_up)

    def _give_up(self) -> None:
        if self.cycle is None or self.cycle.response_complete:
            self.transport.close()

    def send_400_response(self, msg: str) -> None:
        """Answer, if that is still possible, and close: nobody can tell where the next request would begin."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            detail = "this is not HTTP/1.1 as RFC 9112 has it, or its headers are too long"
            answer = problem(uuid.uuid4().hex, 400, "invalid-http", detail)
            headers = [*answer.raw_headers, (b"x-content-type-options", b"nosniff"), (b"connection", b"close")]
            response = h11.Response(status_code=400, headers=headers, reason=b"Bad Request")
            for event in (response, h11.Data(data=bytes(answer.body)), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()
