"""HTTP/1.1 by uvicorn; what is no HTTP at all is answered by a problem too, where uvicorn answers in plain text."""

from __future__ import annotations

import uuid

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from api.errors import problem


class Protocol(H11Protocol):
    """For uvicorn's `http`."""

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
