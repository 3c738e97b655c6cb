"""The page in a real browser over the real service: from a text to a downloaded model that runs.

Each test ends with nothing to complain of: no console error, no failed or refused request but those it provoked, no
breach of the content policy.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import APIResponse, Browser, Download, Locator, Page, Route, expect
from pydantic import SecretStr

from api.settings import Settings
from db import migrate
from nas.data.corpora import read_corpus
from tests.api.running import running
from tests.end_to_end.browser import Watched, watched
from tests.end_to_end.service import serving
from workers.cluster import Cluster

pytestmark = pytest.mark.ray
LONG_MS = 240_000  # until a search is where it should be, on a busy machine

# The smallest of the requests tried whose alpha moves well beyond chance.
REQUEST: dict[str, Any] = {
    "name": "from a text of mine",
    "space": {
        "n_slots": 2, "d_model": 32, "n_heads": 2, "max_len": 32, "candidates": ["attention", "ffn", "identity", "sgu"],
    },
    "task": {"dataset": "topics", "train_length": 32, "serve": [{"batch": 2, "query_length": 32}]},
    "method": {
        "n_steps": 500, "report_every": 50, "checkpoint_every": 100, "lr": 2e-2, "batch_size": 8, "alpha_share": 0.4,
        "tau_end": 0.5, "lr_warmup_steps": 2, "eval_windows": 4, "prune_steps": 0,
    },
    "trials": {"n_seeds": 2},
    "retrain": {"n_steps": 60, "n_seeds": 1, "test_windows": 8},
}  # fmt: skip


@pytest.fixture(scope="module")
def service(ray_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serving(tmp_path_factory.mktemp("page"), ray_cluster, BLOCKWRIGHT_CPUS="2", BLOCKWRIGHT_GPUS="2") as url:
        yield url


@pytest.fixture
def tab(browser: Browser, service: str) -> Iterator[Watched]:
    with watched(browser, service) as found:
        yield found


def json_of(page: Page) -> dict[str, Any]:
    request: dict[str, Any] = json.loads(page.get_by_label("request as JSON").input_value())
    return request


def edit_json(page: Page, pattern: str, by: str) -> None:
    area = page.get_by_label("request as JSON")
    before = area.input_value()
    after = re.sub(pattern, by, before)
    assert after != before, pattern
    area.fill(after)


# -- new search -------------------------------------------------------------------------------------------------------


def test_form_and_json_follow_each_other_and_survive_a_reload(tab: Watched) -> None:
    page = tab.open("/new")
    page.get_by_label("Name").fill("mine")
    page.get_by_label("Slots").fill("12")
    page.get_by_role("button", name="remove sgu").click()
    request = json_of(page)
    assert (request["name"], request["space"]["n_slots"]) == ("mine", 12)
    assert [each["block"] for each in request["space"]["candidates"]] == ["attention", "ffn", "identity", "mgk"]
    expect(page.get_by_text(re.compile("12 slots . 4 candidates"))).to_be_visible()

    edit_json(page, '"d_model": 64', '"d_model": 96')
    expect(page.get_by_label("Width", exact=True)).to_have_value("96")
    edit_json(page, '"d_model": 96,', '"d_model": 128 "')
    expect(page.get_by_role("status")).to_contain_text(re.compile(r'line 7, column \d+: expected "," or "}"'))
    expect(page.get_by_label("Width", exact=True)).to_have_value("96")  # the last that was good
    expect(page.get_by_role("button", name="Start the search")).to_be_disabled()

    page.reload()
    expect(page.get_by_role("status")).to_contain_text("line 7, column")
    page.get_by_role("button", name="restore").click()
    expect(page.get_by_label("Width", exact=True)).to_have_value("96")
    expect(page.get_by_label("Slots")).to_have_value("12")


def test_what_the_service_refuses_stands_at_its_field_and_its_line(tab: Watched) -> None:
    page = tab.open("/new?preset=decoder")
    page.get_by_role("button", name="remove ffn").click()
    edit_json(page, '"n_kv_heads": 2', '"n_kv_heads": 3')  # what only the service knows
    page.get_by_role("button", name="Start the search").click()
    wrong = page.get_by_role("list", name="what is wrong")
    expect(wrong).to_contain_text("/space/candidates/0/options/n_kv_heads")
    expect(wrong).to_contain_text("n_kv_heads 3 does not divide n_heads 4")
    expect(page.get_by_label("Kv heads")).to_be_focused()  # in the fold of its candidate, which has opened
    expect(page.get_by_role("list", name="candidates")).to_contain_text("does not divide n_heads 4")
    expect(page.locator(".json-wrong")).to_contain_text('"n_kv_heads": 3')
    tab.allow("refused: POST", "/api/v1/searches: 422")
    tab.allow("console error", "422", "/api/v1/searches")

    edit_json(page, '"n_kv_heads": 3', '"n_kv_heads": 2')
    expect(wrong).to_have_count(0)
    page.get_by_label("Heads").first.fill("5")  # what the page sees by itself
    expect(wrong).to_contain_text("5 heads do not divide the width 64")
    page.get_by_role("button", name="Start the search").click()
    expect(page.get_by_label("Heads").first).to_be_focused()


def test_a_double_click_queues_one_search_whose_failure_tells_its_reason_first(tab: Watched) -> None:
    page = tab.open("/new")
    name = "one of two clicks"
    page.get_by_label("Name").fill(name)
    page.get_by_label("CPUs").fill("1000")  # more than there are
    page.get_by_role("button", name="Start the search").dblclick()
    page.wait_for_url(re.compile("/searches/"))
    found = page.request.get(f"{tab.url}/api/v1/searches").json()["items"]
    assert [each["name"] for each in found].count(name) == 1
    reason = page.get_by_role("alert").first
    expect(reason).to_contain_text("a trial needs 1000 CPUs", timeout=LONG_MS)
    below = page.get_by_role("list", name="stages").bounding_box()
    above = reason.bounding_box()
    assert above is not None
    assert below is not None
    assert above["y"] + above["height"] <= below["y"]
    page.get_by_role("link", name="Duplicate").click()
    expect(page.get_by_label("CPUs")).to_have_value("1000")
    expect(page.get_by_label("Name")).to_have_value(name)


# -- texts ------------------------------------------------------------------------------------------------------------


def upload(page: Page, name: str, content: bytes) -> None:
    page.locator("input[type=file]").set_input_files({"name": name, "mimeType": "text/plain", "buffer": content})
    page.get_by_role("button", name="Upload").click()


def test_a_text_is_uploaded_looked_at_used_and_removed(tab: Watched) -> None:
    page = tab.open("/datasets")
    make = (
        "() => {const d = new DataTransfer(); d.items.add(new File(['Call me Ishmael. '.repeat(100)], %s)); return d}"
    )
    dropped = page.evaluate_handle(make % json.dumps("My Notes (2).txt"))
    page.get_by_role("region", name="upload a dataset").dispatch_event("drop", {"dataTransfer": dropped})
    expect(page.get_by_label("Name")).to_have_value("my-notes-2")
    page.get_by_role("button", name="Upload").click()
    expect(page.get_by_text("is here: 1.7 kB")).to_be_visible()
    page.get_by_role("status").get_by_role("link", name="Use it in a new search").click()
    page.wait_for_url("**/new?dataset=my-notes-2")
    expect(page.get_by_label("Dataset")).to_have_value("my-notes-2")

    page.get_by_role("link", name="Datasets").click()
    page.get_by_role("link", name="my-notes-2", exact=True).click()
    expect(page.get_by_label("beginning of my-notes-2")).to_contain_text("Call me Ishmael.")
    page.get_by_role("button", name="remove my-notes-2").click()
    page.get_by_role("group", name="remove my-notes-2?").get_by_role("button", name="Remove").click()
    page.wait_for_url("**/datasets")
    expect(page.get_by_role("heading", name="Datasets")).to_be_visible()
    expect(page.get_by_role("link", name="my-notes-2", exact=True)).to_have_count(0)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"text " * 100 + b"\xff" + b" text" * 100, "not UTF-8 text: invalid byte at offset 500"),
        (b"text " * 100 + b"\0", "NUL byte at offset 500"),
    ],
    ids=["no UTF-8", "binary"],
)
def test_what_is_no_text_is_refused_with_its_place(tab: Watched, content: bytes, reason: str) -> None:
    page = tab.open("/datasets")
    upload(page, "thing.txt", content)
    expect(page.get_by_role("alert")).to_contain_text(reason)
    tab.allow("refused: POST", "/api/v1/datasets?name=thing&", "422")
    tab.allow("console error", "422")
    page.get_by_label("Name").fill("Thing")
    expect(page.get_by_text("a name begins with a small letter or a digit")).to_be_visible()
    page.get_by_label("Name").fill("python-docs")
    expect(page.get_by_text("python-docs is built in; take another name")).to_be_visible()


def test_an_upload_can_be_stopped(tab: Watched, tmp_path: Path) -> None:
    big = tmp_path / "big.txt"
    big.write_bytes(b"a line of some length, again and again\n" * 2_000_000)  # 78 MB
    page = tab.open("/datasets")
    page.context.new_cdp_session(page).send(
        "Network.emulateNetworkConditions",
        {"offline": False, "latency": 0, "downloadThroughput": -1, "uploadThroughput": 4_000_000},
    )
    page.locator("input[type=file]").set_input_files(big)
    page.get_by_role("button", name="Upload").click()
    expect(page.get_by_text(re.compile(r"of 78 MB, .* a second, .* left"))).to_be_visible()
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_text("stopped; nothing of it was kept")).to_be_visible()
    names = [each["name"] for each in page.request.get(f"{tab.url}/api/v1/datasets").json()["items"]]
    assert "big" not in names


# -- a search ---------------------------------------------------------------------------------------------------------


def state_of(page: Page) -> Locator:
    return page.locator(".search-title").get_by_role("status")


def start(page: Page, request: dict[str, Any]) -> str:
    """Submit a request by the form; returns the search's id."""
    page.get_by_label("request as JSON").fill(json.dumps(request))
    page.get_by_role("button", name="Start the search").click()
    page.wait_for_url(re.compile("/searches/"))
    return page.url.rsplit("/", 1)[1]


