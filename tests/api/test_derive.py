"""What-if: other constraints on what a search has stored, by REST, client and command line."""

from __future__ import annotations

import itertools
import json
import math
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from api import deriving
from api.client import Client, ClientError
from db import architectures, latency_tables, queue, reports, searches, trials
from db.engine import transaction
from db.lease import Lease
from db.models import latency_tables as tables_table
from db.models import searches as searches_table
from nas.config.request import SearchRequest
from nas.steps import StepRecord
from tests import tiny
from tests.api.running import TINY, Claimed, Running
from tests.api.test_cli import Run, run, served

__all__ = ["run", "served"]  # fixtures
LABELS = ("attention", "ffn", "identity", "sgu")
BODY: dict[str, Any] = {
    **TINY,
    "space": {**TINY["space"], "n_slots": 4, "candidates": list(LABELS)},
    "trials": {"n_seeds": 2},
}
ROWS = {  # probabilities by seed
    0: [[0.7, 0.1, 0.1, 0.1], [0.1, 0.6, 0.2, 0.1], [0.1, 0.2, 0.6, 0.1], [0.4, 0.38, 0.12, 0.1]],
    1: [[0.1, 0.1, 0.2, 0.6], [0.6, 0.2, 0.1, 0.1], [0.1, 0.7, 0.1, 0.1], [0.1, 0.6, 0.2, 0.1]],
}
Put = Callable[..., str]


def record(seed: int, **more: Any) -> StepRecord:
    return replace(StepRecord(10, phase="search", probabilities=ROWS[seed], null_gaps=[0.1] * 4), **more)


@pytest.fixture
def put(service: Running) -> Put:
    """Stores a search that a runner has, with its latency table and a report of each seed; gives its id."""

    def stored(
        records: dict[tuple[int, int], StepRecord | None] | None = None, *, with_table: bool = True, **body: Any
    ) -> str:
        found = service.http.post("/api/v1/searches", json={**BODY, **body})
        assert found.status_code == 201, found.text
        request = SearchRequest.model_validate(found.json()["request"])
        table = tiny.table(request.space, request.task.serve[0])
        rows = records or {(0, 0): record(0), (0, 1): record(1)}
        with transaction(service.engine) as connection:
            claim = queue.claim_next(connection, "test", free_cpus=4, free_gpus=0, lease_s=600)
            assert claim is not None
            if with_table:
                kept = table.model_dump(mode="json")
                latency_tables.put(connection, claim.lease, table_id=table.id, key="k", body=kept)
                whole = request.model_dump(mode="json")
                searches.set_inputs(
                    connection,
                    claim.lease,
                    request=whole,
                    latency_table_id=table.id,
                    slot_ms=table.slot_ms(request.space),
                )
            for (sample, seed), each in rows.items():
                add(connection, claim.lease, sample, seed, each)
        return str(found.json()["id"])

    return stored


def add(connection: Any, lease: Lease, sample: int, seed: int, row: StepRecord | None) -> str:
    (trial,) = trials.ensure(connection, lease, [trials.NewTrial("search", sample, seed, 20, {})])
    trials.start(connection, lease, trial.id, attempt=1)
    if row is not None:
        reports.insert(connection, lease, [reports.NewReport(trial.id, row)])
    return trial.id


def ask(service: Running, search_id: str, **body: Any) -> Any:
    answer = service.http.post(f"/api/v1/searches/{search_id}/derive", json=body)
    return answer.status_code, answer.json()


def logs(seed: int) -> Any:
    return np.log(np.asarray(ROWS[seed], np.float32).astype(np.float64))


