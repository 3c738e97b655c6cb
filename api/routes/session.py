"""Signing in from the page: the token once, a cookie from then on."""

from __future__ import annotations

import hmac
import time

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, Field, SecretStr

from api import session
from api.body import StrictRoute
from api.deps import AppSettings
from api.errors import ApiError

router = APIRouter(prefix="/api/v1/session", tags=["session"], route_class=StrictRoute)


class Credentials(BaseModel, extra="forbid"):
    """What signing in takes."""

    token: SecretStr = Field(description="the service's token")


@router.post("", status_code=204, response_model=None, max_body_size=session.MAX_BODY_SIZE)
def open_session(body: Credentials, request: Request, settings: AppSettings) -> Response:
    """Exchange the token for a cookie of 12 hours; without effect where the service asks for no token."""
    response = Response(status_code=204)
    if settings.token is None:
        return response
    token = settings.token.get_secret_value().encode()
    if not hmac.compare_digest(body.token.get_secret_value().encode(errors="replace"), token):
        raise ApiError(401, "wrong-token", "this is not the token of the service", {"WWW-Authenticate": "Bearer"})
    response.set_cookie(
        session.COOKIE,
        session.issue(token, time.time()),
        max_age=session.LIFETIME_S,
        path="/",
        httponly=True,
        samesite="strict",
        # Behind a proxy that speaks TLS, the page's own address tells; the gate has checked that it is ours.
        secure=request.url.scheme == "https" or request.headers.get("origin", "").lower().startswith("https:"),
    )
    return response


@router.delete("", status_code=204, response_model=None)
def close_session() -> Response:
    """Forget the cookie."""
    response = Response(status_code=204)
    response.delete_cookie(session.COOKIE, path="/", httponly=True, samesite="strict")
    return response
