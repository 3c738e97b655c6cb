"""The OpenAPI document, corrected where FastAPI cannot know: what failures look like, and how a token is sent."""

from __future__ import annotations

from typing import Any

from api.errors import MEDIA_TYPE


def corrected(document: dict[str, Any]) -> dict[str, Any]:
    """Failures as the problems that `api.errors` really answers, and the token that `api.gate` really asks for."""
    for operations in document["paths"].values():
        for operation in operations.values():
            responses = operation["responses"]
            responses.pop("422", None)  # FastAPI's own shape, which no route here answers
            failure = responses["default"]
            failure["content"] = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    for name in ("HTTPValidationError", "ValidationError"):
        document["components"]["schemas"].pop(name, None)
    document["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    document["security"] = [{}, {"token": []}]  # none on loopback, unless the settings name one
    return document
