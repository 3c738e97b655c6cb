"""The page: the built files of `api/web`, served below the routes of the API.

The files hold no data, so they are open also where the service asks for a token; what they show, they ask the API for.
An address that the page draws itself, such as /searches/ID, is answered with index.html.
"""

from __future__ import annotations

import re
from pathlib import Path

from fastapi import APIRouter, Depends, FastAPI, HTTPException, Request
from starlette.datastructures import MutableHeaders

from api.errors import ApiError

FOLDER = Path(__file__).parent / "web" / "dist"
# No inline script and no inline style: React and the charts set styles through the DOM, which the policy lets pass.
POLICY = (
    "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'self';"
    " frame-ancestors 'none'"
)
ASSETS = "/assets/"  # file names carry a hash of the content
_PAGES = re.compile(
    r"/|/new|/datasets(?:/[^/]+)?|/searches/[^/]+|/index\.html|/icon\.svg|/theme\.js|/assets/[A-Za-z0-9_.-]+"
)


def is_page(method: str, path: str) -> bool:
    """Whether this asks for a file of the page or an address that it draws: such requests need no token."""
    return method in ("GET", "HEAD") and _PAGES.fullmatch(path) is not None


def is_built(folder: Path = FOLDER) -> bool:
    return (folder / "index.html").is_file()


def install(app: FastAPI, folder: Path = FOLDER) -> None:
    """Serve the page from `folder`, which may be built later; call it after all routes of the API."""

    def check(request: Request) -> None:
        path = request.url.path
        if path == "/api" or path.startswith("/api/"):  # a browser must see there what a program sees
            raise HTTPException(404)
        if not is_built(folder):
            detail = "the page is not built; `make page` builds it, and an installed wheel carries it"
            raise ApiError(503, "page-missing", detail)

    router = APIRouter(dependencies=[Depends(check)])
    router.frontend("/", directory=folder, fallback="index.html", check_dir=False)
    app.include_router(router)


def add_headers(method: str, path: str, headers: MutableHeaders) -> None:
    """Put on a file of the page what it must carry; all other answers keep the policy of the API."""
    kind = headers.get("content-type", "")
    is_html = kind.startswith("text/html") and not path.startswith(
        "/api/"
    )  # index.html for an address it does not know
    if kind.startswith("application/problem+json") or not (is_html or is_page(method, path)):
        return
    headers["Content-Security-Policy"] = POLICY
    if path.startswith(ASSETS) and not is_html:
        headers["Cache-Control"] = "public, max-age=31536000, immutable"