def test_each_seed_answers_with_its_architecture_costs_and_step(service: Running, put: Put) -> None:
    search_id = put()
    status, found = ask(service, search_id)
    assert status == 200, found
    assert (found["search"], found["sample"], found["objective"]) == (search_id, 0, "probability")
    assert found["costs"]["latency"] == {"unit": "ms", "parent": 11.0}
    first, second = found["seeds"]
    assert [each["seed"] for each in (first, second)] == [0, 1]
    assert (first["state"], first["step"], first["phase"], first["reason"]) == ("running", 10, "search", None)
    (best,) = first["architectures"]
    assert (best["string"], best["undecided"]) == ("AF.F", [3]), "the tie goes to the cheaper"
    assert best["slots"] == ["attention", "ffn", "identity", "ffn"]
    assert best["log_probability"] == pytest.approx(math.log(0.7 * 0.6 * 0.6 * 0.38))
    assert best["score"] == pytest.approx(math.log(0.7 * 0.6 * 0.6 * 0.4)), "ties score as their top"
    assert best["costs"]["latency"] == {"value": 8.0, "ratio_to_parent": pytest.approx(8 / 11)}
    assert set(best["costs"]) == {"latency", "parameters", "flops", "cache_bytes"}
    assert best["costs"]["parameters"]["value"] > 0
    assert (best["nats"], best["guessed"], first["front"]) == (None, [], None)
    assert second["architectures"][0]["string"] == "SAFF"
    agreed = found["agreement"]
    assert (agreed["n_seeds"], agreed["n_networks"]) == (2, 2)
    assert agreed["slots"][3] == {"label": "ffn", "n_seeds": 2}
    assert agreed["slots"][0] == {"label": "attention", "n_seeds": 1}
    assert agreed["families"]["identity"] == {"least": 0, "most": 1}


def test_the_answer_is_the_best_of_all_within_the_constraints(service: Running, put: Put) -> None:
    constraints = {
        "budget": {"latency": {"ratio_to_parent": 0.6}},
        "counts": [{"family": "identity", "at_most": 1}],
        "cuts": [{"family": "attention", "before_share": 0.5}],
        "mixers_apart": True,
    }
    status, found = ask(service, put(), constraints=constraints, k=3, front={"cost": "latency", "points": 5})
    assert status == 422, "1 + 3 x 2 ms of ffn are over 6.6"
    constraints["budget"] = {"latency": {"ms": 7.5}}
    status, found = ask(service, put(), constraints=constraints, k=3, front={"cost": "latency", "points": 5})
    assert status == 200, found
    ms = {"attention": 3.0, "ffn": 2.0, "identity": 0.0, "sgu": 2.5}
    for seed in (0, 1):
        scores: dict[tuple[str, ...], float] = {}
        for labels in itertools.product(LABELS, repeat=4):
            blocks = [label for label in labels if label != "identity"]
            apart = not any({one, other} <= {"attention", "sgu"} for one, other in itertools.pairwise(blocks))
            within = 1 + sum(ms[label] for label in labels) <= 7.5 and labels.count("identity") <= 1
            if apart and within and "attention" not in labels[2:]:
                total = sum(logs(seed)[slot][LABELS.index(label)] for slot, label in enumerate(labels))
                word = tuple(blocks)
                scores[word] = max(total, scores.get(word, -math.inf))
        expected = sorted(scores.values(), reverse=True)[:3]
        answer = found["seeds"][seed]
        if seed == 1:  # of seed 0, a tie is raised
            assert [each["score"] for each in answer["architectures"]] == pytest.approx(expected, abs=1e-6)
        costs = [each["costs"]["latency"]["value"] for each in answer["front"]["points"]]
        assert costs == sorted(costs)
        assert answer["front"]["cost"] == "latency"
        assert answer["front"]["points"][-1]["score"] == pytest.approx(answer["architectures"][0]["score"])


def test_nothing_is_stored_and_the_same_request_gets_the_same_answer(service: Running, put: Put) -> None:
    search_id = put()
    before = service.http.get(f"/api/v1/searches/{search_id}").json()["last_event"]
    path = f"/api/v1/searches/{search_id}/derive"
    first, second = (service.http.post(path, json={"k": 4}) for _ in range(2))
    assert first.content == second.content
    assert first.headers["ETag"] == second.headers["ETag"]
    assert service.http.get(f"/api/v1/searches/{search_id}").json()["last_event"] == before
    assert service.http.get(f"/api/v1/searches/{search_id}/architectures").json()["items"] == []


def pruned(seed: int) -> StepRecord:
    nats: list[list[float | None]] = [
        [0.0, 0.3, 0.4, None], [0.2, 0.0, 0.001, None], [None, 0.2, 0.0, None], [0.0, 0.1, None, None]
    ]  # fmt: skip
    errors = [[None if each is None else 0.01 for each in row] for row in nats]
    return record(seed, phase="prune", path=[0, 1, 2, 0], effect_nats=nats, effect_se=errors)


