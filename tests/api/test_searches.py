from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import event
from sqlalchemy.exc import OperationalError

from api.errors import MAX_FIELD_ERRORS
from api.routes.searches import planned_steps
from db import datasets, paging, searches
from db.engine import transaction
from db.reports import NewReport
from db.reports import insert as insert_reports
from nas import catalog
from nas.config.request import SearchRequest
from tests.api.running import TINY, Claimed, Running, record

DATABASES = ("sqlite", "postgresql")
UNKNOWN = "0190a5c0-0000-7000-8000-000000000000"
ROOT = "/api/v1/searches"


def changed(path: str, value: Any) -> dict[str, Any]:
    """TINY with one value put in at a dotted path."""
    body: dict[str, Any] = json.loads(json.dumps(TINY))
    place = body
    *parents, last = path.split(".")
    for name in parents:
        place = place.setdefault(name, {})
    place[last] = value
    return body


def test_a_submitted_search_is_queued_with_every_default_written_out(service: Running) -> None:
    answer = service.http.post(ROOT, json=TINY)
    search = answer.json()
    assert answer.status_code == 201
    assert answer.headers["location"] == f"{ROOT}/{search['id']}"
    assert (search["state"], search["stage"], search["reason"]) == ("queued", None, None)
    assert search["request"] == SearchRequest.model_validate(TINY).model_dump(mode="json")
    assert search["labels"] == ["attention", "ffn", "identity"]
    planned = planned_steps(SearchRequest.model_validate(TINY))
    assert search["progress"] == {"step": 0, "n_steps": planned, "share": 0, "eta_s": None}
    assert service.http.get(answer.headers["location"]).json() == search


@pytest.mark.parametrize(
    ("body", "pointer", "code", "detail"),
    [
        pytest.param(
            changed("space.candidates", ["attention", "sgux"]),
            "/space/candidates/1",
            "invalid-input",
            "unknown candidate block 'sgux'; known: attention, ffn, identity, mgk, sgu",
            id="unknown block",
        ),
        pytest.param(
            changed("space.n_slots", 0),
            "/space/n_slots",
            "greater-than-equal",
            "input should be greater than or equal to 1, got 0",
            id="no slots",
        ),
        pytest.param(
            changed("space.n_slots", 10_000),
            "/space/n_slots",
            "less-than-equal",
            "input should be less than or equal to 512, got 10000",
            id="too many slots",
        ),
        pytest.param(
            changed("space.n_heads", 3),
            "/space",
            "invalid-value",
            "d_model 16 is not divisible by n_heads 3",
            id="d_model not divisible",
        ),
        pytest.param(
            changed("space.depth", 3), "/space/depth", "extra-forbidden", "unknown field 'depth'", id="unknown field"
        ),
        pytest.param(
            changed("budget.latency", {"ms": -1}),
            "/budget/latency/ms",
            "greater-than",
            "input should be greater than 0, got -1",
            id="impossible budget",
        ),
        pytest.param(
            changed("task.train_length", 64),
            "",
            "invalid-value",
            "train_length 64 is longer than max_len 16",
            id="train_length beyond max_len",
        ),
    ],
)
def test_a_bad_request_is_one_clear_line_with_a_pointer(
    service: Running, body: Any, pointer: str, code: str, detail: str
) -> None:
    answer = service.http.post(ROOT, json=body)
    problem = answer.json()
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
    assert problem["code"] == "invalid-request"
    assert "\n" not in problem["detail"]
    assert (problem["errors"][0]["pointer"], problem["errors"][0]["code"]) == (pointer, code)
    assert problem["errors"][0]["detail"] == detail
    assert problem["detail"] == (f"{pointer}: {detail}" if pointer else detail)
    assert service.http.get(ROOT).json()["items"] == []


@pytest.mark.parametrize(
    ("text", "code", "detail"),
    [
        ('{"name": NaN}', "invalid-json", "NaN is not JSON; numbers must be finite"),
        ('{"method": {"lr": Infinity}}', "invalid-json", "Infinity is not JSON; numbers must be finite"),
        ('{"method": {"lr": 1e999}}', "invalid-json", "number 1e999 is out of range; numbers must be finite"),
        ('{"name": "a", "name": "b"}', "invalid-json", "name 'name' stands twice in one object"),
        ("[" * 50_000 + "]" * 50_000, "invalid-json", "nested deeper than 32 levels"),
        ('{"name": ', "invalid-json", "not JSON: expecting value at line 1 column 10"),
        ("", "invalid-json", "not JSON: expecting value at line 1 column 1"),
        ("[]", "invalid-json", "the body must be a JSON object"),
    ],
    ids=["nan", "infinity", "overflow", "duplicate", "deep", "cut off", "empty", "list"],
)
def test_a_body_that_is_not_strict_json_is_refused(service: Running, text: str, code: str, detail: str) -> None:
    answer = service.http.post(ROOT, content=text, headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.json()["code"], answer.json()["detail"]) == (400, code, detail)
    assert service.http.get(ROOT).json()["items"] == []


