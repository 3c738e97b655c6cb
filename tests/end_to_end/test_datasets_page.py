"""The datasets page and the form's data in a real browser: files of every kind go in, are looked at, and are used."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, ViewportSize, expect
from tokenizers import Tokenizer, models, pre_tokenizers

from api.settings import Settings
from db import datasets
from db.engine import reading
from db.migrate import upgrade
from nas.config.task import Tokenizer as Tokens
from nas.data.encode import encode
from nas.ingest.card import Card
from tests.api.running import Running, running
from tests.end_to_end.browser import Watched, watched

HOSTILE = "<script>document.title='run'</script> <b>bold</b> \u202e gnol"


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Running]:
    upgrade(f"sqlite:///{tmp_path / 'blockwright.db'}")
    with running(Settings(data_dir=tmp_path, port=0)) as found:  # no dispatcher: what is queued stays so
        yield found


@pytest.fixture
def tab(browser: Browser, service: Running) -> Iterator[Watched]:
    with watched(browser, service.url) as found:
        yield found


def reviews() -> bytes:
    """200 documents, each of its own: 120 "good", 60 "bad", 20 "mixed"; the first tries to be more than text."""
    chance = random.Random(0)
    labels = ["good"] * 120 + ["bad"] * 60 + ["mixed"] * 20
    texts = [HOSTILE, *(f"review {n}: {'word ' * chance.randint(3, 60)}" for n in range(1, 200))]
    rows = [{"text": text, "label": label} for text, label in zip(texts, labels, strict=True)]
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def choose(page: Page, name: str, content: bytes) -> None:
    page.locator("input[type=file]").set_input_files(
        {"name": name, "mimeType": "application/octet-stream", "buffer": content}
    )
    expect(page.get_by_label("Format")).to_be_visible()


def send(page: Page, name: str) -> None:
    page.get_by_role("button", name="Upload").click()
    expect(page.get_by_role("status")).to_contain_text(f"{name} is here")


def add(service: Running, name: str, content: bytes, **query: str) -> None:
    answer = service.http.post("/api/v1/datasets", params={"name": name, **query}, content=content)
    assert answer.status_code == 201, answer.text


def request_of(page: Page) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(page.get_by_label("request as JSON").input_value())
    return found


def test_labelled_rows_are_uploaded_looked_at_and_classified(tab: Watched) -> None:
    page = tab.open("/datasets")
    expect(page.get_by_text("blockwright datasets add reviews reviews.jsonl")).to_be_visible()
    choose(page, "My Reviews.jsonl", reviews())
    expect(page.get_by_label("Format")).to_have_value("jsonl")
    expect(page.get_by_label("Text field")).to_have_value("text")
    expect(page.get_by_label("Label field")).to_have_value("label")
    expect(page.get_by_label("Name")).to_have_value("my-reviews")
    send(page, "my-reviews")
    row = page.get_by_role("table", name="your datasets").get_by_role("row", name=re.compile("my-reviews"))
    expect(row).to_contain_text("200 documents")
    row.get_by_role("link", name="my-reviews", exact=True).click()
    page.wait_for_url("**/datasets/my-reviews")

    expect(page.get_by_role("heading", name="my-reviews", level=1)).to_be_visible()
    labels = page.get_by_role("table", name="labels of my-reviews")
    expect(labels.get_by_role("row")).to_contain_text(["label", "good12060%", "bad6030%", "mixed2010%"])
    expect(page.get_by_text("right in 60.0%")).to_be_visible()
    expect(page.get_by_role("table", name="lengths in my-reviews").get_by_role("row").nth(1)).to_be_visible()
    parts = [
        page.get_by_role("row", name=re.compile(f"^{part}")) for part in ("weights", "alpha", "validation", "test")
    ]
    counts = [int(re.findall(r"(\d+) documents?", each.inner_text())[0]) for each in parts]
    assert sum(counts) == 200
    assert counts == sorted(counts, reverse=True) or counts[2] < counts[3]
    assert counts[0] > counts[1] > counts[2] > 0
    expect(page.get_by_role("list", name="first rows").get_by_role("listitem").first).to_contain_text(HOSTILE)
    assert page.title() == "my-reviews · Blockwright"
    assert page.locator(".samples :is(script, pre b)").count() == 0
    stored = page.request.get(f"{tab.url}/api/v1/datasets/my-reviews").json()
    expect(page.get_by_text(stored["fingerprint"])).to_be_visible()

    page.get_by_role("link", name="use my-reviews in a new search").click()
    expect(page.get_by_label("Dataset")).to_have_value("my-reviews")
    expect(page.get_by_label("Predicts")).to_have_value("sequence_classification")
    request = request_of(page)
    assert request["task"]["objective"] == "sequence_classification"
    assert request["space"]["causal"] is False
    assert request["space"]["backbone"]["pooling"] in ("first", "mean")
    page.get_by_label("Tokens").select_option("words")
    page.get_by_label("Seen at least").fill("2")
    page.get_by_role("button", name="Start the search").click()
    page.wait_for_url(re.compile("/searches/"))
    queued = page.request.get(f"{tab.url}/api/v1/searches").json()["items"][0]["request"]["task"]
    assert queued["tokenizer"] | {"fingerprint": None} == {
        "type": "words", "vocab_size": None, "min_count": 2, "name": None, "fingerprint": None,
    }  # fmt: skip
    assert queued["dataset_fingerprint"] == stored["fingerprint"]

    # In use, its view says by whom, and it stays.
    tab.open("/datasets/my-reviews")
    expect(page.get_by_role("list", name="in use by").get_by_role("link", name="my-reviews")).to_be_visible()
    page.get_by_role("button", name="remove my-reviews").click()
    page.get_by_role("group", name="remove my-reviews?").get_by_role("button", name="Remove").click()
    expect(page.get_by_role("alert")).to_contain_text("my-reviews stays")
    tab.allow("refused: DELETE", "/api/v1/datasets/my-reviews: 409")
    tab.allow("console error", "409")


def test_what_is_wrong_with_a_file_stands_where_it_was_chosen(tab: Watched) -> None:
    page = tab.open("/datasets")
    ragged = "text,label\n" + "one line,good\n" * 40 + "one, two,bad\n" + "a last line,bad\n"
    choose(page, "ragged.csv", ragged.encode())
    expect(page.get_by_label("Format")).to_have_value("csv")
    page.get_by_role("button", name="Upload").click()
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("row 41")
    expect(page.get_by_text("ragged.csv", exact=True)).to_be_visible()
    tab.allow("refused: POST", "/api/v1/datasets?name=ragged", "422")
    tab.allow("console error", "422")

    # What it was taken for can be changed in place, and what is missing is asked for before anything is sent.
    page.get_by_label("Format").select_option("tokens")
    expect(page.get_by_text("how large is the vocabulary?")).to_be_visible()
    expect(page.get_by_role("button", name="Upload")).to_be_disabled()
    page.get_by_label("Format").select_option("text")
    page.get_by_role("button", name="Upload").click()
    expect(page.get_by_role("status")).to_contain_text("ragged is here")


def test_token_ids_need_no_tokenizer_and_a_file_of_one_is_chosen_by_name(tab: Watched, service: Running) -> None:
    page = tab.open("/datasets")
    ids = np.random.default_rng(0).integers(0, 50, 20_000).astype("<u2")
    choose(page, "corpus.bin", ids.tobytes())
    expect(page.get_by_label("Format")).to_have_value("tokens")
    page.get_by_label("Vocabulary").fill("50")
    send(page, "corpus")
    vocabulary = {word: number for number, word in enumerate(["<unk>", "<eos>", "a", "b"])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    page.get_by_role("button", name="Choose a file").wait_for()
    choose(page, "tokenizer.json", tokenizer.to_str().encode())
    expect(page.get_by_label("Format")).to_have_value("tokenizer")
    page.get_by_label("Name").fill("letters")
    send(page, "letters")

    page.get_by_role("link", name="use corpus in a new search").click()
    expect(page.get_by_label("Tokens")).to_have_value("given")
    assert request_of(page)["task"]["tokenizer"]["type"] == "given"
    page.get_by_label("Dataset").select_option("python-docs")
    expect(page.get_by_label("Tokens")).to_have_value("bytes")
    page.get_by_label("Tokens").select_option("file")
    expect(page.get_by_label("Which tokenizer")).to_have_value("letters")
    assert request_of(page)["task"]["tokenizer"] == {
        "type": "file", "vocab_size": None, "min_count": 1, "name": "letters", "fingerprint": None,
    }  # fmt: skip
    tab.open("/datasets/letters")
    page.get_by_role("link", name="use letters in a new search").click()
    expect(page.get_by_label("Which tokenizer")).to_have_value("letters")


def test_a_synthetic_task_brings_its_options_and_sets_what_it_needs(tab: Watched) -> None:
    page = tab.open("/datasets")
    tasks = page.get_by_role("table", name="synthetic tasks")
    tasks.get_by_role("link", name="lookup", exact=True).click()
    expect(
        page.get_by_role("table", name="options of lookup").get_by_role("row", name=re.compile("Pairs"))
    ).to_contain_text("44")
    page.get_by_role("link", name="use lookup in a new search").click()
    expect(page.get_by_label("Dataset")).to_have_value("lookup")
    expect(page.get_by_label("Tokens")).to_have_count(0)
    page.get_by_label("Pairs").fill("40")
    page.get_by_role("button", name="Set positions to none").click()
    expect(page.get_by_role("button", name="Set positions to none")).to_have_count(0)
    request = request_of(page)
    assert request["task"]["dataset_options"] == {"n_keys": 48, "n_values": 8, "n_pairs": 40}
    assert (request["task"]["objective"], request["space"]["causal"]) == ("token_classification", True)
    assert (request["space"]["positions"], request["space"]["backbone"]["pooling"]) == ("none", "none")

    page.get_by_label("Pairs").fill("49")  # what only the service knows: more pairs than keys
    page.get_by_role("button", name="Start the search").click()
    wrong = page.get_by_role("list", name="what is wrong")
    expect(wrong).to_contain_text("/task/dataset_options/n_pairs")
    expect(page.get_by_label("Pairs")).to_be_focused()
    tab.allow("refused: POST", "/api/v1/searches: 422")
    tab.allow("console error", "422", "/api/v1/searches")
    page.get_by_label("Pairs").fill("40")
    page.get_by_role("button", name="Start the search").click()
    page.wait_for_url(re.compile("/searches/"))
    queued = page.request.get(f"{tab.url}/api/v1/searches").json()["items"][0]["request"]["task"]
    assert queued["dataset_options"]["n_pairs"] == 40

    tab.open("/new?dataset=offset")
    page.get_by_label("Dataset").select_option("python-docs")
    request = request_of(page)
    assert (request["task"]["objective"], request["task"]["dataset_options"]) == ("causal_lm", {})


def test_what_is_not_there_says_what_to_do_and_an_upload_can_go(tab: Watched, service: Running) -> None:
    add(service, "notes", b"some words on a line\n" * 200)
    page = tab.open("/datasets/notes")
    expect(page.get_by_label("beginning of notes")).to_contain_text("some words on a line")
    page.get_by_role("button", name="remove notes").click()
    page.get_by_role("group", name="remove notes?").get_by_role("button", name="Remove").click()
    page.wait_for_url("**/datasets")
    expect(page.get_by_text("Nothing of yours yet")).to_be_visible()
    tab.open("/datasets/notes")
    expect(page.get_by_text("blockwright datasets add notes FILE")).to_be_visible()
    tab.allow("refused: GET", "/api/v1/datasets/notes: 404")
    tab.allow("console error", "404")


def test_what_a_dataset_was_encoded_with_is_told_with_its_vocabulary(tab: Watched, service: Running) -> None:
    add(service, "notes", b"some words on a line\n" * 200)
    page = tab.open("/datasets/notes")
    expect(page.get_by_text("None yet: the first search with a tokenizer encodes it")).to_be_visible()
    with reading(service.engine) as connection:
        row = datasets.get(connection, "notes")
    assert row.card is not None
    assert row.path is not None
    for tokenizer in (Tokens(), Tokens(type="words", vocab_size=1000)):  # what two searches leave behind
        encode(service.data_dir / row.path, Card.from_json(row.card), tokenizer, service.data_dir / "encoded")
    page.reload()
    shown = page.get_by_role("table", name="encodings").get_by_role("row")
    # Of words: the five and <eos> at each line's end; <unk> beside them.
    expect(shown).to_contain_text(
        ["tokenizer", re.compile("words, at most 1,000.*7.*1,200"), re.compile("bytes.*256.*4,200")]
    )


@pytest.mark.parametrize(
    "path", ["/datasets", "/datasets/reviews", "/datasets/lookup", "/datasets/python-docs", "/new?dataset=reviews"]
)
def test_a_telephone_needs_no_sideways_scrolling(browser: Browser, service: Running, path: str) -> None:
    add(service, "reviews", reviews(), format="jsonl")
    with watched(browser, service.url, viewport=ViewportSize(width=390, height=844)) as tab:
        page = tab.open(path)
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        page.wait_for_load_state("networkidle")
        wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wide <= 0, f"{path} is {wide} pixels wider than the screen"