@pytest.mark.timeout(600)
def test_from_a_text_to_a_model_that_runs(tab: Watched, tmp_path: Path) -> None:
    page = tab.open("/datasets")
    upload(page, "topics.txt", read_corpus("python-docs"))
    page.get_by_role("status").get_by_role("link", name="Use it in a new search").click()
    expect(page.get_by_label("Dataset")).to_have_value("topics")
    search_id = start(page, REQUEST)

    # Live: while the search runs there is the heat map, the strip of leaders, a curve, and it goes on by itself.
    heat_map = page.get_by_role("img", name=re.compile(r"^probabilities of seed 0 after \d+ steps"))
    expect(heat_map).to_be_visible(timeout=LONG_MS)
    expect(state_of(page)).to_have_text("running")
    expect(page.get_by_role("img", name=re.compile("^leading blocks of seed 0"))).to_be_visible()
    expect(page.get_by_role("figure", name="loss over steps, search trials").locator("canvas").first).to_be_visible()
    expect(page.get_by_role("img", name=re.compile("^probabilities of seed 0 after 500 steps"))).to_be_visible(
        timeout=LONG_MS
    )

    # Its text stays as long as it is needed.
    page.get_by_role("link", name="Datasets").click()
    page.get_by_role("link", name="topics", exact=True).click()
    page.get_by_role("button", name="remove topics").click()
    asked = page.get_by_role("group", name="remove topics?")
    asked.get_by_role("button", name="Remove").click()
    asked.get_by_role("link", name="from a text of mine").click()  # the list of its searches may have it too
    page.wait_for_url(f"**/searches/{search_id}")
    tab.allow("refused: DELETE", "/api/v1/datasets/topics: 409")
    tab.allow("console error", "409")

    expect(state_of(page)).to_have_text("succeeded", timeout=LONG_MS)
    result = page.locator("#result")
    expect(result).to_contain_text("bits per byte")
    expect(result.get_by_role("img", name=re.compile("^result: "))).to_be_visible()
    with page.expect_download() as waiting:
        page.get_by_role("link", name="Download model").click()
    assert run(waiting.value, tmp_path).startswith(b"The ")

    # What is looked at stands in the address, and is there again after a reload.
    page.get_by_role("slider", name="slot; Enter opens its history").press("End")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("slot=2"))
    page.get_by_role("button", name="all", exact=True).click()
    expect(page.get_by_role("img", name=re.compile("^probabilities of seed 1 after 500 steps"))).to_be_visible()
    page.wait_for_url(re.compile("folded=0"))
    page.reload()
    expect(page.get_by_role("img", name=re.compile("^probabilities of seed 1 after 500 steps"))).to_be_visible()
    expect(page.get_by_role("heading", name="Slot 2")).to_be_visible()

    page.set_viewport_size({"width": 390, "height": 844})
    for path in ("/", "/new", "/datasets", "/datasets/topics", f"/searches/{search_id}"):
        tab.open(path)
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        expect(page.locator("main").get_by_role("listitem").or_(page.locator("main td")).first).to_be_visible()
        page.wait_for_load_state("networkidle")
        wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wide <= 0, f"{path} is {wide} pixels wider than the screen"


