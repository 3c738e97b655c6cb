"""The page of one search in a real browser, while a test plays its runner: phases, evidence, what each block buys.

And what the form writes of a starting layout, bounds and ranges, as the service takes it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from api.settings import Settings
from db import latency_tables, queue, searches, trials
from db.engine import transaction
from db.lease import Lease
from db.migrate import upgrade
from db.reports import NewReport
from db.reports import insert as insert_reports
from nas.config.request import SearchRequest
from nas.steps import StepRecord
from tests.api.running import TINY, Running, running
from tests.end_to_end.browser import Watched, watched
from tests.tiny import table

REQUEST: dict[str, Any] = {
    **TINY,
    "name": "weighed",
    "space": {**TINY["space"], "n_slots": 3},
    "method": {"n_steps": 40, "warmup_share": 0.25, "settle_share": 0.1, "prune_steps": 5, "report_every": 5},
    "budget": {"latency": {"ratio_to_parent": 1.0}},
}
SURE = [[0.75, 0.125, 0.125], [0.25, 0.375, 0.375], [0.7, 0.2, 0.1]]
Z = [[-4.5, 3.5, 2.5], [0.0, 0.5, -0.5], [1.8, 0.5, 2.0]]
EFFECTS = [[0.0, 0.05, 0.12], [-0.001, 0.0, 0.02], [0.001, None, 0.0]]
ERRORS = [[0.0, 0.01, 0.01], [0.002, 0.0, 0.004], [0.002, None, 0.0]]
WARNING = "collapse to identity: 2 slots lead with it"


@dataclass(frozen=True)
class Played:
    """A running search, whose runner the test is."""

    service: Running
    id: str
    lease: Lease
    trial: str
    most: int  # weight updates that it may take

    def report(self, *records: StepRecord) -> None:
        with transaction(self.service.engine) as connection:
            insert_reports(connection, self.lease, [NewReport(self.trial, each) for each in records])

    def succeed(self, result: dict[str, Any]) -> None:
        with transaction(self.service.engine) as connection:
            trials.finish(connection, self.lease, self.trial, "succeeded")
            searches.set_result(connection, self.lease, result)
            searches.finish(connection, self.lease, "succeeded")


def record(step: int, **changes: Any) -> StepRecord:
    fields: dict[str, Any] = {
        "train_loss": 3.0 - step / 100, "val_loss_soft": 2.5, "val_loss_argmax": 2.25, "val_loss_sampled": 2.75,
        "tau": 1.0, "expected_ms": 6.5, "entropy": 0.5, "identity_share": 0.25, "alpha_velocity": 0.01, "dual": 0.002,
        "probabilities": SURE, "null_gaps": [0.5, 0.5, 0.5], "updates": [[step] * 3] * 3, "z": Z,
    }  # fmt: skip
    return StepRecord(step, **{**fields, **changes})


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Running]:
    upgrade(f"sqlite:///{tmp_path / 'blockwright.db'}")
    with running(Settings(data_dir=tmp_path, port=0)) as found:  # no dispatcher: what is queued stays so
        yield found


@pytest.fixture
def tab(browser: Browser, service: Running) -> Iterator[Watched]:
    with watched(browser, service.url) as found:
        yield found


@pytest.fixture
def played(service: Running) -> Played:
    answer = service.http.post("/api/v1/searches", json=REQUEST)
    assert answer.status_code == 201, answer.text
    body = answer.json()["request"]
    request = SearchRequest.model_validate(body)
    measured = table(request.space, request.task.serve[0])
    with transaction(service.engine) as connection:
        claim = queue.claim_next(connection, "test", free_cpus=4, free_gpus=0, lease_s=600)
        assert claim is not None
        found = latency_tables.put(
            connection, claim.lease, table_id="a" * 32, key="k", body=measured.model_dump(mode="json")
        )
        searches.set_inputs(
            connection, claim.lease, request=body, latency_table_id=found.id, slot_ms=measured.slot_ms(request.space)
        )
        searches.set_stage(connection, claim.lease, "searching")
        most = request.method.most_steps
        (trial,) = trials.ensure(connection, claim.lease, [trials.NewTrial("search", 0, 0, n_steps=most, params={})])
        trials.start(connection, claim.lease, trial.id, attempt=1)
    return Played(service, answer.json()["id"], claim.lease, trial.id, most)


def height(page: Page) -> int:
    found: int = page.locator(".picture-card").evaluate("element => element.offsetHeight")
    return found


def test_phases_evidence_and_what_each_block_buys_appear_in_place(tab: Watched, played: Played) -> None:
    played.report(record(0, phase="warm-up", z=None), record(10, phase="warm-up"))
    page = tab.open(f"/searches/{played.id}")
    expect(page.locator(".progress-line")).to_contain_text("trials: 1 in warm-up")
    buys = page.get_by_role("img", name=re.compile("^what each block buys, seed 0"))
    expect(buys).to_have_accessible_name(re.compile("measured in the prune phase"))
    expect(page.get_by_label("what the guards have found")).to_contain_text("Nothing to warn of so far")
    before = height(page)

    played.report(record(25, phase="search", warning=WARNING), record(40, phase="settle"))
    expect(page.locator(".progress-line")).to_contain_text("1 in settle")
    expect(page.get_by_role("slider", name="step", exact=True)).to_have_attribute(
        "aria-valuetext", re.compile("step 40 of 55, settle: alpha is frozen")
    )
    effects = {"path": [0, 1, 2], "effect_nats": EFFECTS, "effect_se": ERRORS}
    played.report(record(50, phase="prune", **effects))
    expect(buys).to_have_accessible_name(
        re.compile(
            r"slot 1: attention buys 0\.120 ± 0\.010 nats for 3\.00 ms, against identity; "
            r"slot 2: ffn buys 0\.020 ± 0\.004 nats for 2\.00 ms, against identity; undecided; "
            r"slot 3: identity buys 0\.001 ± 0\.002 nats.*, against attention; undecided"
        )
    )
    expect(page.get_by_role("img", name=re.compile("^path that the parsimony pass holds"))).to_have_accessible_name(
        re.compile(r"attention, ffn \(undecided\), identity \(undecided\)")
    )
    assert height(page) == before

    # A guard's words stand at their step, and lead there.
    page.get_by_role("button", name="step 25, seed 0").click()
    page.wait_for_url(re.compile("step=25"))
    expect(page.get_by_label("what the guards have found")).to_contain_text(WARNING)
    expect(page.locator(".warnings")).to_contain_text(WARNING)  # and as an event

    # No probability without its z.
    axis = page.get_by_role("slider", name="slot; Enter opens its history")
    axis.press("End")
    expect(axis).to_have_attribute("aria-valuetext", re.compile(r"attention 0\.70 z 1\.8: within noise"))
    page.keyboard.press("Enter")
    history = page.get_by_role("figure", name=re.compile("^slot 3, seed 0"))
    expect(history.locator("figcaption")).to_contain_text(re.compile(r"p 0\.700, z 1\.8: within noise"))

    for curve in ("pressure of the budget", "share of slots at identity", "change of the probabilities"):
        page.get_by_label("curve", exact=True).select_option(label=curve)
        expect(page.get_by_role("figure", name=re.compile(f"^{curve} over steps", re.I))).to_be_visible()


def test_a_result_tells_its_bounds_lengths_modes_and_samples(tab: Watched, played: Played) -> None:
    played.report(record(40, phase="settle"))
    slots = ["attention", "ffn", "identity"]
    score = {"bits": 2.5, "se": 0.01, "why": None}
    timed = {"ratio": 0.8, "low": 0.75, "high": 0.85, "repeatability": 0.02, "derived_ms": 4.0, "parent_ms": 5.0}
    modes = [{"mode": mode, "batch": 1, "query_length": 16, "memory_length": 0} for mode in ("prefill", "decode")]
    bound = {
        "name": "latency", "unit": "of the parent", "target": 1.0, "predicted": 0.7, "expected": 0.9,
        "measured": 0.8, "low": 0.75, "high": 0.85, "verdict": "within",
    }  # fmt: skip
    entry = {"role": "budget", "string": "AF.", "slots": slots, "undecided": [2], "sample": 0, "seed": 0}
    entry |= {"predicted_ms": 6.0, "bounds": [bound]}
    sample = {"seeds": [0], "losses": [1.5], "sd": None, "cost": 6.0, "reason": None, "state": "succeeded"}
    played.succeed(
        {
            "search": {"dataset": "python-docs", "objective": "causal_lm", "train_length": 16, "serve": modes},
            "probabilities": [],
            "architectures": [entry],
            "derived": entry,
            "parent": {**entry, "role": "parent", "string": "AFA", "undecided": [], "bounds": []},
            "quality": {
                "unit": "bits per byte", "derived_bits_per_byte": 2.5, "parent_bits_per_byte": 2.52,
                "difference": -0.02, "low": -0.03, "high": -0.01, "verdict": "better", "n_windows": 8, "n_seeds": 5,
            },
            "latency": timed,
            "latencies": [{"serve": serve, **timed} for serve in modes],
            "lengths": [
                {
                    "length": 16, "unit": "bits per byte", "n_windows": 8, "derived": score, "parent": score,
                    "difference": {"bits": -0.02, "low": -0.03, "high": -0.01, "verdict": "better"},
                },
                {
                    "length": 64, "unit": "bits per byte", "n_windows": 8, "parent": score, "difference": None,
                    "derived": {"bits": None, "se": None, "why": "candidate 'sgu' cannot run there"},
                },
            ],
            "samples": [
                {"sample": 0, "values": {"/method/lr": 0.002}, "loss": 1.5, **sample},
                {"sample": 1, "values": {"/method/lr": 0.004}, "loss": 1.6, **sample},
            ],
            "winner": {"sample": 0, "sentence": "sample 0 (lr 0.002) won: 0.1000 nats per token below sample 1"},
            "metrics": [],
            "export": {"file": "export.zip", "sha256": "0" * 64, "logits_max_abs_difference": 0.0},
            "seconds": {},
        }
    )  # fmt: skip
    result = tab.open(f"/searches/{played.id}").locator("#result")
    expect(result.get_by_role("table", name="bounds of the budget")).to_contain_text("0.750 to 0.850within")
    lengths = result.get_by_role("table", name="quality at each length")
    expect(lengths).to_contain_text("none: candidate 'sgu' cannot run there")
    expect(lengths).to_contain_text(re.compile("4 . trained"))
    expect(result).to_contain_text(re.compile("decode, batch 1 . 16 tokens"))
    expect(result.get_by_role("table", name="samples")).to_contain_text("succeeded (won)")
    expect(result).to_contain_text("Sample 0 (lr 0.002) won: 0.1000 nats per token below sample 1.")


def test_bounds_are_derived_again_on_the_page(tab: Watched, played: Played) -> None:
    played.report(record(40, phase="settle"))
    page = tab.open(f"/searches/{played.id}")
    card = page.locator(".derive-card")
    expect(card).to_contain_text("Nothing is trained for it")
    card.get_by_label("attention in at most").fill("0")
    card.get_by_label("no mixer behind a mixer").check()
    expect(card).to_contain_text(f'blockwright derive {played.id} --count "attention<=0" --mixers-apart')
    card.get_by_role("button", name="Derive").click()
    seed = card.get_by_role("region", name="seed 0")
    cheapest = re.compile(r"^\.\.F, seed 0: identity, identity \(undecided\), ffn")  # of two as probable
    expect(seed.get_by_role("img", name=cheapest)).to_be_visible()
    expect(seed).to_contain_text("of the parent")

    # What cannot be met is answered in words, and the fields keep what was written.
    card.get_by_label("latency at most").fill("0.01")
    card.get_by_role("button", name="Derive").click()
    expect(card.get_by_role("alert")).to_contain_text("latency")
    expect(card.get_by_label("latency at most")).to_have_value("0.01")
    tab.allow("422")


def test_layouts_stand_beside_what_they_are_held_against(tab: Watched, played: Played) -> None:
    layout = {"slots": ["attention", "ffn", "identity"], "seeds": [0, 1, 2], "mean": 2.5}
    compared = {"unit": "bits per byte", "n_seeds": 3, "detectable": 0.034, "latency": {"ratio": 0.8}}
    entry = {"role": "budget", "string": "AF.", "slots": layout["slots"], "undecided": [], "sample": 0, "seed": 0}
    entry |= {"predicted_ms": 6.0, "bounds": []}
    played.succeed(
        {
            "search": {"dataset": "python-docs", "objective": "causal_lm", "train_length": 16, "serve": []},
            "probabilities": [], "architectures": [entry], "derived": entry, "parent": None, "quality": None,
            "latency": None, "latencies": [], "lengths": [], "samples": [], "winner": None, "metrics": [],
            "export": {"file": "export.zip", "sha256": "0" * 64, "logits_max_abs_difference": 0.0}, "seconds": {},
            "retrained": [{**layout, "name": name} for name in ("derived", "par", "rule", "rule random 1")],
            "comparisons": [
                {**compared, "first": "derived", "second": "par", "difference": -0.05, "low": -0.06, "high": -0.04,
                 "verdict": "better"},
                {**compared, "first": "rule", "second": "rule random 1", "difference": -0.01, "low": -0.05,
                 "high": 0.03, "verdict": "cannot tell"},
            ],
            "power": [],
        }
    )  # fmt: skip
    part = tab.open(f"/searches/{played.id}").locator("#result").get_by_role("region", name="layouts")
    derived = part.get_by_role("table", name="derived against every other")
    expect(derived.get_by_role("row", name=re.compile("^par 3 seeds"))).to_contain_text("better")
    expect(derived).not_to_contain_text("rule")
    rule = part.get_by_role("table", name="the rule's layout against every other")
    expect(rule.get_by_role("row", name=re.compile("^rule random 1"))).to_contain_text("cannot tell")


def test_a_search_around_a_present_model_is_written_by_the_form(tab: Watched, service: Running) -> None:
    page = tab.open("/new")
    page.locator("summary", has_text="Starting layout").click()
    page.get_by_role("button", name="slot 1: free").click()
    page.get_by_role("button", name="slot 1: attention stands here").click()
    expect(page.get_by_role("button", name="slot 1: attention, fixed")).to_be_visible()
    page.get_by_role("group", name="block to put into a slot").get_by_role("button", name="ffn").click()
    page.get_by_role("button", name="slot 2: free").click()
    page.get_by_role("group", name="forbidden in slot 2").get_by_label("identity").check()
    page.get_by_label("Parameters", exact=True).select_option(label="ratio to the parent")
    page.get_by_role("button", name="Add a mode").click()
    page.locator("summary", has_text="Settings that vary").click()
    page.get_by_label("let vary").select_option(label="Learning rate")

    request = json.loads(page.get_by_label("request as JSON").input_value())
    assert request["space"]["layout"][:3] == [
        {"present": "attention", "fixed": True, "forbidden": []},
        {"present": "ffn", "fixed": False, "forbidden": ["identity"]},
        {"present": None, "fixed": False, "forbidden": []},
    ]
    assert request["budget"]["parameters"] == {"at_most": None, "ratio_to_parent": 1}
    assert [each["mode"] for each in request["task"]["serve"]] == ["prefill", "decode"]
    assert request["ranges"] == [{"pointer": "/method/lr", "low": 0.002, "high": 0.032, "log": True}]
    expect(page.get_by_role("list", name="what is wrong")).to_have_count(0)
    page.get_by_role("button", name="Start the search").click()
    page.wait_for_url(re.compile("/searches/"))
    (found,) = service.http.get("/api/v1/searches").json()["items"]
    assert found["request"] == request