def test_behind_a_pass_architectures_are_ranked_by_the_nats_it_measured(service: Running, put: Put) -> None:
    search_id = put({(0, 0): pruned(0)})
    status, found = ask(service, search_id, k=2)
    assert (status, found["objective"]) == (200, "nats"), found
    path, other = found["seeds"][0]["architectures"]
    assert (path["string"], path["nats"], path["score"], path["undecided"]) == ("AF.A", 0.0, 0.0, [1])
    assert (other["string"], other["nats"], other["guessed"]) == ("A..A", pytest.approx(0.001), [])
    few = {"counts": [{"family": "attention", "at_most": 1}]}
    status, found = ask(service, search_id, constraints=few)
    assert found["seeds"][0]["architectures"][0]["string"] == "AF.F"
    assert found["seeds"][0]["architectures"][0]["nats"] == pytest.approx(0.1)
    status, found = ask(service, search_id, constraints={"forced": [{"labels": ["sgu"], "first": 2, "last": 2}]})
    answer = found["seeds"][0]["architectures"][0]
    assert answer["guessed"] == [2], "never tried there, so read from alpha"
    assert answer["nats"] == pytest.approx(math.log(0.6 / 0.1), abs=1e-6)
    status, found = ask(service, search_id, objective="probability")
    assert found["seeds"][0]["architectures"][0]["string"] == "AF.F"
    assert found["seeds"][0]["architectures"][0]["nats"] == pytest.approx(0.1)


