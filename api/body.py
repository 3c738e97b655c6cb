"""Request bodies are strict JSON, whatever Python's reader would let pass: routes with a body use `StrictRoute`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute
from starlette.requests import ClientDisconnect

from api import strict_json
from api.errors import ApiError

PATIENCE_S = 60.0  # in which the whole body must arrive


class _ParsedRequest(Request):
    value: Any = None

    async def json(self) -> Any:
        return self.value


class StrictRoute(APIRoute):
    """Reads the body with `api.strict_json`, and takes no other media type for it."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def strict(request: Request) -> Response:
            if self.body_field is None:
                return await handle(request)
            media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
            if media_type != "application/json":
                detail = f"the body must be application/json, not {media_type[:60] or 'nothing'}"
                raise ApiError(415, "unsupported-media-type", detail)
            parsed = _ParsedRequest(request.scope, request.receive)
            # Parsed here and not in `json`, where FastAPI turns every error into one that says nothing.
            parsed.value = strict_json.parse(await _whole(parsed))
            if not isinstance(parsed.value, dict):
                raise strict_json.InvalidJson("the body must be a JSON object")
            return await handle(parsed)

        return strict


async def _whole(request: Request) -> bytes:
    """Raises: ApiError: body-incomplete."""
    try:
        async with asyncio.timeout(PATIENCE_S):
            return await request.body()
    except TimeoutError:
        raise ApiError(408, "body-incomplete", f"the body did not arrive within {PATIENCE_S:g} s") from None
    except ClientDisconnect:  # nobody reads it; but it is no bug of ours, and the log must not say so
        raise ApiError(400, "body-incomplete", "the connection broke off within the body") from None
