"""What all pages share, and the list of searches, in a real browser: sign-in, theme, a service that is away."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, ViewportSize, expect
from pydantic import SecretStr

from api.settings import Settings
from db.migrate import upgrade
from tests.api.running import TINY, Running, running
from tests.end_to_end.browser import watched

TOKEN = "correct-horse-battery-staple"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    upgrade(f"sqlite:///{tmp_path / 'blockwright.db'}")
    return Settings(data_dir=tmp_path, port=0)


@pytest.fixture
def service(settings: Settings) -> Iterator[Running]:
    with running(settings) as found:  # no dispatcher: what is queued stays so
        yield found


def submit(service: Running, name: str, dataset: str = "python-docs") -> dict[str, Any]:
    request = {**TINY, "name": name, "task": {**TINY["task"], "dataset": dataset}}
    answer = service.http.post("/api/v1/searches", json=request)
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_an_empty_list_says_what_to_do(browser: Browser, service: Running) -> None:
    with watched(browser, service.url) as tab:
        page = tab.open("/")
        expect(page.get_by_role("heading", name="No searches yet")).to_be_visible()
        expect(page.get_by_text("blockwright submit examples/quickstart.json")).to_be_visible()
        page.get_by_role("link", name="Start with the quickstart").click()
        page.wait_for_url("**/new?preset=quickstart")


def test_filters_are_in_the_address_and_rows_change_in_place(browser: Browser, service: Running) -> None:
    docs, _ = submit(service, "on docs"), submit(service, "on the library", "python-stdlib")
    with watched(browser, service.url) as tab:
        page = tab.open("/?state=queued")
        expect(page.get_by_role("main").get_by_role("listitem").get_by_role("link")).to_have_count(2)
        page.get_by_label("Dataset").select_option("python-docs")
        page.wait_for_url("**/?state=queued&dataset=python-docs")
        row = page.get_by_role("link", name=re.compile("on docs"))
        expect(row).to_contain_text("waits for a free place")
        expect(page.get_by_role("link", name=re.compile("on the library"))).to_have_count(0)
        page.go_back()
        expect(page.get_by_label("Dataset")).to_have_value("")

        page.get_by_role("navigation", name="state").get_by_role("link", name="all").click()
        page.wait_for_url(f"{service.url}/")
        service.http.post(f"/api/v1/searches/{docs['id']}/cancel")
        expect(row).to_contain_text("cancelled")  # without a reload
        row.click()
        page.wait_for_url(f"**/searches/{docs['id']}")


def test_a_long_list_comes_in_parts(browser: Browser, service: Running) -> None:
    for number in range(27):
        submit(service, f"search {number:02}")
    with watched(browser, service.url) as tab:
        page = tab.open("/")
        rows = page.locator("a.list-row")
        expect(rows).to_have_count(25)
        page.get_by_role("link", name="Older").click()
        expect(rows).to_have_count(2)
        expect(rows.last).to_contain_text("search 00")
        page.get_by_role("link", name="Newest").click()
        expect(rows.first).to_contain_text("search 26")


def test_a_forged_cursor_is_told_and_left_by_a_link(browser: Browser, service: Running) -> None:
    with watched(browser, service.url) as tab:
        page = tab.open("/?cursor=forged")
        expect(page.get_by_role("alert")).to_contain_text("invalid cursor 'forged'")
        tab.allow("refused", "cursor=forged")
        tab.allow("console error", "cursor=forged")
        page.get_by_role("link", name="All searches", exact=True).click()
        expect(page.get_by_role("heading", name="No searches yet")).to_be_visible()


def test_signing_in_happens_in_place_and_signing_out_ends_it(browser: Browser, settings: Settings) -> None:
    with (
        running(settings.model_copy(update={"token": SecretStr(TOKEN)})) as service,
        watched(browser, service.url) as tab,
    ):
        page = tab.open("/?state=failed")
        expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
        expect(page.get_by_role("main")).to_be_hidden()
        token = page.get_by_label(re.compile("asks for its token"))
        expect(token).to_be_focused()
        token.fill("wrong")
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("alert")).to_contain_text("this is not the token of the service")
        token.fill(TOKEN)
        token.press("Enter")
        expect(page.get_by_role("heading", name="No search is like that")).to_be_visible()
        assert page.url.endswith("/?state=failed")
        (cookie,) = page.context.cookies()
        assert cookie["httpOnly"]
        assert cookie["sameSite"] == "Strict"
        assert page.evaluate("document.cookie") == ""
        assert TOKEN not in page.evaluate("JSON.stringify([localStorage, sessionStorage])")

        page.get_by_role("button", name="Sign out").click()
        expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
        assert page.context.cookies() == []
        tab.allow("refused", ": 401")
        tab.allow("console error", "401")


def test_a_service_that_is_away_is_told_and_the_page_heals(browser: Browser, service: Running) -> None:
    with watched(browser, service.url) as tab:
        page = tab.open("/")
        expect(page.get_by_role("heading", name="No searches yet")).to_be_visible()
        page.context.set_offline(True)
        banner = page.get_by_text("this page goes on as soon as it does")
        page.get_by_role("link", name="Datasets").click()
        expect(banner).to_be_visible()
        page.context.set_offline(False)
        expect(banner).to_have_count(0)
        expect(page.get_by_text("python-docs").first).to_be_visible()
        tab.allow("ERR_INTERNET_DISCONNECTED")


def test_the_theme_is_the_systems_until_one_is_chosen(browser: Browser, service: Running) -> None:
    background = "getComputedStyle(document.documentElement).backgroundColor"
    with watched(browser, service.url, color_scheme="dark") as tab:
        page = tab.open("/")
        dark = page.evaluate(background)
        switch = page.get_by_role("button", name=re.compile("theme"))
        switch.click()
        expect(switch).to_have_attribute("title", "theme: light")
        light = page.evaluate(background)
        assert light != dark
        page.reload()
        assert page.evaluate(background) == light
        switch.click()
        switch.click()
        expect(switch).to_have_attribute("title", "theme: system")
        assert page.evaluate(background) == dark


@pytest.mark.parametrize("path", ["/", "/new", "/datasets", "/nothing/here"])
def test_no_page_is_wider_than_a_phone(browser: Browser, service: Running, path: str) -> None:
    submit(service, "a name without any space that is far too long for one line".replace(" ", "_"))
    with watched(browser, service.url, viewport=ViewportSize(width=390, height=844)) as tab:
        page = tab.open(path)
        expect(page.get_by_role("main")).not_to_be_empty()
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
