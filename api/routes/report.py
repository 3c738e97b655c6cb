"""What a search found: result.json, or a report of it as a page or as Markdown, made from the rows as they are now.

A report needs no result: of a search that is running or has failed it tells what there is, and says so.
"""

from __future__ import annotations

import hashlib
from typing import Annotated, Literal, get_args

from fastapi import APIRouter, Query, Request, Response

from api import result_schemas, views
from api.body import StrictRoute
from api.deps import Database, SearchId, matches, tagged
from api.errors import ApiError
from db import searches
from db.engine import reading
from db.left import Left
from nas.report.markdown import markdown
from nas.report.page import html
from nas.report.rows import report_data
from nas.report.style import POLICY
from nas.rules import of_today

router = APIRouter(prefix="/api/v1/searches", tags=["searches"], route_class=StrictRoute)

Format = Literal["json", "html", "markdown"]
_TYPES: dict[Format, str] = {"json": "application/json", "html": "text/html", "markdown": "text/markdown"}
_SUFFIXES: dict[Format, str] = {"json": "json", "html": "html", "markdown": "md"}


@router.get(
    "/{search_id}/report",
    response_model=result_schemas.Result,
    responses={
        200: {
            "description": "JSON unless `format` or Accept asks for another",
            "content": {
                _TYPES["html"]: {"schema": {"type": "string"}},
                _TYPES["markdown"]: {"schema": {"type": "string"}},
            },
        }
    },
)
def get_result(
    search_id: SearchId,
    request: Request,
    engine: Database,
    format: Annotated[Format | None, Query(description="instead of what Accept asks for")] = None,
) -> Response:
    """What the search found: the content of result.json; as html or markdown a report of it, complete or not."""
    chosen = format or accepted(request.headers.get("accept", ""))
    if chosen == "json":
        with reading(engine) as connection:
            search = searches.get(connection, search_id)
        if search.result is None:
            now = f"{search.state} ({search.stage})" if search.stage else search.state
            later = "a result comes when it has succeeded, and ?format=html reports until then"
            raise ApiError(404, "no-result", f"search {search_id} is {now}; {later}")
        result = search.result
        if "rule" in result:  # of an older version, in the words of today
            result = {**result, "rule": of_today(result["rule"])}
        answer = tagged(request, views.Anything(result))
    else:
        with reading(engine) as connection:
            data = report_data(Left(connection, search_id))
        answer = _text(request, html(data) if chosen == "html" else markdown(data), chosen, search_id)
    answer.headers["Vary"] = "Accept"
    return answer


def accepted(header: str) -> Format:
    """The best of an Accept header (RFC 9110, section 12.5.1) by its weights; JSON where it tells no difference."""
    ranges = [_range(each) for each in header.split(",") if each.strip()] or [("*/*", 1.0)]

    def weight(media_type: str) -> float:
        exact, group = media_type, f"{media_type.partition('/')[0]}/*"
        return next((q for name in (exact, group, "*/*") for told, q in ranges if told == name), 0.0)

    # JSON comes first among equals, and where nothing here is accepted.
    return max(get_args(Format), key=lambda each: weight(_TYPES[each]))


def _range(text: str) -> tuple[str, float]:
    """A media range and its weight; one that cannot be read has none."""
    name, *parameters = (part.strip().lower() for part in text.split(";"))
    for each in parameters:
        key, _, value = each.partition("=")
        if key.strip() == "q":
            try:
                return name, min(1.0, max(0.0, float(value)))
            except ValueError:
                return name, 0.0
    return name, 1.0


def _text(request: Request, text: str, chosen: Format, search_id: str) -> Response:
    """With an ETag of its bytes, and the policy under which it can do nothing but be read."""
    body = text.encode()
    etag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    headers = {
        "ETag": etag,
        "Content-Disposition": f'inline; filename="report-{search_id}.{_SUFFIXES[chosen]}"',
        "Content-Security-Policy": f"{POLICY}; frame-ancestors 'none'; sandbox",
    }
    if matches(request, etag):
        return Response(status_code=304, headers=headers)
    return Response(body, media_type=f"{_TYPES[chosen]}; charset=utf-8", headers=headers)
