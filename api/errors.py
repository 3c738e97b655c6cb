"""The only map from errors to HTTP: every refusal is an RFC 9457 problem with a stable `code`.

Field errors carry JSON pointers (RFC 6901) into the body, and every problem the request id that the log has too.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from http import HTTPStatus

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from sqlalchemy.exc import OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from starlette.exceptions import HTTPException

from api.field_errors import FieldError, code_of, detail_of, field_errors, summary
from api.strict_json import InvalidJson
from db.engine import is_full
from db.errors import DatabaseError, IdempotencyConflict, NotFound, WrongState
from nas.errors import BlockwrightError, Conflict, Infeasible, StateError

MEDIA_TYPE = "application/problem+json"
MAX_FIELD_ERRORS = 100
log = logging.getLogger("blockwright.api")


class InConflict(BaseModel):
    """One of the fewest constraints that no architecture meets together."""

    pointer: str = Field(description="JSON pointer (RFC 6901) to it in the constraints")
    words: str = Field(description="it, for people")
    nearest: float | None = Field(description="the value of it that can be met and is nearest; null: none, or no value")
    unit: str
    upper: bool = Field(description="whether larger values are easier to meet")
    alone: bool = Field(description="whether `nearest` can be met beside all other constraints, not only those here")


class Problem(BaseModel):
    """RFC 9457."""

    type: str = Field(examples=["urn:blockwright:problem:invalid-request"])
    title: str
    status: int
    detail: str
    code: str = Field(description="stable; what programs should look at")
    request_id: str
    errors: list[FieldError] = Field(default_factory=list)
    conflict: list[InConflict] | None = Field(
        None, description="of code infeasible: the fewest constraints that cannot be met together; else left out"
    )


class ApiError(Exception):
    """A refusal that only HTTP knows, such as a foreign Host; `pointer` names the field of the body that is wrong."""

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        headers: Mapping[str, str] | None = None,
        pointer: str | None = None,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code
        self.detail = detail
        self.headers = dict(headers or {})
        self.errors = [] if pointer is None else [FieldError(pointer=pointer, detail=detail, code=code)]


def problem(
    request_id: str,
    status: int,
    code: str,
    detail: str,
    *,
    errors: Sequence[FieldError] = (),
    headers: Mapping[str, str] | None = None,
    conflict: Sequence[Conflict] = (),
) -> JSONResponse:
    body = Problem(
        type=f"urn:blockwright:problem:{code}",
        title=HTTPStatus(status).phrase,
        status=status,
        detail=detail,
        code=code,
        request_id=request_id,
        errors=list(errors),
        conflict=[InConflict(**vars(each)) for each in conflict],
    )
    told = body.model_dump(exclude=set() if conflict else {"conflict"})
    return JSONResponse(told, status, headers=headers, media_type=MEDIA_TYPE)


def install(app: FastAPI) -> None:
    """Register the handlers; routes then raise domain errors and know no HTTP."""
    app.add_exception_handler(RequestValidationError, _on_validation)
    app.add_exception_handler(HTTPException, _on_http)
    app.add_exception_handler(ApiError, _on_api)
    app.add_exception_handler(BlockwrightError, _on_domain)
    app.add_exception_handler(DatabaseError, _on_domain)
    app.add_exception_handler(OperationalError, _on_database)
    app.add_exception_handler(PoolTimeout, _on_database)
    app.add_exception_handler(Exception, _on_bug)


def _request_id(request: Request) -> str:
    return str(request.scope.get("blockwright.request_id", ""))


def _on_validation(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    fields: list[FieldError] = []
    for each in error.errors()[:MAX_FIELD_ERRORS]:
        where, *path = each["loc"]
        if where == "body":
            fields.extend(field_errors([{**each, "loc": path}]))
        else:
            pointer = {"query": "?{}", "path": "{{{}}}"}.get(where, "{}").format(path[-1])
            fields.append(FieldError(pointer=pointer, detail=detail_of(each), code=code_of(each)))
    return problem(_request_id(request), 422, "invalid-request", summary(fields), errors=fields)


def _on_http(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    code = {404: "not-found", 405: "method-not-allowed", 413: "body-too-large"}.get(error.status_code, "http-error")
    detail = f"no such page: {request.url.path[:100]!r}" if error.status_code == 404 else str(error.detail).lower()
    return problem(_request_id(request), error.status_code, code, detail, headers=error.headers)


def _on_api(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, ApiError)
    return problem(
        _request_id(request), error.status, error.code, error.detail, errors=error.errors, headers=error.headers
    )


def _on_domain(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, BlockwrightError | DatabaseError)
    status = next((status for kind, status in _STATUS if isinstance(error, kind)), 422)
    conflict = error.conflict if isinstance(error, Infeasible) else ()
    return problem(_request_id(request), status, error.code, str(error), conflict=conflict)


_STATUS: tuple[tuple[type[Exception], int], ...] = (
    (NotFound, 404),
    (WrongState, 409),
    (StateError, 409),
    (IdempotencyConflict, 422),
    (InvalidJson, 400),
)


def _on_database(request: Request, error: Exception) -> JSONResponse:
    """A database that is locked, away or without tables: nothing was changed, so the request may be sent again."""
    log.error("request %s: %s", _request_id(request), str(error).splitlines()[0])
    if is_full(error):
        detail = "the disk of the database is full; nothing was changed; make room there, then try again"
        return problem(_request_id(request), 507, "disk-full", detail)
    detail = "the database is busy, out of reach or not migrated, as /readyz says; nothing was changed, try again"
    return problem(_request_id(request), 503, "database-unavailable", detail, headers={"Retry-After": "1"})


def _on_bug(request: Request, error: Exception) -> JSONResponse:
    # uvicorn logs the traceback right after this line.
    log.error("request %s failed: %s", _request_id(request), type(error).__name__)
    detail = f"something went wrong here; the log of the api names request {_request_id(request)}"
    # uvicorn drops the connection after a bug; said so, no client sends its next request into the void.
    return problem(_request_id(request), 500, "internal", detail, headers={"Connection": "close"})