def test_an_infeasible_request_names_the_conflict_and_what_can_be_met(service: Running, put: Put) -> None:
    constraints = {
        "budget": {"latency": {"ms": 5.0}},
        "counts": [{"family": "attention", "at_least": 2}, {"family": "sgu", "at_most": 3}],
    }
    status, found = ask(service, put(), constraints=constraints)
    assert (status, found["code"]) == (422, "infeasible")
    assert found["detail"] == (
        "no architecture has all of: latency at most 5 ms (7 ms can be met); at least 2 slots of attention (1 slot can "
        "be met); without any one of them the others can be met"
    )
    assert found["conflict"] == [
        {
            "pointer": "/budget/latency", "words": "latency at most 5 ms", "nearest": 7.0, "unit": "ms", "upper": True,
            "alone": True,
        },
        {
            "pointer": "/counts/0/at_least", "words": "at least 2 slots of attention", "nearest": 1.0, "unit": "slots",
            "upper": False, "alone": True,
        },
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("body", "code", "detail"),
    [
        ({"k": 0}, "invalid-request", "greater than or equal to 1"),
        ({"k": 101}, "invalid-request", "less than or equal to 100"),
        ({"front": {"cost": "latency", "points": 1}}, "invalid-request", "greater than or equal to 2"),
        ({"front": {"cost": "money"}}, "invalid-request", "'latency', 'parameters', 'flops' or 'cache_bytes'"),
        ({"constraints": {"counts": [{"family": "mgk", "at_most": 1}]}}, "invalid-input",
         "counts/0 names family 'mgk'; the space has attention, ffn, identity, sgu"),
        ({"constraints": {"counts": [{"label": "mgk", "at_most": 1}]}}, "invalid-input",
         "counts/0 names label 'mgk'; the space has attention, ffn, identity, sgu"),
        ({"constraints": {"forbidden": [{"labels": ["mgk"]}]}}, "invalid-input",
         "forbidden/0 names label 'mgk'; the space has attention, ffn, identity, sgu"),
        ({"constraints": {"forced": [{"labels": ["ffn"], "first": 4}]}}, "invalid-input",
         "forced/0 names slot 5, counted from 1; of 4 slots, at most 4 is possible"),
        ({"constraints": {"cuts": [{"family": "ffn", "from_slot": 5}]}}, "invalid-input",
         "cuts/0 names slot 6, counted from 1; of 4 slots, at most 5 is possible"),
        ({"constraints": {"counts": [{"family": "ffn"}]}}, "invalid-request", "needs at_least, at_most or both"),
        ({"objective": "nats"}, "invalid-input", "no parsimony pass has measured nats by step 10; rank by probability"),
        ({"seeds": [7]}, "invalid-input", "no seed 7 of sample 0 has reported; seeds 0, 1 did"),
        ({"sample": 3}, "invalid-input", "no trial of sample 3 has reported; sample 0 did"),
        ({"seeds": []}, "invalid-request", "at least 1"),
        ({"budget": {}}, "invalid-request", "budget"),
    ],
    ids=[
        *("no architecture", "too many", "one point", "no cost", "family", "label", "forbidden", "slot", "cut"),
        *("empty count", "no nats", "seed", "sample", "no seed", "unknown"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_one_line(service: Running, put: Put, body: Any, code: str, detail: str) -> None:
    status, found = ask(service, put(), **body)
    assert (status, found["code"]) == (422, code), found
    told = found["detail"] + "".join(each["detail"] for each in found["errors"])
    assert detail in told


def test_probabilities_that_are_not_numbers_are_told_of_their_seed(service: Running, put: Put) -> None:
    broken = record(1, probabilities=[*ROWS[1][:2], [math.nan] * 4, ROWS[1][3]])
    status, found = ask(service, put({(0, 0): record(0), (0, 1): broken}))
    assert status == 200
    assert found["seeds"][1]["reason"] == "the probabilities of slot 3 are not numbers; the search has diverged"
    assert found["seeds"][1]["architectures"] == []
    assert found["agreement"]["n_seeds"] == 1
    status, found = ask(service, put({(0, 0): broken}))
    assert (status, found["code"]) == (422, "search-failed")
    assert found["detail"].startswith("seed 0 at step 10: the probabilities of slot 3 are not numbers")


def test_alpha_that_has_not_moved_says_so(service: Running, put: Put) -> None:
    even = record(0, phase="warm-up", probabilities=[[0.25] * 4] * 4)
    status, found = ask(service, put({(0, 0): even}))
    assert (status, found["code"]) == (422, "search-failed")
    assert "no slot's alpha moved beyond chance" in found["detail"]


def test_a_search_without_reports_says_when_they_come(service: Running, put: Put, submitted: dict[str, Any]) -> None:
    status, found = ask(service, submitted["id"])
    assert (status, found["code"]) == (409, "no-report")
    assert found["detail"] == (
        f"search {submitted['id']} is queued and has reported no probabilities yet; they come with its first report"
    )


def test_without_a_latency_table_what_is_counted_can_still_be_bounded(service: Running, put: Put) -> None:
    search_id = put(with_table=False)
    few = {"budget": {"parameters": {"ratio_to_parent": 0.7}}}
    status, found = ask(service, search_id, constraints=few)
    assert status == 200, found
    assert "latency" not in found["costs"]
    assert found["seeds"][0]["architectures"][0]["costs"]["latency"] is None
    assert found["seeds"][0]["architectures"][0]["costs"]["parameters"]["ratio_to_parent"] <= 0.7
    status, found = ask(service, search_id, constraints={"budget": {"latency": {"ms": 5}}})
    assert (status, found["code"]) == (422, "invalid-input")
    assert found["detail"] == "budget.latency needs a latency table, and there is none; bound what is counted instead"
    status, found = ask(service, search_id, front={"cost": "latency"})
    assert found["detail"] == ("front.cost is 'latency'; of this search are known: parameters, flops, cache_bytes")


def test_several_samples_are_chosen_among_by_the_search_or_by_the_request(service: Running, put: Put) -> None:
    ranges = [{"pointer": "/method/lr", "low": 1e-3, "high": 1e-2}]
    search_id = put({(0, 0): record(0), (1, 0): record(1)}, ranges=ranges, trials={"n_seeds": 1, "n_samples": 2})
    status, found = ask(service, search_id)
    assert (status, found["code"]) == (422, "invalid-input")
    assert found["detail"] == "the search has not chosen among its samples yet; give one of samples 0, 1"
    assert ask(service, search_id, sample=1)[1]["seeds"][0]["architectures"][0]["string"] == "SAFF"
    with transaction(service.engine) as connection:
        trial = trials.of_search(connection, search_id)[1]
        row = connection.execute(searches_table.select().where(searches_table.c.id == search_id)).one()
        lease = Lease(search_id, row.lease_token)
        architectures.put(connection, lease, role="budget", string="SAFF", hash="h", body={}, trial_id=trial.id)
    assert ask(service, search_id)[1]["sample"] == 1


def test_a_search_of_blocks_that_are_not_installed_here_is_one_line(service: Running, put: Put) -> None:
    search_id = put()
    with transaction(service.engine) as connection:
        row = connection.execute(searches_table.select().where(searches_table.c.id == search_id)).one()
        request = json.loads(json.dumps(row.request))
        request["space"]["candidates"][3]["block"] = "plugged"
        connection.execute(searches_table.update().where(searches_table.c.id == search_id).values(request=request))
    status, found = ask(service, search_id)
    assert (status, found["code"]) == (422, "not-derivable")
    assert found["detail"].startswith("the search cannot be read here: ")
    assert "unknown candidate block 'plugged'" in found["detail"]


def test_a_table_that_cannot_be_read_is_one_line(service: Running, put: Put) -> None:
    search_id = put()
    with transaction(service.engine) as connection:
        connection.execute(tables_table.update().values(body={"format_version": 9}))
    status, found = ask(service, search_id)
    assert (status, found["code"]) == (422, "not-derivable")
    assert found["detail"].startswith("latency table ")


def test_too_much_at_once_is_refused_before_it_begins(
    service: Running, put: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deriving, "_MOST_S", 1e-3)
    status, found = ask(service, put(), front={"cost": "flops", "points": 200})
    assert (status, found["code"]) == (422, "invalid-input")
    assert found["detail"].startswith("2 seeds of 4 slots and 4 candidates would take about ")


def test_what_no_estimate_foresaw_ends_in_time(service: Running, put: Put, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deriving, "_LONGEST_S", 1e-6)
    search_id = put()
    status, found = ask(service, search_id, constraints={"counts": [{"family": "ffn", "at_least": 2}]})
    assert (status, found["code"]) == (422, "invalid-input")
    assert found["detail"].startswith("no exact answer within 1e-06 s; ask with fewer or simpler constraints")
    monkeypatch.undo()
    assert ask(service, search_id)[0] == 200, "the next one is not kept waiting"


def test_one_derivation_runs_at_a_time(service: Running, put: Put, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deriving, "_WAIT_S", 0.01)
    with deriving._one:
        status, found = ask(service, put())
    assert (status, found["code"]) == (503, "too-many-derivations")
    assert ask(service, put())[0] == 200


def test_however_many_wait_the_service_answers_others(service: Running, put: Put) -> None:
    search_id, answers = put(), []

    def derive() -> None:
        answers.append(httpx.post(f"{service.url}/api/v1/searches/{search_id}/derive", json={}, timeout=60).status_code)

    waiting = [threading.Thread(target=derive) for _ in range(45)]  # the service answers with 40 threads
    with deriving._one:
        for each in waiting:
            each.start()
        deadline = time.monotonic() + 25
        while len(answers) < 37:
            assert time.monotonic() < deadline, answers
            time.sleep(0.01)
        assert set(answers) == {503}
        assert service.http.get("/healthz").status_code == 200
    for each in waiting:
        each.join(timeout=60)
    assert sorted(answers) == [200] * 8 + [503] * 37


def test_an_unknown_search_is_404(service: Running) -> None:
    status, found = ask(service, "0190a000-0000-7000-8000-000000000000")
    assert (status, found["code"]) == (404, "not-found")


def test_the_api_derives_without_torch_and_stays_small(service: Running, put: Put, claimed: Claimed) -> None:
    """In a fresh interpreter: what is loaded, and the memory that the first derivation leaves it with."""
    program = """
import asyncio, json, re, sys
from pathlib import Path
import httpx
from api.app import create_app
from api.settings import Settings

async def answer():
    app = create_app(Settings(data_dir=Path(sys.argv[1])))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1") as client:
        before = "numpy" in sys.modules
        body = {"constraints": {"budget": {"latency": {"ms": 6}}}, "k": 3, "front": {"cost": "latency"}}
        found = await client.post(f"/api/v1/searches/{sys.argv[2]}/derive", json=body)
        return before, found.status_code

before, status = asyncio.run(answer())
loaded = sorted({"torch", "ray", "pandas", "scipy"} & set(sys.modules))
mb = int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 1024
print(json.dumps([before, status, loaded, mb]))
"""
    search_id = put()
    command = [sys.executable, "-c", program, str(service.data_dir), search_id]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    before, status, loaded, mb = json.loads(done.stdout)
    assert (before, status, loaded) == (False, 200, ["scipy"])
    assert mb < 180


# -- client and command line ------------------------------------------------------------------------------------------


def test_the_client_derives_and_carries_the_conflict(service: Running, put: Put) -> None:
    search_id = put()
    with Client(service.url) as client:
        found = client.derive(search_id, {"counts": [{"family": "attention", "at_most": 0}]}, k=2, seeds=[1])
        assert [len(each["architectures"]) for each in found["seeds"]] == [2]
        with pytest.raises(
            ClientError, match=r"^no architecture has latency at most 0\.5 ms \(1 ms can be met\)$"
        ) as error:
            client.derive(search_id, {"budget": {"latency": {"ms": 0.5}}})
    assert (error.value.code, error.value.conflict[0]["nearest"]) == ("infeasible", 1.0)


def test_the_command_prints_each_seeds_architectures_with_costs(served: Run, put: Put) -> None:
    search_id = put()
    done = served(
        "derive", search_id, "--at-most", "latency=0.8x", "--count", "attention<=1", "--ratio", "attention>=2",
        "--forbid", "sgu@1,3-4", "--force", "attention,ffn@2", "--cut", "attention<2/3", "--mixers-apart", "-k", "2",
        "--front", "latency", "--points", "4",
    )  # fmt: skip
    assert (done.status, done.err) == (0, "")
    assert "ranked by log-probability; no network was trained for this, latency is predicted" in done.out
    assert "seed 0 after 10 steps (running, search)" in done.out
    assert "AF.F" in done.out
    assert "front against latency, 4 points" in done.out
    assert "the best of 2 seeds" in done.out
    body = json.loads(served("derive", search_id, "--cut", "label:attention>=2", "--json").out)
    assert all(each["architectures"][0]["slots"][0] != "attention" for each in body["seeds"])


def test_behind_a_pass_the_command_prints_nats_and_marks_what_was_guessed(served: Run, put: Put) -> None:
    out = served("derive", put({(0, 0): pruned(0)}), "--force", "sgu@3").out
    assert "ranked by nats over the path of the parsimony pass" in out
    assert "1.7918*" in out
    assert "* not all slots were measured: the others are read from alpha" in out


def test_a_seed_without_an_architecture_is_printed_with_its_reason(served: Run, put: Put) -> None:
    even = record(1, probabilities=[[0.25] * 4] * 4)
    out = served("derive", put({(0, 0): record(0), (0, 1): even})).out
    assert "seed 1 after 10 steps (running, search): no slot's alpha moved beyond chance" in out


def test_constraints_may_stand_in_a_file(served: Run, put: Put, tmp_path: Path) -> None:
    file = tmp_path / "constraints.json"
    file.write_text(json.dumps({"counts": [{"family": "attention", "at_most": 0}], "budget": {"latency": {"ms": 9}}}))
    search_id = put()
    body = json.loads(served("derive", search_id, "--constraints", str(file), "--at-most", "flops=1x", "--json").out)
    assert all("attention" not in each["architectures"][0]["slots"] for each in body["seeds"])


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (
            ["--at-most", "money=3"],
            "--at-most is 'money=3'; it must be COST=VALUE, of latency, parameters",
        ),
        (["--at-most", "latency=fast"], "--at-most has 'fast'; it must be a number, such as 5 or 2/3"),
        (
            ["--count", "attention=4"],
            "--count is 'attention=4'; it must be FAMILY<=VALUE or FAMILY>=VALUE, such",
        ),
        (["--count", "attention<=1.5"], "--count has '1.5'; it must be a whole number"),
        (["--ratio", "attention<5"], "--ratio is 'attention<5'; it must be FAMILY<=VALUE or FAMILY>=VALUE"),
        (["--cut", "attention<=5"], "--cut is 'attention<=5'; it must be FAMILY<SLOT or FAMILY>=SLOT, or a share such"),
        (["--forbid", "sgu@x"], "'sgu@x' is no LABEL@SLOTS, such as sgu@1,5-8"),
        (["--forbid", "sgu@0-2"], "'sgu@0-2' names slot 0; slots count from 1"),
        (["--cut", "attention<0"], "'attention<0' names slot 0; slots count from 1"),
        (["--count", "attention>=9"], "no architecture has at least 9 slots of attention (4 slots can be met)"),
        (["--constraints", "list.json"], "is no JSON of constraints; it must be an object"),
        (["--constraints", "broken.json"], "is no JSON of constraints: "),
    ],
    ids=[
        "cost",
        "number",
        "count",
        "whole",
        "ratio",
        "cut",
        "slots",
        "slot 0",
        "cut at 0",
        "infeasible",
        "list",
        "broken",
    ],
)
def test_what_the_command_cannot_read_is_one_line(
    served: Run, put: Put, tmp_path: Path, arguments: list[str], line: str
) -> None:
    (tmp_path / "list.json").write_text("[]")
    (tmp_path / "broken.json").write_text("{")
    arguments = [str(tmp_path / each) if each.endswith(".json") else each for each in arguments]
    done = served("derive", put(), *arguments)
    assert done.status == 2
    assert line in done.err
    assert done.err.count("\n") == 1