def test_a_bad_idempotency_key_is_refused_by_its_name(service: Running) -> None:
    answer = service.http.post(ROOT, json=TINY, headers={"Idempotency-Key": "a key"})
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "idempotency-key")


def test_a_field_name_of_several_lines_is_told_on_one(service: Running) -> None:
    problem = service.http.post(ROOT, json={"a\nb" * 100: 1}).json()
    assert problem["errors"][0]["pointer"] == "/" + "a\nb" * 100
    assert problem["detail"].startswith("/a?ba?ba?b")
    assert "\n" not in problem["detail"]
    assert len(problem["detail"]) < 300


def test_a_thousand_bad_fields_are_told_in_a_hundred(service: Running) -> None:
    answer = service.http.post(ROOT, json={f"x{number}": 1 for number in range(1000)})
    assert (answer.status_code, len(answer.json()["errors"])) == (422, MAX_FIELD_ERRORS)


def test_another_media_type_is_refused(service: Running) -> None:
    answer = service.http.post(ROOT, content=json.dumps(TINY), headers={"Content-Type": "text/plain"})
    assert (answer.status_code, answer.json()["code"]) == (415, "unsupported-media-type")
    assert answer.json()["detail"] == "the body must be application/json, not text/plain"


def test_an_unknown_dataset_is_refused_with_the_known_ones(service: Running) -> None:
    answer = service.http.post(ROOT, json=changed("task.dataset", "novels"))
    assert (answer.status_code, answer.json()["code"]) == (422, "unknown-dataset")
    known = ", ".join(sorted([*catalog.DATASETS, *catalog.TASKS]))
    assert answer.json()["detail"] == f"unknown dataset 'novels'; known: {known}"


def test_a_registered_dataset_may_be_named(service: Running) -> None:
    with transaction(service.engine) as connection:
        datasets.register(connection, name="novels", fingerprint="0" * 64, n_bytes=10_000, path="datasets/novels")
    assert service.http.post(ROOT, json=changed("task.dataset", "novels")).status_code == 201


def test_an_unknown_latency_table_is_refused(service: Running) -> None:
    answer = service.http.post(ROOT, json=changed("latency_table", "f" * 32))
    assert answer.status_code == 422
    assert "unknown latency table 'ffffffffffffffffffffffffffffffff'" in answer.json()["detail"]


def test_a_failing_commit_is_not_answered_with_201(service: Running) -> None:
    def fail(connection: object) -> None:
        raise RuntimeError("disk full")

    event.listen(service.engine, "commit", fail)
    answer = service.http.post(ROOT, json=TINY)
    event.remove(service.engine, "commit", fail)
    assert (answer.status_code, answer.json()["code"]) == (500, "internal")
    assert "disk" not in answer.text
    assert service.http.get(ROOT).json()["items"] == []


def test_the_same_idempotency_key_queues_one_search(service: Running) -> None:
    first = service.http.post(ROOT, json=TINY, headers={"Idempotency-Key": "k1"})
    again = service.http.post(ROOT, json=TINY, headers={"Idempotency-Key": "k1"})
    assert (first.status_code, again.status_code) == (201, 201)
    assert first.json()["id"] == again.json()["id"]
    assert again.headers["idempotency-replayed"] == "true"
    assert "idempotency-replayed" not in first.headers
    assert len(service.http.get(ROOT).json()["items"]) == 1


def test_an_idempotency_key_with_another_body_is_refused(service: Running) -> None:
    service.http.post(ROOT, json=TINY, headers={"Idempotency-Key": "k1"})
    answer = service.http.post(ROOT, json=changed("name", "other"), headers={"Idempotency-Key": "k1"})
    assert (answer.status_code, answer.json()["code"]) == (422, "idempotency-conflict")


def test_the_list_is_newest_first_in_pages_with_filters(service: Running) -> None:
    ids = [service.http.post(ROOT, json=TINY).json()["id"] for _ in range(3)]
    service.http.post(f"{ROOT}/{ids[0]}/cancel")
    first = service.http.get(ROOT, params={"limit": 2}).json()
    rest = service.http.get(ROOT, params={"limit": 2, "cursor": first["next"]}).json()
    assert [each["id"] for each in first["items"] + rest["items"]] == ids[::-1]
    assert rest["next"] is None
    assert [each["id"] for each in service.http.get(ROOT, params={"state": "cancelled"}).json()["items"]] == [ids[0]]


