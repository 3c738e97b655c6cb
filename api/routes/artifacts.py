"""Downloads. A client names an artifact by id, never a path; a file of another size than was hashed is not sent."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from fastapi import APIRouter, Request, Response
from fastapi.responses import FileResponse
from starlette.datastructures import Headers
from starlette.types import Message, Receive, Scope, Send

from api.deps import ArtifactId, Database, DataDir, matches
from api.errors import ApiError
from db import artifacts
from db.engine import reading

router = APIRouter(prefix="/api/v1/artifacts", tags=["artifacts"])


class Download(FileResponse):
    """A file whose ranges are refused by a problem; Starlette would answer in plain text."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_if_good(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] >= 400:
                wanted, size = Headers(scope=scope).get("range", ""), self.headers["content-length"]
                detail = f"range {wanted[:60]!r} cannot be sent; the file has {size} bytes, and bytes=0-9 are its first"
                raise ApiError(message["status"], "invalid-range", detail, {"Content-Range": f"bytes */{size}"})
            await send(message)

        await super().__call__(scope, receive, send_if_good)


@router.head("/{artifact_id}", include_in_schema=False)
@router.get(
    "/{artifact_id}",
    response_class=FileResponse,
    responses={206: {"description": "the range asked for"}, 410: {"description": "the file is gone or was changed"}},
)
def download_artifact(artifact_id: ArtifactId, request: Request, engine: Database, data_dir: DataDir) -> Response:
    """The file, as an attachment; Range works, and the ETag is its sha256."""
    with reading(engine) as connection:
        artifact = artifacts.get(connection, artifact_id)
    # Asked for again each time: a search that is taken up again may leave another file under the same id.
    headers = {"ETag": f'"{artifact.sha256}"', "Cache-Control": "private, no-cache"}
    if matches(request, headers["ETag"]):
        return Response(status_code=304, headers=headers)
    found = _file(data_dir, artifact.path)
    if found is None or found[1].st_size != artifact.n_bytes:
        raise ApiError(410, "artifact-gone", f"the file of {artifact.name!r} is no longer what the search left")
    path, status = found
    return Download(path, headers=headers, media_type=artifact.media_type, filename=artifact.name, stat_result=status)


def _file(data_dir: Path, relative: str) -> tuple[Path, os.stat_result] | None:
    """The regular file at a stored path, if it lies in the data folder and no link leads elsewhere."""
    root = data_dir.resolve()
    path = root / relative
    try:
        if path.resolve(strict=True) != path or not path.is_relative_to(root):
            return None
        status = path.lstat()
    except OSError:
        return None
    return (path, status) if stat.S_ISREG(status.st_mode) else None
