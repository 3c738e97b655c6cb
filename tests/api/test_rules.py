"""Rules by id and at another depth: REST, client and command line."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import pytest

from api.client import Client, ClientError
from db import rules
from db.engine import transaction
from db.models import latency_tables
from db.models import searches as searches_table
from nas.architecture import Architecture
from nas.config.budget import Budget
from nas.config.request import SearchRequest
from nas.rules import describe
from nas.statements import state
from nas.verdicts import judge
from tests import tiny
from tests.api.running import TINY, Claimed, Running
from tests.api.test_cli import Run, run, served

__all__ = ["run", "served"]  # fixtures
UNKNOWN = "0190a000-0000-7000-8000-000000000000"


def keep(service: Running, claimed: Claimed, seeds: Sequence[str], undecided: tuple[int, ...] = ()) -> str:
    """Store the rule of these seeds, as a runner does; returns its id."""
    candidates = SearchRequest.model_validate(TINY).space.candidates
    labels = {candidate.letter: candidate.label for candidate in candidates}
    found = describe([Architecture(tuple(labels[x] for x in seed), candidates, undecided) for seed in seeds])
    body = json.loads(json.dumps(dataclasses.asdict(found)))
    with transaction(service.engine) as connection:
        statement, verdict = found.statement, found.verdict
        return rules.put(connection, claimed.lease, statement=statement, verdict=verdict, body=body).id


@pytest.fixture
def rule_id(service: Running, claimed: Claimed) -> str:
    return keep(service, claimed, ["AF", "AF"])


def apply(service: Running, rule_id: str, body: Any) -> Any:
    answer = service.http.post(f"/api/v1/rules/{rule_id}/apply", json=body)
    return answer.status_code, answer.json()


def test_a_rule_is_read_by_its_id(service: Running, claimed: Claimed, rule_id: str) -> None:
    answer = service.http.get(f"/api/v1/rules/{rule_id}")
    assert answer.status_code == 200
    assert answer.json() == service.http.get(f"/api/v1/searches/{claimed.id}/rules").json()["items"][0]
    again = service.http.get(f"/api/v1/rules/{rule_id}", headers={"If-None-Match": answer.headers["ETag"]})
    assert again.status_code == 304


def test_a_rule_is_carried_to_another_depth_and_says_what_it_was_found_at(
    service: Running, claimed: Claimed, rule_id: str
) -> None:
    status, layout = apply(service, rule_id, {"n_slots": 8})
    assert status == 200
    costs, request = layout.pop("costs"), layout.pop("request")
    assert costs["predicted_ms"] is None
    assert costs["no_latency"] == "no stored latency table is of this width, length and serve mode"
    assert (costs["parameters"] > 0, costs["flops"] > 0, costs["cache_bytes"] > 0) == (True, True, True)
    assert [slot["present"] for slot in request["space"]["layout"]] == layout["slots"]
    assert all(slot["fixed"] for slot in request["space"]["layout"])
    assert layout == {
        "rule": rule_id,
        "search": claimed.id,
        "n_slots": 8,
        "d_model": 16,
        "slots": ["attention"] * 4 + ["ffn"] * 4,
        "string": "AAAAFFFF",
        "attention": [0, 1, 2, 3],
        "ratio": 2.0,
        "zone": "found",
        "spacing": "uniform",
        "statement": "attention in slots 1-4 of 8, ffn in the others; found by 1 search with 2 seeds at 2 slots, "
        "width 16, 16 tokens, python-docs, 20 updates, no latency budget: suggested, and not measured at 8 slots",
        "verdict": "suggested",
        "found_at": {
            "n_slots": 2,
            "d_model": 16,
            "train_length": 16,
            "dataset": "python-docs",
            "dataset_fingerprint": None,
            "n_steps": 20,
            "budget": Budget().model_dump(),
            "n_searches": 1,
            "n_seeds": 2,
            "undecided": 0,
        },
    }


def test_applying_a_rule_changes_nothing_and_answers_the_same_again(
    service: Running, claimed: Claimed, rule_id: str
) -> None:
    path = f"/api/v1/rules/{rule_id}/apply"
    before = service.http.get(f"/api/v1/searches/{claimed.id}").json()["last_event"]
    first, second = (service.http.post(path, json={"n_slots": 32, "ratio": 4.1}) for _ in range(2))
    assert first.content == second.content
    assert first.headers["ETag"] == second.headers["ETag"]
    assert first.json()["ratio"] == 4.1
    assert service.http.get(f"/api/v1/searches/{claimed.id}").json()["last_event"] == before
    assert len(service.http.get(f"/api/v1/searches/{claimed.id}/rules").json()["items"]) == 1


@pytest.mark.parametrize(
    ("options", "string"),
    [
        ({"ratio": 6}, "AFFFFAFFFFFF"),
        ({"ratio": 4, "spacing": "stride"}, "AFAFAFFFFFFF"),
        ({"ratio": 4, "zone": "paper"}, "AFFAFFFAFFFF"),
    ],
)
def test_ratio_zone_and_spacing_may_be_chosen(
    service: Running, rule_id: str, options: dict[str, Any], string: str
) -> None:
    assert apply(service, rule_id, {"n_slots": 12, **options})[1]["string"] == string


@pytest.mark.parametrize(
    ("body", "pointer", "detail"),
    [
        ({}, "/n_slots", "required"),
        ({"n_slots": 0}, "/n_slots", "1"),
        ({"n_slots": 513}, "/n_slots", "512"),
        ({"n_slots": "32"}, "/n_slots", "integer"),
        ({"n_slots": True}, "/n_slots", "integer"),
        ({"n_slots": 32, "ratio": True}, "/ratio", "number"),
        ({"n_slots": 32, "ratio": 0.5}, "/ratio", "greater than or equal to 1"),
        ({"n_slots": 32, "ratio": 1e9}, "/ratio", "512"),
        ({"n_slots": 32, "spacing": "wide"}, "/spacing", "'uniform' or 'stride'"),
        ({"n_slots": 32, "zone": "end"}, "/zone", "'found' or 'paper'"),
        ({"n_slots": 32, "depth": 3}, "/depth", ""),
    ],
    ids=[
        *("nothing", "no slot", "too deep", "a text", "a truth value", "a true ratio", "no ratio", "far ratio"),
        *("spacing", "zone", "unknown"),
    ],
)
def test_a_body_out_of_range_is_refused_by_field(
    service: Running, rule_id: str, body: Any, pointer: str, detail: str
) -> None:
    status, found = apply(service, rule_id, body)
    assert (status, found["code"]) == (422, "invalid-request")
    assert [each["pointer"] for each in found["errors"]] == [pointer]
    assert detail in found["errors"][0]["detail"]


@pytest.mark.parametrize(
    ("seeds", "undecided", "detail"),
    [
        (["FF", "F."], (), "the rule has no placement to apply: no attention in any of 2 slots"),
        (["AF"], (0, 1), "the rule has no placement to apply: every slot of every seed is undecided"),
        (["AF"], (0,), "the rule has no placement to apply: attention stands in undecided slots only"),
    ],
    ids=["no attention", "undecided", "attention undecided"],
)
def test_a_rule_without_a_placement_is_one_line(
    service: Running, claimed: Claimed, seeds: list[str], undecided: tuple[int, ...], detail: str
) -> None:
    status, found = apply(service, keep(service, claimed, seeds, undecided), {"n_slots": 8})
    assert (status, found["code"], found["detail"]) == (422, "rule-not-applicable", detail)


def test_a_ratio_is_the_fraction_that_was_meant(service: Running, rule_id: str) -> None:
    for ratio, n_slots, n_attention in ((10 / 3, 10, 3), (14 / 3, 14, 3), (4.1, 41, 10), (3.999999, 16, 4), (4, 16, 4)):
        status, layout = apply(service, rule_id, {"n_slots": n_slots, "ratio": ratio})
        assert (status, len(layout["attention"]), layout["ratio"]) == (200, n_attention, ratio)
    assert "ratio 10/3 as asked for" in apply(service, rule_id, {"n_slots": 10, "ratio": 10 / 3})[1]["statement"]


def test_a_ratio_that_does_not_fit_is_one_line(service: Running, rule_id: str) -> None:
    status, found = apply(service, rule_id, {"n_slots": 1})
    assert (status, found["code"]) == (422, "rule-not-applicable")
    assert found["detail"] == "ratio 2 leaves no attention in 1 blocks; at most 1 is possible"


def test_a_rule_of_blocks_that_are_not_installed_here_is_one_line(
    service: Running, claimed: Claimed, rule_id: str
) -> None:
    request = SearchRequest.model_validate(TINY).model_dump(mode="json")
    request["space"]["candidates"][1]["block"] = "plugged"
    with transaction(service.engine) as connection:
        connection.execute(searches_table.update().values(request=request))
    status, found = apply(service, rule_id, {"n_slots": 8})
    assert (status, found["code"]) == (422, "rule-not-applicable")
    assert found["detail"].startswith("the rule's search cannot be read here: ")
    assert "unknown candidate block 'plugged'" in found["detail"]


def test_an_unknown_rule_is_404_and_a_malformed_id_422(service: Running) -> None:
    for answer in (
        service.http.get(f"/api/v1/rules/{UNKNOWN}"),
        service.http.post(f"/api/v1/rules/{UNKNOWN}/apply", json={"n_slots": 8}),
    ):
        assert answer.status_code == 404
        assert answer.json()["detail"] == f"no rule '{UNKNOWN}'"
    assert service.http.get("/api/v1/rules/..%2Fsearches").status_code in (404, 422)
    assert service.http.post("/api/v1/rules/x/apply", json={"n_slots": 8}).status_code == 422


def test_the_client_reads_and_applies_rules(service: Running, rule_id: str) -> None:
    with Client(service.url) as client:
        assert client.rule(rule_id)["id"] == rule_id
        assert client.apply_rule(rule_id, 4)["string"] == "AAFF"
        assert client.apply_rule(rule_id, 4, ratio=4)["string"] == "AFFF"
        with pytest.raises(ClientError, match=r"^no rule '0190a000"):
            client.rule(UNKNOWN)


def test_applying_a_rule_loads_no_torch() -> None:
    code = "import sys, api.routes.rules; print(*sorted({'torch', 'ray', 'scipy', 'alembic'} & set(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == ""


def keep_statement(service: Running, claimed: Claimed, kind: str, **changes: Any) -> str:
    """Store a statement beside the description of six seeds, as a runner does; returns its id."""
    seeds = ["AF", "AF", "AF", "AF", "AF", "AF"]
    keep(service, claimed, seeds)
    families = {"A": "attention", "F": "ffn"}
    found = judge(state([[families[letter] for letter in seed] for seed in seeds]))
    (one,) = [each for each in found if each.kind == kind]
    body = json.loads(json.dumps(dataclasses.asdict(dataclasses.replace(one, **changes))))
    with transaction(service.engine) as connection:
        put = rules.put(connection, claimed.lease, statement=body["statement"], verdict=body["verdict"], body=body)
        return put.id


def test_a_statement_is_carried_to_another_depth_and_is_suggested_there(service: Running, claimed: Claimed) -> None:
    confirmation = {"layout": "AF", "slots": ["attention", "ffn"]}
    rule_id = keep_statement(service, claimed, "position", verdict="supported", confirmation=confirmation)
    status, layout = apply(service, rule_id, {"n_slots": 8})
    assert (status, layout["string"], layout["verdict"]) == (200, "AAAAFFFF", "suggested")
    assert layout["statement"].endswith("no latency budget: suggested, and this layout was not trained")
    own = apply(service, rule_id, {"n_slots": 2})[1]
    assert (own["string"], own["verdict"]) == ("AF", "supported")
    untrained = keep_statement(service, claimed, "position", verdict="supported")
    assert apply(service, untrained, {"n_slots": 2})[1]["verdict"] == "suggested"
    wider = apply(service, rule_id, {"n_slots": 2, "d_model": 32})[1]
    assert (wider["verdict"], wider["d_model"], wider["request"]["space"]["n_heads"]) == ("suggested", 32, 4)
    assert wider["costs"]["parameters"] > own["costs"]["parameters"]
    rarer = apply(service, rule_id, {"n_slots": 8, "ratio": 4})[1]
    assert (rarer["ratio"], rarer["string"].count("A")) == (4.0, 2)
    assert (layout["zone"], layout["spacing"]) == (None, None)


@pytest.mark.parametrize(("name", "value"), [("zone", "paper"), ("spacing", "stride")])
def test_where_a_statements_blocks_stand_is_not_to_be_chosen(
    service: Running, claimed: Claimed, name: str, value: str
) -> None:
    status, found = apply(service, keep_statement(service, claimed, "position"), {"n_slots": 8, name: value})
    assert (status, found["code"]) == (422, "rule-not-applicable")
    assert found["detail"] == (
        f"{name} is '{value}', but a statement says itself where its blocks stand; leave {name} out, or apply the "
        "search's line about attention"
    )


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        (
            {"n_slots": 2, "ratio": 3},
            "ratio 3 leaves no attention in 2 blocks; it needs 3 blocks at least",
        ),
        ({"n_slots": 8, "d_model": 30}, "d_model"),
    ],
    ids=["too few slots", "a width that heads do not divide"],
)
def test_a_statement_that_does_not_fit_is_one_line(service: Running, claimed: Claimed, body: Any, detail: str) -> None:
    status, found = apply(service, keep_statement(service, claimed, "position"), body)
    assert (status, found["code"]) == (422, "rule-not-applicable")
    assert detail in found["detail"]


@pytest.mark.parametrize("body", [{}, {"kind": "position"}, {"kind": "cut", "family": "attention", "statement": "s"}])
def test_a_rule_that_another_version_wrote_is_one_line(service: Running, claimed: Claimed, body: Any) -> None:
    with transaction(service.engine) as connection:
        put = rules.put(connection, claimed.lease, statement="s", verdict="suggested", body=body)
    status, found = apply(service, put.id, {"n_slots": 8})
    assert (status, found["code"]) == (422, "rule-not-applicable")
    assert found["detail"] == (
        "the rule cannot be read here: it does not say all of what was placed where; search again for one"
    )


def test_a_statement_about_blocks_that_no_seed_has_is_one_line(service: Running, claimed: Claimed) -> None:
    rule_id = keep_statement(service, claimed, "position", family="identity")
    status, found = apply(service, rule_id, {"n_slots": 8})
    assert (status, found["code"]) == (422, "rule-not-applicable")
    assert found["detail"] == "the rule is about identity, of which its seeds have no block to place"


@pytest.mark.parametrize("search", ["", "\x00", "0190A000-0000-7000-8000-000000000000", "x" * 36])
def test_what_is_no_id_of_a_search_is_refused_by_field(service: Running, search: str) -> None:
    for name in ("par", "sandwich"):
        status, found = apply(service, name, {"n_slots": 8, "search": search})
        assert (status, [each["pointer"] for each in found["errors"]]) == (422, ["/search"])


def test_a_layout_has_a_latency_where_a_table_of_its_shape_is_stored(
    service: Running, claimed: Claimed, rule_id: str
) -> None:
    space = SearchRequest.model_validate(TINY)
    table = tiny.table(space.space, space.task.serve[0])
    assert service.http.post("/api/v1/latency-tables", json=table.model_dump(mode="json")).status_code == 201
    costs = apply(service, rule_id, {"n_slots": 8})[1]["costs"]
    assert (costs["predicted_ms"], costs["latency_table"], costs["no_latency"]) == (1 + 4 * 3 + 4 * 2, table.id, None)
    assert apply(service, rule_id, {"n_slots": 8, "d_model": 32})[1]["costs"]["predicted_ms"] is None


def test_a_table_that_cannot_be_read_here_is_none(service: Running, rule_id: str) -> None:
    space = SearchRequest.model_validate(TINY)
    table = tiny.table(space.space, space.task.serve[0])
    assert service.http.post("/api/v1/latency-tables", json=table.model_dump(mode="json")).status_code == 201
    with transaction(service.engine) as connection:
        connection.execute(latency_tables.update().values(body={"format_version": 9}))
    for name in (rule_id, "par"):
        status, layout = apply(service, name, {"n_slots": 8})
        assert (status, layout["costs"]["latency_table"]) == (200, None)


def test_the_request_of_a_layout_can_be_submitted(service: Running, rule_id: str) -> None:
    request = apply(service, rule_id, {"n_slots": 6})[1]["request"]
    created = service.http.post("/api/v1/searches", json=request)
    assert created.status_code == 201, created.json()
    assert created.json()["request"]["space"]["layout"] == request["space"]["layout"]


@pytest.mark.parametrize(
    ("name", "body", "string"),
    [
        ("par", {"n_slots": 32}, "AFFFAFFFAFFFAFFFAFFFAFFFFFFFFFFF"),
        ("par", {"n_slots": 12, "ratio": 3}, "AFAFAFFAFFFF"),
        ("par", {"n_slots": 12, "ratio": 3, "spacing": "stride"}, "AFAFAFAFFFFF"),
        ("sandwich", {"n_slots": 8}, "AAAFAFFF"),
    ],
)
def test_rules_of_other_people_are_known(service: Running, name: str, body: Any, string: str) -> None:
    status, layout = apply(service, name, body)
    assert (status, layout["string"] if status == 200 else layout) == (200, string)
    assert (layout["rule"], layout["search"], layout["verdict"], layout["found_at"]) == (name, None, "suggested", None)
    assert layout["statement"].endswith(", not measured here")
    assert layout["costs"]["parameters"] > 0


def test_a_known_rule_is_laid_out_in_the_space_of_a_search(service: Running, claimed: Claimed) -> None:
    layout = apply(service, "par", {"n_slots": 8, "search": claimed.id})[1]
    assert (layout["search"], layout["d_model"], layout["string"]) == (claimed.id, 16, "AFFFFFFF")
    assert layout["request"]["task"]["dataset"] == "python-docs"
    status, found = apply(service, "par", {"n_slots": 8, "search": UNKNOWN})
    assert (status, found["detail"]) == (404, f"no search '{UNKNOWN}'")


@pytest.mark.parametrize(
    ("name", "body", "detail"),
    [
        ("par", {"n_slots": 2}, "ratio 5 leaves no attention in 2 blocks; at most 2 is possible"),
        ("sandwich", {"n_slots": 2}, "n_slots is 2; a sandwich needs an even number of slots from 4 on"),
        (
            "sandwich",
            {"n_slots": 8, "ratio": 3},
            "ratio is 3, but a sandwich has as many attention as ffn blocks, 2 : 1; leave ratio out",
        ),
    ],
    ids=["par at depth 2", "sandwich at depth 2", "a contradictory ratio"],
)
def test_known_rules_that_do_not_fit_are_one_line(service: Running, name: str, body: Any, detail: str) -> None:
    status, found = apply(service, name, body)
    assert (status, found["code"], found["detail"]) == (422, "rule-not-applicable", detail)


def test_a_rule_stored_by_an_older_version_is_suggested(service: Running, claimed: Claimed) -> None:
    line, body = "1 search, 2 seeds: not confirmed; attention in slot 1 of 2", {"verdict": "not confirmed"}
    with transaction(service.engine) as connection:
        put = rules.put(
            connection, claimed.lease, statement=line, verdict="not confirmed", body={**body, "statement": line}
        )
    found = service.http.get(f"/api/v1/rules/{put.id}").json()
    assert (found["verdict"], found["evidence"]["verdict"]) == ("suggested", "suggested")
    assert found["statement"] == "1 search, 2 seeds: suggested; attention in slot 1 of 2"


# -- the command line -------------------------------------------------------------------------------------------------


def test_rule_prints_the_papers_layout_and_says_that_it_is_not_measured(run: Run) -> None:
    done = run("rule", "--blocks", "32", "--ratio", "5")
    assert done.status == 0
    assert "AFFFAFFFAFFFAFFFAFFFAFFFFFFFFFFF" in done.out.splitlines()
    assert "attention in 6 of 32 blocks, counted from 1: 1, 5, 9, 13, 17, 21" in done.out
    assert "not measured on your data" in done.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "give --ratio, such as --ratio 5, or --from with the id of a rule that a search found"),
        (("--ratio", "x"), "ratio is 'x'; it must be a number, such as 5 or 9/2"),
        (("--ratio", "1/0"), "ratio is '1/0'; it must be a number, such as 5 or 9/2"),
        (("--ratio", "1e999999999"), "ratio is '1e999999999'; it must be a number, such as 5 or 9/2"),
        (("--ratio", "9" * 400), f"ratio is '{'9' * 20}'; it must be a number, such as 5 or 9/2"),
        (("--ratio", "5", "--blocks", "513"), "blocks is 513; it must be at most 512, as many as a search may have"),
        (("--ratio", "5", "--spacing", "wide"), "spacing is 'wide'; it must be uniform or stride"),
        (("--ratio", "5", "--zone", "end"), "zone is 'end'; it must be found or paper"),
        (("--ratio", "5", "--zone", "found"), "--zone found needs --from with the id of a rule that a search found"),
        (("--ratio", "99"), "ratio 99 leaves no attention in 32 blocks; at most 32 is possible"),
    ],
)
def test_impossible_rules_are_one_line(run: Run, arguments: tuple[str, ...], message: str) -> None:
    done = run("rule", "--blocks", "32", *arguments)
    assert (done.status, done.err) == (2, f"blockwright: {message}\n")


def test_rules_of_a_search_are_listed_and_printed_at_another_depth(served: Run, claimed: Claimed, rule_id: str) -> None:
    listed = served("rules").out
    assert listed.startswith(f"{rule_id}  1 search, 2 seeds: suggested; attention in slot 1 of 2 ")
    assert served("rules", claimed.id).out == listed
    strip, string, line, cost = served("rule", "--from", rule_id, "--blocks", "4").out.splitlines()
    assert cost.startswith("width 16: ")
    assert cost.endswith("latency: no stored latency table is of this width, length and serve mode")
    assert strip.split() == ["A", "A", "F", "F"]
    assert string == "AAFF"
    assert line.startswith("attention in slots 1-2 of 4, ffn in the others; found by 1 search with 2 seeds at 2 ")
    assert line.endswith(": suggested, and not measured at 4 slots")
    options = ("--ratio", "9/2", "--zone", "paper", "--spacing", "stride")
    assert "AFFFAFFFF" in served("rule", "--from", rule_id, "--blocks", "9", *options).out.splitlines()


def test_a_ratio_is_listed_with_its_range_over_the_seeds(served: Run, service: Running, claimed: Claimed) -> None:
    keep_statement(service, claimed, "ratio", range_low=2.0, range_high=4.0)
    assert ", 2 : 1 to 4 : 1 over the seeds: " in served("rules").out


def test_rules_that_are_not_there_are_one_line(served: Run, claimed: Claimed) -> None:
    text = f"search {claimed.id} has no rule yet; it comes when architectures are derived\n"
    assert served("rules") == (0, text, "")
    done = served("rule", "--blocks", "4", "--from", UNKNOWN)
    assert (done.status, done.err) == (2, f"blockwright: no rule '{UNKNOWN}'\n")
    done = served("rule", "--blocks", "4", "--from", "../x")
    assert (done.status, done.err) == (2, "blockwright: '../x' is no id of a rule; `blockwright rules` shows them\n")
    done = served("rule", "--blocks", "0", "--from", UNKNOWN)
    assert (done.status, done.err) == (2, "blockwright: /n_slots: input should be greater than or equal to 1, got 0\n")