@pytest.mark.parametrize("cursor", ["abc", paging.encode(["\ud800"])])
def test_a_foreign_cursor_is_refused(service: Running, cursor: str) -> None:
    answer = service.http.get(ROOT, params={"cursor": cursor})
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid-cursor")


@pytest.mark.parametrize(
    ("path", "params", "pointer"),
    [
        ("", {"state": "done"}, "?state"),
        ("", {"limit": 0}, "?limit"),
        ("/../../etc/passwd", {}, None),
        ("/1", {}, "{search_id}"),
        ("/%2e%2e%2fx", {}, None),
        (f"/{UNKNOWN.upper()}", {}, "{search_id}"),
        ("/", {}, None),
        (f"/{UNKNOWN}/reports", {"stride": 0}, "?stride"),
        (f"/{UNKNOWN}/events", {"after": -1}, "?after"),
        (f"/{UNKNOWN}/events", {"after": 2**63}, "?after"),
        (f"/{UNKNOWN}/reports", {"first_step": 2**63}, "?first_step"),
        (f"/{UNKNOWN}/probabilities", {"last_step": 10**30}, "?last_step"),
    ],
)
def test_bad_parameters_are_refused_by_name(
    service: Running, path: str, params: dict[str, Any], pointer: str | None
) -> None:
    answer = service.http.get(ROOT + path, params=params)
    if pointer is None:
        assert answer.status_code == 404
    else:
        assert answer.status_code == 422
        assert answer.json()["errors"][0]["pointer"] == pointer


@pytest.mark.parametrize(
    "rest",
    ["", "/trials", "/reports", "/probabilities", "/architectures", "/rules", "/artifacts", "/report", "/events"],
)
def test_an_unknown_search_is_not_found_everywhere(service: Running, rest: str) -> None:
    answer = service.http.get(f"{ROOT}/{UNKNOWN}{rest}")
    assert (answer.status_code, answer.json()["code"]) == (404, "not-found")
    assert UNKNOWN in answer.json()["detail"]


def test_an_unknown_page_is_a_problem_too(service: Running) -> None:
    answer = service.http.get("/nothing")
    assert (answer.status_code, answer.json()["detail"]) == (404, "no such page: '/nothing'")
    assert answer.json()["request_id"] == answer.headers["x-request-id"]
    assert service.http.put(ROOT, json={}).json()["code"] == "method-not-allowed"


def test_a_search_is_sent_only_when_it_has_changed(service: Running, submitted: dict[str, Any]) -> None:
    url = f"{ROOT}/{submitted['id']}"
    etag = service.http.get(url).headers["etag"]
    assert service.http.get(url, headers={"If-None-Match": etag}).status_code == 304
    service.http.post(f"{url}/cancel")
    changed = service.http.get(url, headers={"If-None-Match": etag})
    assert (changed.status_code, changed.json()["state"]) == (200, "cancelled")


@pytest.mark.parametrize("path", ["", "/{}/cancel", "/{}/resume"])
def test_a_change_is_answered_whole_whatever_the_client_has(
    service: Running, submitted: dict[str, Any], path: str
) -> None:
    url = ROOT + path.format(submitted["id"])
    answer = service.http.post(url, json=TINY, headers={"If-None-Match": "*"})
    assert answer.status_code == (200 if path else 201)
    assert answer.json()["request"] == submitted["request"]


def test_cancel_resume_and_delete_change_the_state(service: Running, submitted: dict[str, Any]) -> None:
    url = f"{ROOT}/{submitted['id']}"
    assert service.http.post(f"{url}/cancel").json()["state"] == "cancelled"
    assert service.http.post(f"{url}/cancel").json()["state"] == "cancelled"
    assert service.http.post(f"{url}/resume").json()["state"] == "queued"
    answer = service.http.delete(url)
    assert (answer.status_code, answer.json()["code"]) == (409, "wrong-state")
    service.http.post(f"{url}/cancel")
    assert service.http.delete(url).status_code == 204
    assert service.http.get(url).status_code == 404


def test_a_deleted_search_leaves_no_files(service: Running, submitted: dict[str, Any]) -> None:
    folder = service.data_dir / "searches" / submitted["id"]
    folder.mkdir(parents=True)
    (folder / "export.zip").write_bytes(b"x")
    service.http.post(f"{ROOT}/{submitted['id']}/cancel")
    assert service.http.delete(f"{ROOT}/{submitted['id']}").status_code == 204
    assert not folder.exists()


def test_a_finished_search_cannot_be_cancelled_or_resumed(service: Running, claimed: Claimed) -> None:
    with transaction(service.engine) as connection:
        searches.finish(connection, claimed.lease, "succeeded")
    for verb in ("cancel", "resume"):
        answer = service.http.post(f"{ROOT}/{claimed.id}/{verb}")
        assert (answer.status_code, answer.json()["code"]) == (409, "wrong-state")
        assert "succeeded" in answer.json()["detail"]


