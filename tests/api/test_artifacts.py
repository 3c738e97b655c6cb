from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from db import artifacts
from db.engine import transaction
from tests.api.running import Claimed, Running

CONTENT = bytes(range(256)) * 40


@pytest.fixture
def stored(service: Running, claimed: Claimed) -> artifacts.Artifact:
    return store(service, claimed, f"searches/{claimed.id}/export.zip")


def store(service: Running, claimed: Claimed, relative: str) -> artifacts.Artifact:
    path = service.data_dir / relative
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(CONTENT)
    with transaction(service.engine) as connection:
        return artifacts.put(
            connection,
            claimed.lease,
            kind="export",
            name="export.zip",
            path=relative,
            sha256=hashlib.sha256(CONTENT).hexdigest(),
            n_bytes=len(CONTENT),
            media_type="application/zip",
        )


def url(artifact: artifacts.Artifact) -> str:
    return f"/api/v1/artifacts/{artifact.id}"


def test_a_download_is_an_attachment_whose_etag_is_its_sha256(service: Running, stored: artifacts.Artifact) -> None:
    answer = service.http.get(url(stored))
    assert answer.status_code == 200
    assert answer.content == CONTENT
    assert answer.headers["etag"] == f'"{hashlib.sha256(CONTENT).hexdigest()}"'
    assert answer.headers["content-disposition"] == 'attachment; filename="export.zip"'
    assert answer.headers["content-type"] == "application/zip"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "sandbox" in answer.headers["content-security-policy"]
    assert service.http.head(url(stored)).headers["content-length"] == str(len(CONTENT))


def test_a_range_can_be_asked_for(service: Running, stored: artifacts.Artifact) -> None:
    answer = service.http.get(url(stored), headers={"Range": "bytes=10-19"})
    assert (answer.status_code, answer.content) == (206, CONTENT[10:20])
    assert answer.headers["content-range"] == f"bytes 10-19/{len(CONTENT)}"
    other = service.http.get(url(stored), headers={"Range": "bytes=10-19", "If-Range": '"other"'})
    assert (other.status_code, other.content) == (200, CONTENT)


@pytest.mark.parametrize(
    ("wanted", "status"), [(f"bytes={len(CONTENT)}-", 416), ("bytes=x", 400), ("lines=1-2", 400), ("bytes=9-3", 400)]
)
def test_a_range_that_cannot_be_sent_is_a_problem(
    service: Running, stored: artifacts.Artifact, wanted: str, status: int
) -> None:
    answer = service.http.get(url(stored), headers={"Range": wanted})
    assert (answer.status_code, answer.json()["code"]) == (status, "invalid-range")
    assert answer.json()["detail"].startswith(f"range {wanted!r} cannot be sent; the file has {len(CONTENT)} bytes")
    assert answer.headers["content-range"] == f"bytes */{len(CONTENT)}"


def test_a_file_that_was_replaced_is_asked_for_again(
    service: Running, claimed: Claimed, stored: artifacts.Artifact
) -> None:
    etag = service.http.get(url(stored)).headers["etag"]
    with transaction(service.engine) as connection:
        again = artifacts.put(
            connection,
            claimed.lease,
            kind="export",
            name="export.zip",
            path=stored.path,
            sha256="0" * 64,
            n_bytes=len(CONTENT),
            media_type="application/zip",
        )
    assert again.id == stored.id
    answer = service.http.get(url(stored), headers={"If-None-Match": etag})
    assert (answer.status_code, answer.headers["etag"]) == (200, f'"{"0" * 64}"')
    assert answer.headers["cache-control"] == "private, no-cache"


def test_a_copy_that_is_current_is_not_sent_again(service: Running, stored: artifacts.Artifact) -> None:
    etag = service.http.get(url(stored)).headers["etag"]
    answer = service.http.get(url(stored), headers={"If-None-Match": f'"x", {etag}'})
    assert (answer.status_code, answer.content) == (304, b"")


@pytest.mark.parametrize("change", ["missing", "shorter", "link", "link above"])
def test_a_file_that_is_not_what_was_hashed_is_not_sent(
    service: Running, claimed: Claimed, tmp_path_factory: pytest.TempPathFactory, change: str
) -> None:
    artifact = store(service, claimed, "searches/x/export.zip")
    path = service.data_dir / artifact.path
    outside = tmp_path_factory.mktemp("outside")
    (outside / "export.zip").write_bytes(CONTENT)
    if change == "shorter":
        path.write_bytes(CONTENT[:-1])
    else:
        path.unlink()
    if change == "link":
        path.symlink_to(outside / "export.zip")
    if change == "link above":
        path.parent.rmdir()
        path.parent.symlink_to(outside, target_is_directory=True)
    answer = service.http.get(url(artifact))
    assert (answer.status_code, answer.json()["code"]) == (410, "artifact-gone")
    assert answer.json()["detail"] == "the file of 'export.zip' is no longer what the search left"


@pytest.mark.parametrize(
    "path",
    [
        "..%2f..%2fetc%2fpasswd",
        "..%5c..%5cfilename",
        "C:%2fwindows",
        "0190a5c0-0000-7000-8000-00000000000",
        "0190a5c0-0000-7000-8000-000000000000%00",
        "%2fetc%2fpasswd",
    ],
)
def test_a_path_is_no_id(service: Running, path: str) -> None:
    answer = service.http.get(f"/api/v1/artifacts/{path}")
    assert answer.status_code in (404, 422)
    assert answer.json()["code"] in ("not-found", "invalid-request")


def test_an_unknown_artifact_is_not_found(service: Running) -> None:
    answer = service.http.get("/api/v1/artifacts/0190a5c0-0000-7000-8000-000000000000")
    assert (answer.status_code, answer.json()["code"]) == (404, "not-found")


def test_the_search_lists_its_artifacts(service: Running, claimed: Claimed, stored: artifacts.Artifact) -> None:
    (found,) = service.http.get(f"/api/v1/searches/{claimed.id}/artifacts").json()["items"]
    assert found == {
        "id": stored.id,
        "kind": "export",
        "name": "export.zip",
        "media_type": "application/zip",
        "sha256": hashlib.sha256(CONTENT).hexdigest(),
        "n_bytes": len(CONTENT),
    }
    assert str(Path(stored.path)) not in str(found)
