from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import SecretStr

from api import page
from api.settings import Settings
from tests.api.running import Running, running

HTML = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
INDEX = "<!doctype html><title>Blockwright</title>"
UNKNOWN = "0190a5c0-0000-7000-8000-000000000000"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A built page of two files, in place of ours, which need not be built where tests run."""
    found = tmp_path / "dist"
    (found / "assets").mkdir(parents=True)
    (found / "index.html").write_text(INDEX)
    (found / "theme.js").write_text("1;")
    (found / "assets" / "index-4f2a.js").write_text("2;")
    (tmp_path / "secret.txt").write_text("secret")
    (found / "assets" / "link.txt").symlink_to(tmp_path / "secret.txt")
    monkeypatch.setattr(page.install, "__defaults__", (found,))
    return found


@pytest.fixture
def served(folder: Path, settings: Settings) -> Iterator[Running]:
    with running(settings.model_copy(update={"token": SecretStr("correct-horse-battery-staple")})) as found:
        yield found


@pytest.mark.parametrize(
    "path", ["/", "/new", "/new?preset=par", "/datasets", "/datasets/wikitext-2.txt", f"/searches/{UNKNOWN}?step=3"]
)
def test_the_addresses_of_the_page_are_open_and_answer_its_index(served: Running, path: str) -> None:
    answer = served.http.get(path, headers=HTML)
    assert (answer.status_code, answer.text) == (200, INDEX)
    assert answer.headers["content-type"].startswith("text/html")
    assert answer.headers["cache-control"] == "no-cache"
    assert answer.headers["content-security-policy"] == page.POLICY
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert served.http.get(path, headers={**HTML, "If-None-Match": answer.headers["etag"]}).status_code == 304


def test_the_policy_lets_nothing_in_from_elsewhere() -> None:
    directives = dict(each.strip().split(" ", 1) for each in page.POLICY.split(";"))
    assert directives["default-src"] == "'self'"
    assert "unsafe" not in page.POLICY
    for name in ("object-src", "base-uri", "frame-ancestors"):
        assert directives[name] == "'none'"


def test_files_with_a_hash_in_their_name_are_kept_for_good(served: Running) -> None:
    answer = served.http.get("/assets/index-4f2a.js")
    assert (answer.status_code, answer.text) == (200, "2;")
    assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert "javascript" in answer.headers["content-type"]
    assert served.http.get("/theme.js").headers["cache-control"] == "no-cache"
    assert served.http.head("/assets/index-4f2a.js").status_code == 200


def test_a_file_that_is_gone_is_kept_by_nobody(served: Running) -> None:
    for headers in ({}, HTML):  # with HTML the index is answered: an address typed by hand
        answer = served.http.get("/assets/index-old.js", headers=headers)
        assert answer.headers["cache-control"] == "no-cache"
    assert served.http.get("/assets/index-old.js").json()["code"] == "not-found"


@pytest.mark.parametrize(
    "path",
    [
        "/assets/../../secret.txt",
        "/assets/..%2f..%2fsecret.txt",
        "/..%2fsecret.txt",
        "/assets/%2e%2e/%2e%2e/secret.txt",
        "/assets/..%5c..%5csecret.txt",
        "//secret.txt",
        "/assets/link.txt",
        "/assets/%00",
    ],
)
def test_no_path_leads_out_of_the_folder(served: Running, path: str) -> None:
    for headers in ({}, {"Authorization": "Bearer correct-horse-battery-staple"}):
        answer = served.http.request("GET", served.url + path, headers=headers)
        assert answer.status_code in (401, 404), answer.text
        assert "secret" not in answer.text.replace("secret.txt", "")


def test_an_address_that_nobody_knows_is_the_page_which_says_so(folder: Path, settings: Settings) -> None:
    with running(settings) as service:
        answer = service.http.get("/nothing/here", headers=HTML)
        assert (answer.status_code, answer.text) == (200, INDEX)
        assert answer.headers["content-security-policy"] == page.POLICY
        assert service.http.get("/nothing/here").json()["code"] == "not-found"


def test_an_address_below_api_is_a_problem_for_a_browser_too(folder: Path, settings: Settings) -> None:
    with running(settings) as service:
        for path in ("/api", "/api/", "/api/v1/nothing"):
            answer = service.http.get(path, headers=HTML)
            assert (answer.status_code, answer.json()["code"]) == (404, "not-found")
            assert "sandbox" in answer.headers["content-security-policy"]
        answer = service.http.post("/new", headers={"Origin": service.url})
        assert answer.status_code in (404, 405)


def test_a_page_that_is_not_built_says_how_to_build_it(settings: Settings, folder: Path) -> None:
    (folder / "index.html").rename(folder / "elsewhere.html")
    with running(settings) as service:
        answer = service.http.get("/", headers=HTML)
        assert (answer.status_code, answer.json()["code"]) == (503, "page-missing")
        expected = "the page is not built; `make page` builds it, and an installed wheel carries it"
        assert answer.json()["detail"] == expected
        assert service.http.get("/api/v1/searches").status_code == 200
        (folder / "elsewhere.html").rename(folder / "index.html")
        assert service.http.get("/", headers=HTML).text == INDEX  # no new start is needed