def test_a_running_search_that_is_cancelled_says_so(service: Running, claimed: Claimed) -> None:
    answer = service.http.post(f"{ROOT}/{claimed.id}/cancel").json()
    assert (answer["state"], answer["cancelling"]) == ("running", True)


def test_reports_and_probabilities_come_by_trial_range_and_stride(service: Running, claimed: Claimed) -> None:
    claimed.report([0, 5, 10, 15])
    rows = service.http.get(f"{ROOT}/{claimed.id}/reports", params={"first_step": 5, "last_step": 10}).json()["items"]
    assert [(row["trial"], row["step"], row["train_loss"]) for row in rows] == [
        (claimed.trial, 5, 2.95),
        (claimed.trial, 10, 2.9),
    ]
    matrices = service.http.get(
        f"{ROOT}/{claimed.id}/probabilities", params={"trial": claimed.trial, "stride": 10}
    ).json()["items"]
    assert [row["step"] for row in matrices] == [0, 10, 15]
    assert matrices[0]["probabilities"] == [[0.75, 0.125, 0.125], [0.25, 0.375, 0.375]]
    assert matrices[0]["null_gaps"] == [0.5, 0.5]
    beside = ("updates", "z", "effect_nats", "effect_se")
    assert [matrices[0][name] for name in beside if name != "z"] == [None] * 3
    assert matrices[0]["z"] == record(0).z  # no probability without it
    assert (rows[0]["phase"], rows[0]["warning"], rows[0]["dual"]) == ("search", None, None)
    with transaction(service.engine) as connection:
        told = replace(
            record(20), phase="prune", path=[0, 2], warning="slot 2: ranking flipped", dual=0.25,
            effect_nats=[[0.0, 0.5, None], [None, None, 0.0]], effect_se=[[0.0, 0.125, None], [None, None, 0.0]],
        )  # fmt: skip
        insert_reports(connection, claimed.lease, [NewReport(claimed.trial, told)])
    (row,) = service.http.get(f"{ROOT}/{claimed.id}/reports", params={"first_step": 20}).json()["items"]
    assert (row["phase"], row["warning"], row["dual"]) == (told.phase, told.warning, told.dual)
    asked = {"first_step": 20, "evidence": True}
    (row,) = service.http.get(f"{ROOT}/{claimed.id}/probabilities", params=asked).json()["items"]
    assert {name: row[name] for name in (*beside, "path")} == {name: getattr(told, name) for name in (*beside, "path")}
    (warning,) = service.http.get(f"{ROOT}/{claimed.id}/warnings").json()["items"]
    assert warning["data"] == {"message": told.warning, "trial": claimed.trial, "step": 20}
    (trial,) = service.http.get(f"{ROOT}/{claimed.id}/trials").json()["items"]
    assert (trial["kind"], trial["seed"], trial["step"], trial["state"]) == ("search", 0, 20, "running")


def test_a_result_comes_only_when_the_search_has_one(service: Running, claimed: Claimed) -> None:
    answer = service.http.get(f"{ROOT}/{claimed.id}/report")
    assert (answer.status_code, answer.json()["code"]) == (404, "no-result")
    assert "a result comes when it has succeeded" in answer.json()["detail"]
    with transaction(service.engine) as connection:
        searches.set_result(connection, claimed.lease, {"derived": {"string": "A."}})
        searches.finish(connection, claimed.lease, "succeeded")
    assert service.http.get(f"{ROOT}/{claimed.id}/report").json() == {"derived": {"string": "A."}}
    assert service.http.get(f"{ROOT}/{claimed.id}").json()["result"] == {"derived": {"string": "A."}}
    assert service.http.get(ROOT).json()["items"][0]["result"] is None


def test_planned_steps_count_searches_and_retrainings() -> None:
    request = SearchRequest.model_validate(
        {"trials": {"n_seeds": 3}, "method": {"n_steps": 100, "prune_steps": 7}, "retrain": {"n_steps": 10}}
    )
    each = request.method.most_steps
    assert each > 100
    assert planned_steps(request) == 3 * each + (3 + 1) * 2 * 10


def test_a_locked_database_is_a_503_that_may_be_retried(service: Running, submitted: dict[str, Any]) -> None:
    def fail(connection: object) -> None:
        raise OperationalError("COMMIT", None, Exception("database is locked"))

    event.listen(service.engine, "commit", fail)
    answer = service.http.post(f"{ROOT}/{submitted['id']}/cancel")
    event.remove(service.engine, "commit", fail)
    assert (answer.status_code, answer.json()["code"]) == (503, "database-unavailable")
    assert "nothing was changed, try again" in answer.json()["detail"]
    assert answer.headers["retry-after"] == "1"