def run(download: Download, folder: Path) -> bytes:
    """What the downloaded model says, in a folder of its own."""
    archive = folder / "export.zip"
    download.save_as(archive)
    model = folder / "model"
    with zipfile.ZipFile(archive) as opened:
        opened.extractall(model)
    command = [sys.executable, "-P", "model.py", "--prompt", "The ", "--bytes", "20"]
    done = subprocess.run(command, cwd=model, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


@pytest.mark.timeout(600)
def test_a_search_is_cancelled_and_resumed(tab: Watched) -> None:
    page = tab.open("/new")
    long = {**REQUEST, "name": "a long one", "method": {**REQUEST["method"], "n_steps": 1_000_000}}
    start(page, {**long, "task": {**REQUEST["task"], "dataset": "python-docs"}, "trials": {"n_seeds": 1}})
    heat_map = page.get_by_role("img", name=re.compile(r"^probabilities of seed 0 after \d{3,} steps"))
    expect(heat_map).to_be_visible(timeout=LONG_MS)
    answers: list[tuple[Route, APIResponse]] = []  # that say "cancelled", kept back
    streams: list[Route] = []

    def keep_back(route: Route) -> None:
        answer = route.fetch()
        if answer.json()["state"] == "cancelled":
            answers.append((route, answer))
        else:
            route.fulfill(response=answer)

    page.route(re.compile(r"/searches/[\w-]+$"), keep_back)
    page.get_by_role("button", name="Cancel").click()
    expect(state_of(page)).to_have_text("cancelled", timeout=LONG_MS)
    expect(heat_map).to_be_visible()  # what was found so far stays
    while not answers:
        page.wait_for_timeout(20)
    page.route("**/events?after=*", lambda route: streams.append(route))
    page.get_by_role("button", name="Resume").click()
    expect(state_of(page)).to_have_text("queued")  # by the resume's own answer
    for route, answer in answers:
        route.fulfill(response=answer)  # what was asked before the resume comes after it
    page.wait_for_timeout(200)
    expect(state_of(page)).to_have_text(re.compile("queued|running"))
    for route in streams:
        route.continue_()
    page.unroute_all()
    expect(state_of(page)).to_have_text("running", timeout=LONG_MS)
    expect(page.get_by_text("attempt 2")).to_be_visible(timeout=LONG_MS)
    page.get_by_role("button", name="Cancel").click()
    expect(state_of(page)).to_have_text("cancelled", timeout=LONG_MS)


# -- every page -------------------------------------------------------------------------------------------------------


def test_light_and_dark_follow_the_system_until_chosen(tab: Watched) -> None:
    page = tab.open("/")
    ground = "getComputedStyle(document.documentElement).backgroundColor"
    page.emulate_media(color_scheme="light")
    light = page.evaluate(ground)
    page.emulate_media(color_scheme="dark")
    dark = page.evaluate(ground)
    assert light != dark
    page.get_by_role("button", name="theme: system; change").click()
    assert page.evaluate(ground) == light
    page.get_by_role("button", name="theme: light; change").click()
    page.emulate_media(color_scheme="light")
    page.reload()
    assert page.evaluate(ground) == dark


def test_a_service_with_a_token_asks_for_it_in_place(browser: Browser, tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, token=SecretStr("correct-horse-battery"))
    migrate.upgrade(settings.database_url)
    with running(settings) as asking, watched(browser, asking.url) as tab:
        page = tab.open("/datasets")
        page.get_by_label("This service asks for its token").fill("correct-horse-staple!")
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("alert")).to_be_visible()
        page.get_by_label("This service asks for its token").fill("correct-horse-battery")
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_text("python-stdlib")).to_be_visible()
        page.reload()
        expect(page.get_by_text("python-stdlib")).to_be_visible()
        (cookie,) = page.context.cookies()
        assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
        upload(page, "mine.txt", b"with a cookie alone\n" * 100)
        expect(page.get_by_text("is here: 2.0 kB")).to_be_visible()
        tab.allow("401")
