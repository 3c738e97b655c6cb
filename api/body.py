"""Request bodies are strict JSON, whatever Python's reader would let pass: routes with a body use `StrictRoute`."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute

from api import strict_json
from api.errors import ApiError


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
            parsed.value = strict_json.parse(await parsed.body())
            if not isinstance(parsed.value, dict):
                raise strict_json.InvalidJson("the body must be a JSON object")
            return await handle(parsed)

        return strict
