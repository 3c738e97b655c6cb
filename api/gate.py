"""What every request passes before any route: size, Host, Origin, token or session. Pure ASGI, outside
of everything else.

No route can be left out by mistake, and a refusal costs no database. The Host check holds without a token too: a web
page that makes its own name point at 127.0.0.1 (DNS rebinding) sends that name as Host.
"""

from __future__ import annotations

import hmac
import time
import uuid
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api import page, session
from api.errors import ApiError, problem
from api.settings import Settings, is_loopback

OPEN_PATHS = frozenset({"/healthz", "/readyz"})  # probes carry no token; they tell nothing but up or down
SIGN_IN = ("POST", "/api/v1/session")  # takes the token in its body
UPLOAD = ("POST", "/api/v1/datasets")  # streamed to disk; the route has a limit of its own
MAX_BODY_SIZES = {UPLOAD: 2**62, SIGN_IN: session.MAX_BODY_SIZE}  # in place of the service's
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


class Gate:
    """Refuse what must not come in, number every request, and put the security headers on every answer."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self.app = app
        self.max_body_size = settings.max_body_size
        self.token = settings.token.get_secret_value().encode() if settings.token else None
        # Behind another address than loopback the names are only known if the settings list them; the token guards.
        loopback = is_loopback(settings.host)
        self.hosts = {name.lower() for name in settings.allowed_hosts}
        if loopback or self.hosts:
            self.hosts |= {"localhost", "127.0.0.1", "::1", settings.host.lower()}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":  # lifespan; there are no websocket routes
            await self.app(scope, receive, send)
            return
        request_id = scope["blockwright.request_id"] = uuid.uuid4().hex

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers["X-Request-Id"] = request_id
                headers["X-Content-Type-Options"] = "nosniff"
                headers["Referrer-Policy"] = "no-referrer"
                page.add_headers(scope["method"], scope["path"], headers)
                headers.setdefault("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'; sandbox")
                headers.setdefault("Cache-Control", "no-cache")
            await send(message)

        try:
            self._check(scope["method"], scope["path"], Headers(scope=scope))
        except ApiError as error:
            answer = problem(request_id, error.status, error.code, error.detail, headers=error.headers)
            await answer(scope, receive, send_with_headers)
            return
        await self.app(scope, receive, send_with_headers)

    def _check(self, method: str, path: str, headers: Headers) -> None:
        host = headers.get("host", "")
        name = _host_name(host)
        if name is None:
            raise ApiError(400, "invalid-host", f"the Host header {host[:60]!r} names no host")
        if self.hosts and name not in self.hosts:
            raise ApiError(421, "foreign-host", f"this is not {name[:60]!r}; call it by its own address")
        if method not in SAFE_METHODS:
            _check_origin(headers, host)
        open_ = path in OPEN_PATHS or (method, path) == SIGN_IN or page.is_page(method, path)
        if self.token is not None and not open_:
            self._check_token(self.token, method, headers)
        length = headers.get("content-length", "0")
        limit = MAX_BODY_SIZES.get((method, path), self.max_body_size)
        if not length.isdecimal() or int(length[:20]) > limit:
            raise ApiError(413, "body-too-large", f"the body has {length[:20]} bytes; at most {limit}")

    def _check_token(self, token: bytes, method: str, headers: Headers) -> None:
        scheme, _, given = headers.get("authorization", "").partition(" ")
        # Compared in constant time, and always: how long it takes tells nothing about the token.
        right = hmac.compare_digest(given.strip().encode(errors="replace"), token)
        if scheme.lower() == "bearer" and right:
            return
        cookie = cookie_parser(headers.get("cookie", "")).get(session.COOKIE, "")
        if scheme or not session.holds(token, cookie, time.time()):
            detail = "this server needs its token: send it as Authorization: Bearer ..."
            raise ApiError(401, "unauthorized", detail, {"WWW-Authenticate": "Bearer"})
        # A cookie comes along whoever asks, so a change must say that our own page asks: browsers always do.
        # (`_check_origin` has refused another site's Origin; Sec-Fetch-Site is not sent over plain http to a name.)
        if method not in SAFE_METHODS and "origin" not in headers:
            raise ApiError(
                403, "foreign-origin", "a change in a session needs an Origin header; a program sends the token"
            )


def _host_name(host: str) -> str | None:
    """The name in a Host header without its port, lower-case; None if it holds none."""
    try:
        parts = urlsplit(f"//{host}")
        _ = parts.port  # raises for a port that is no number
    except ValueError:
        return None
    if parts.path or parts.query or parts.fragment or "@" in host or "\\" in host:
        return None
    return parts.hostname


def _check_origin(headers: Headers, host: str) -> None:
    """A change asked for by a page of another site is refused; programs send neither header."""
    origin = headers.get("origin")
    foreign = origin is not None and origin.lower() not in (f"http://{host.lower()}", f"https://{host.lower()}")
    if foreign or headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
        raise ApiError(403, "foreign-origin", "changes are not taken from pages of another site")
