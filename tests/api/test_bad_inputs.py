"""Bad bodies, ids, names, paths and cursors, sent to a real service on both databases.

Each is refused by one problem with a code and one clear line, is never a 500, stores and loses nothing, and the service
answers afterwards. Where public advisories name a case, it is replayed here; bad HTTP stands in test_bad_http.py.
"""

from __future__ import annotations

import copy
import gzip
import io
import json
import pickle
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from api.gate import SIGN_IN
from api.session import MAX_BODY_SIZE
from db import models, paging
from db.engine import transaction
from nas.config.request import SearchRequest
from tests.api.running import TINY
from tests.api.standing import (
    SECRET,
    UNKNOWN,
    UNKNOWN_IDS,
    Standing,
    body_of,
    cursor,
    filled,
    parameters,
    refused,
    routes,
    settings_for,
    standing,
)
from tests.postgresql import Server


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def shared(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, migrated: Path
) -> Iterator[Standing]:
    folder = tmp_path_factory.mktemp("standing")
    if request.param == "sqlite":
        with standing(settings_for(folder, migrated)) as found:
            yield found
        return
    server: Server = request.getfixturevalue("postgresql")
    with server.database() as url, standing(settings_for(folder, migrated, url)) as found:
        yield found


@pytest.fixture
def there(shared: Standing) -> Iterator[Standing]:
    """The service, which is afterwards as it was before."""
    with shared.unchanged():
        yield shared


# -- texts --------------------------------------------------------------------------------------------------------

LONG = b"words and words " * 20_000  # more than one block of an upload


def archive(kind: str) -> bytes:
    file = io.BytesIO()
    if kind == "zip":
        with zipfile.ZipFile(file, "w") as packed:
            packed.writestr("../../etc/passwd", LONG)
    else:
        with tarfile.open(fileobj=file, mode="w") as packed:
            info = tarfile.TarInfo("../../etc/passwd")
            info.size = len(LONG)
            packed.addfile(info, io.BytesIO(LONG))
    return file.getvalue()


TEXTS: dict[str, tuple[bytes, str, str]] = {
    "nothing": (b"", "too-short", "the text is empty"),
    "1 character": (b"a", "too-short", "the text has 1 bytes; the smallest windows and batches need 100"),
    "99 characters": (b"a" * 99, "too-short", "the text has 99 bytes; the smallest windows and batches need 100"),
    "white space": (b" \n\t" * 1000, "too-short", "the text is empty"),
    "a byte that is none": (b"\xff" + LONG, "not-utf8", "invalid byte at offset 0"),
    "in the second block": (LONG + b"\xff" + LONG, "not-utf8", f"invalid byte at offset {len(LONG)}"),
    "cut in its last character": (LONG + "€".encode()[:2], "not-utf8", f"invalid byte at offset {len(LONG)}"),
    "cut at a block": (b"a" * 262_143 + b"\xe2", "not-utf8", "invalid byte at offset 262143"),
    "broken at a block": (b"a" * 262_143 + b"\xe2(" + LONG, "not-utf8", "invalid byte at offset 262143"),
    "overlong": (LONG + b"\xc0\xae" + LONG, "not-utf8", f"invalid byte at offset {len(LONG)}"),
    "half a surrogate pair": (LONG + b"\xed\xa0\x80", "not-utf8", f"invalid byte at offset {len(LONG)}"),
    "beyond unicode": (LONG + b"\xf5\x80\x80\x80", "not-utf8", f"invalid byte at offset {len(LONG)}"),
    "latin-1": ("Größe ".encode("latin-1") * 100, "not-utf8", "invalid byte at offset 2"),
    "UTF-16 with a mark": ("words ".encode("utf-16") * 100, "not-utf8", "invalid byte at offset 0"),
    "UTF-16 without": ("words ".encode("utf-16-le") * 100, "binary", "NUL byte at offset 1"),
    "UTF-32": ("words ".encode("utf-32-be") * 100, "binary", "NUL byte at offset 0"),
    "NUL at its end": (LONG + b"\0", "binary", f"NUL byte at offset {len(LONG)}"),
    "NUL before a wrong byte": (LONG + b"\0\xff", "binary", f"NUL byte at offset {len(LONG)}"),
    "half of a gzip": (gzip.compress(LONG, mtime=0)[:200], "damaged", "the gzip stream is truncated"),
    "gzip of what is no text": (gzip.compress(LONG + b"\xff", mtime=0), "not-utf8", f"at offset {len(LONG):,}"),
    "zip with a path trick": (archive("zip"), "wrong-format", "zip"),
    "tar with a path trick": (archive("tar"), "binary", "NUL byte at offset 16"),
    "pickle": (pickle.dumps(["words"] * 1000), "not-utf8", "invalid byte at offset 0"),
    "picture": (b"\x89PNG\r\n\x1a\n" + b"\0" * 1000, "not-utf8", "invalid byte at offset 0"),
    "program": (b"\x7fELF\x02\x01\x01" + b"\0" * 1000, "binary", "NUL byte at offset 7"),
}


@pytest.mark.parametrize("case", TEXTS)
@pytest.mark.parametrize("chunked", [False, True], ids=["with a length", "in chunks"])
def test_what_is_no_text_is_refused_with_the_offset_of_its_first_wrong_byte(
    there: Standing, case: str, chunked: bool
) -> None:
    body, code, detail = TEXTS[case]
    content = (body[start : start + 1021] for start in range(0, len(body), 1021)) if chunked else body
    answer = there.service.http.post("/api/v1/datasets", params={"name": "new"}, content=content)
    problem = answer.json()
    assert (answer.status_code, problem["code"]) == (422, code), problem
    assert detail in problem["detail"]
    assert problem["detail"].isprintable()


# -- ids, names and paths -----------------------------------------------------------------------------------------

TRICKS = [
    *(
        "..",
        ".",
        "../",
        "../../../../etc/passwd",
        "..%2f..%2f..%2fetc%2fpasswd",
        "%2e%2e%2f%2e%2e%2f",
        "%2e%2e/%2e%2e/",
    ),
    *("%252e%252e%252f", "%c0%ae%c0%ae%c0%af", "..%c1%9c", "..\\..\\filename", "%5c..%5c", "..%5c..%5cwindows"),
    *("C:/", "C:%2f", "C:%5cWindows", "//etc/passwd", "%2fetc%2fpasswd", "/etc/passwd", "con", "nul.txt", "~"),
    *("%00", "{id}%00", "{id}%00.txt", "{id}%0a", "{id}%0d%0aX-Injected:%20yes", "%09", "{id}%20", "%20{id}"),
    *(
        "{id}/",
        "{id}/..",
        "{id}/%2e%2e/{id}",
        "{id};x",
        "{id}.",
        "{id}'",
        "{id}%27%20OR%201=1%20--",
        "{id}{id}",
        "{ID}",
    ),
    *("*", "-1", "0", "%25s", "%7B%7B7*7%7D%7D", "${jndi:ldap://x}", "a" * 300, "a" * 5000),
    *("http:///#/../../etc/", "file:///etc/passwd", "http://169.254.169.254/"),
    *("%ff%fe", "%ed%a0%80", "%e2%80%a5%2f", "%ef%bc%8e%ef%bc%8e%ef%bc%8f", "%e2%80%ae{id}", "%ef%bc%90190a5c0"),
]


@pytest.mark.parametrize("trick", TRICKS, ids=lambda trick: trick[:40])
def test_a_path_trick_in_place_of_an_id_reaches_nothing(there: Standing, trick: str) -> None:
    """On every route that takes an id or a name, sent to the byte; upper case may not find what lower case does."""
    tried = 0
    for method, route in routes(there.service):
        for parameter in parameters(route):
            own = there.ids[parameter]
            value = trick.replace("{id}", own).replace("{ID}", own.upper())
            target = filled(route, lambda name: value if name == parameter else there.ids[name])  # noqa: B023
            body, headers = body_of(route)
            answer = there.ask(method, target, body, **headers)
            refused(answer)
            assert answer.status in (404, 405, 422), (method, target, answer)
            assert "x-injected" not in answer.headers
            tried += 1
    assert tried > 20


@pytest.mark.parametrize(
    "target",
    [
        *("/assets/..%2f..%2f..%2f..%2fetc/passwd", "/..%2f..%2fsecret.txt", "/%2e%2e/%2e%2e/secret.txt"),
        *("/assets/../../secret.txt", "/assets/..\\..\\secret.txt", "/assets/%00", "//etc/passwd", "/C:/secret.txt"),
    ],
)
def test_a_path_trick_below_the_page_reaches_nothing(there: Standing, target: str) -> None:
    """Where the page is built, an address that it does not know shows its start; never another file."""
    for method in ("GET", "HEAD"):
        answer = there.ask(method, target)
        assert answer.status in (200, 404, 503), answer
        assert "root:" not in str(answer)
        assert SECRET not in str(answer)


def test_an_id_that_nothing_has_is_not_found_on_every_route(there: Standing) -> None:
    tried = 0
    for method, route in routes(there.service):
        if not parameters(route):
            continue
        body, headers = body_of(route)
        answer = there.ask(method, filled(route, lambda name: UNKNOWN_IDS[name]), body, **headers)
        assert answer.status == 404, (method, route.path, answer)
        refused(answer, "not-found")
        tried += 1
    assert tried > 15


@pytest.mark.parametrize(
    "name",
    [
        *("", ".", "..", "../x", "..\\x", "a/b", "C:/x", "A", "é", "a b", "a\0", "a\n", "-a", "_a", ".a", "a" * 65),
        *("\uff41", "\u0430", "python-docs/../x", "http:///#/../../etc/", "a%00", "%2e%2e"),
    ],
    ids=ascii,
)
def test_a_name_that_is_none_names_no_text(there: Standing, name: str) -> None:
    answer = there.service.http.post("/api/v1/datasets", params={"name": name}, content=b"words " * 100)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid-request")
    assert answer.json()["errors"][0]["pointer"] == "?name"
    request = {**TINY, "task": {**TINY["task"], "dataset": name}}
    answer = there.service.http.post("/api/v1/searches", json=request)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid-request")
    assert answer.json()["errors"][0]["pointer"] == "/task/dataset"


@pytest.mark.parametrize(
    "path",
    [
        *("../secret.txt", "/etc/passwd", "searches/../../secret.txt", "searches/{id}/link", "searches/{id}", "", "."),
        *("searches\\..\\..\\secret.txt", "C:/secret.txt", "absent", "http:///#/../../etc/passwd", "a\n"),
    ],
    ids=ascii,
)
def test_a_stored_path_that_was_tampered_with_sends_nothing(there: Standing, path: str) -> None:
    """Even if somebody had brought a bad path into the database."""
    artifact, root = there.ids["artifact_id"], there.service.data_dir
    link = root / "searches" / there.ids["search_id"] / "link"
    link.symlink_to(root.parent / "secret.txt")
    good = f"searches/{there.ids['search_id']}/export.zip"
    try:
        for stored in (path.replace("{id}", there.ids["search_id"]), good):
            with transaction(there.service.engine) as connection:
                connection.execute(
                    update(models.artifacts)
                    .where(models.artifacts.c.id == artifact)
                    .values(path=stored, n_bytes=300 if stored == good else len(SECRET))
                )
            answer = there.ask("GET", f"/api/v1/artifacts/{artifact}")
            if stored != good:
                refused(answer, "artifact-gone")
        assert answer.body == "zip" * 100
    finally:
        link.unlink()


@pytest.mark.parametrize("method", ["TRACE", "CONNECT", "PATCH", "PUT", "BREW", "get", "PROPFIND"])
def test_an_unknown_method_is_refused(there: Standing, method: str) -> None:
    for target in ("/api/v1/searches", f"/api/v1/searches/{there.ids['search_id']}", "/api/v1/datasets", "/readyz"):
        answer = there.ask(method, target)
        refused(answer, "method-not-allowed", "invalid-http")
        assert answer.status in (400, 405)


# -- parameters of a query ----------------------------------------------------------------------------------------

WRONG = {
    "limit": ["0", "-1", "1001", "1e3", "x", "", "9" * 30, "1;2", "NaN"],
    "state": ["done", "", "queued,running", "' OR 1=1 --", "QUEUED"],
    "dataset": ["../x", "", "a\0b", "A" * 100, "é"],
    "trial": ["x", "", "../x", f"{UNKNOWN}\0", UNKNOWN.upper()],
    "first_step": ["-1", "x", str(2**63), "1.5"],
    "last_step": ["-1", "x", str(2**63), "null"],
    "evidence": ["", "2", "x", "null"],
    "stride": ["0", "-1", "x", "1000001"],
    "after": ["-1", "x", str(2**63)],
    "tail": ["-1", "x", "1000001", "1e3"],
    "name": ["", "..", "A"],
    "cursor": ["x" * 401],
    "file": ["x" * 256],
    "format": ["", "xml", "TEXT"],
    "compression": ["", "bzip2"],
    **{name: ["", "x" * 201] for name in ("text", "pair", "label", "words", "labels", "corpus", "part")},
    "ends": ["", "1", "1,2,3", "-1,2", "1e3,2e3"],
    "dtype": ["", "int64"],
    "vocab_size": ["1", "-1", str(2**63), "x"],
    "eos_id": ["-1", str(2**32), "1.5"],
}


def query_params(dependant: Any) -> Iterator[Any]:
    """Of a route and of what it depends on."""
    yield from dependant.query_params
    for each in dependant.dependencies:
        yield from query_params(each)


def test_a_parameter_that_is_out_of_range_is_named(there: Standing) -> None:
    """Every parameter of every route; a new one is added to WRONG."""
    tried = set()
    for method, route in routes(there.service):
        for field in query_params(route.dependant):
            for value in WRONG[field.name]:
                target = filled(route, lambda name: there.ids[name])
                answer = there.service.http.request(method, target, params={field.name: value})
                assert answer.status_code == 422, (target, field.name, value, answer.text)
                assert answer.json()["code"] == "invalid-request"
                assert f"?{field.name}" in [error["pointer"] for error in answer.json()["errors"]]
                assert answer.json()["detail"].isprintable()
            tried.add(field.name)
    assert tried == set(WRONG)


# -- cursors ------------------------------------------------------------------------------------------------------

SHAPES: dict[str, list[Any]] = {
    "list_searches": [UNKNOWN],
    "list_tables": [1.5, "a" * 32],
    "list_reports": [UNKNOWN, 3],
    "list_probabilities": [UNKNOWN, 3],
}
CURSORS = {
    "empty": "",
    "no base64": "!!!!",
    "half base64": "abcde",
    "not ASCII": "é",
    "base64 of nothing JSON": "AAAA",
    "NUL": "\0",
    "a number": cursor(3),
    "an object": cursor({"id": UNKNOWN}),
    "an empty list": cursor([]),
    "null": cursor([None]),
    "true": cursor([True]),
    "deep": cursor(json.loads("[" * 50 + "]" * 50)),
    "a list too long": cursor([UNKNOWN, 3, 4]),
    "SQL for an id": cursor(["'; DROP TABLE searches; --"]),
    "SQL for an id and a step": cursor(["' OR 1=1 --", 3]),
    "SQL for a step": cursor([UNKNOWN, "0; DROP TABLE reports"]),
    "SQL for a table": cursor([1.5, "' UNION SELECT * FROM datasets --"]),
    "NUL in an id": cursor(["\0"]),
    "NUL in an id, and a step": cursor(["\0", 3]),
    "half a pair": cursor(["\ud800", 3]),
    "a path": cursor(["../../etc/passwd"]),
    "negative step": cursor([UNKNOWN, -1]),
    "huge step": cursor([UNKNOWN, 2**63]),
    "fraction of a step": cursor([UNKNOWN, 1.5]),
    "negative time": cursor([-1.5, "a" * 32]),
    "NaN": cursor([float("nan"), "a" * 32]),
    "infinite": cursor([float("inf"), "a" * 32]),
    "more behind it": cursor([UNKNOWN]) + "=",
    "spaces in it": cursor([UNKNOWN])[:8] + " " + cursor([UNKNOWN])[8:],
    **{f"of {name}": paging.encode(shape) for name, shape in SHAPES.items()},
}


@pytest.mark.parametrize("case", CURSORS)
def test_a_cursor_made_by_hand_is_refused(there: Standing, case: str) -> None:
    tried = 0
    for method, route in routes(there.service):
        if "cursor" not in [field.name for field in route.dependant.query_params]:
            continue
        tried += 1
        target = filled(route, lambda name: there.ids[name])
        answer = there.service.http.request(method, target, params={"cursor": CURSORS[case]})
        if CURSORS[case] == paging.encode(SHAPES[route.name]):  # its own, or one that cannot be told from its own
            assert answer.status_code == 200
            continue
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid-cursor"), (route.name, answer.text)
        assert answer.json()["detail"].isprintable()
    assert tried == len(SHAPES)


# -- JSON ---------------------------------------------------------------------------------------------------------

JSON = json.dumps(TINY)
TEXTS_OF_JSON: dict[str, bytes] = {
    "nothing": b"",
    "white space": b" \n",
    "cut off": JSON[:-1].encode(),
    "cut in a string": b'{"name": "x',
    "too many brackets": JSON.encode() + b"}",
    "two values": b"{}{}",
    "trailing comma": b'{"name": "x",}',
    "trailing comma in a list": b'{"ranges": [1,]}',
    "single quotes": b"{'name': 'x'}",
    "a comment": b'{"name": "x" /* why */}',
    "a name without quotes": b'{name: "x"}',
    "a literal of Python": b'{"name": None}',
    "a list": b"[1]",
    "a string": b'"x"',
    "null": b"null",
    "a number": b"3",
    "a name twice": b'{"name": "a", "name": "b"}',
    "a name twice, further down": b'{"task": {"dataset": "a", "dataset": "b"}}',
    "NaN": b'{"method": {"lr": NaN}}',
    "infinity": b'{"method": {"lr": -Infinity}}',
    "a number beyond double": b'{"method": {"lr": 1e999}}',
    "an integer beyond 64 bits": b'{"method": {"n_steps": 18446744073709551616}}',
    "an integer of 100,000 digits": b'{"method": {"n_steps": ' + b"9" * 100_000 + b"}}",
    "a number with a leading zero": b'{"method": {"n_steps": 012}}',
    "a hexadecimal number": b'{"method": {"n_steps": 0x10}}',
    "33 levels": b'{"a": ' * 33 + b"1" + b"}" * 33,
    "100,000 levels": b"[" * 100_000 + b"]" * 100_000,
    "100,000 open objects": b'{"a":' * 100_000,
    "20,001 values": b'{"a": [' + b",".join([b"1"] * 20_001) + b"]}",
    "a byte order mark": b"\xef\xbb\xbf" + JSON.encode(),
    "UTF-16": JSON.encode("utf-16"),
    "UTF-16 without a mark": JSON.encode("utf-16-le"),
    "UTF-32": JSON.encode("utf-32"),
    "latin-1": b'{"name": "Gr\xf6\xdfe"}',
    "overlong": b'{"name": "\xc0\xae"}',
    "half a surrogate pair": b'{"name": "\\ud800"}',
    "half a pair for a name": b'{"\\udfff": 1}',
    "a control character": b'{"name": "a\x01"}',
    "a line break in a string": b'{"name": "a\nb"}',
    "NUL": b'{"name": "x"}\0',
    "a form": b"name=x&task=y",
    "XML": b'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]><x>&e;</x>',
    "YAML": b"!!python/object/apply:os.system ['id']",
    "a pickle": pickle.dumps({"name": "x"}),
}


@pytest.mark.parametrize("case", TEXTS_OF_JSON)
def test_what_is_not_strict_json_is_refused_on_every_route_that_takes_json(there: Standing, case: str) -> None:
    tried = 0
    for method, route in routes(there.service):
        if route.body_field is None:
            continue
        tried += 1
        target = filled(route, lambda name: there.ids[name])
        answer = there.ask(method, target, TEXTS_OF_JSON[case], Content_Type="application/json")
        if (method, target) == SIGN_IN and len(TEXTS_OF_JSON[case]) > MAX_BODY_SIZE:
            refused(answer, "body-too-large")
            continue
        assert answer.status == 400, (target, answer)
        refused(answer, "invalid-json")
    assert tried >= 4


@pytest.mark.parametrize(
    "media_type",
    ["text/plain", "", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/json", "x"],
)
def test_json_under_another_name_is_refused(there: Standing, media_type: str) -> None:
    """A form of another site can send these without asking the browser's leave."""
    for method, route in routes(there.service):
        if route.body_field is not None:
            target = filled(route, lambda name: there.ids[name])
            answer = there.ask(method, target, body_of(route)[0], Content_Type=media_type)
            refused(answer, "unsupported-media-type")


def pointers(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a JSON value."""
    yield path
    below = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in below:
        yield from pointers(each, (*path, key))


VALUES: dict[str, Any] = {
    "null": None,
    "true": True,
    "-1": -1,
    "0": 0,
    "2^31": 2**31,
    "2^63 - 1": 2**63 - 1,
    "2^64 - 1": 2**64 - 1,
    "1e308": 1e308,
    "tiny": 5e-324,
    "-0.0": -0.0,
    "empty text": "",
    "NUL": "\0",
    "NUL in a name": "a\0b",
    "line break": "a\nb",
    "order to a terminal": "\x1b[31m",
    "C1 order": "\x9b31m",
    "right to left": "\u202eabc",
    "emoji": "😀" * 200,
    "long": "x" * 100_000,
    "path": "../../etc/passwd",
    "address": "http://169.254.169.254/latest/meta-data",
    "template": "{{7*7}}${7*7}%s%n",
    "SQL": "'; DROP TABLE searches; --",
    "class path": "os:system",
    "empty list": [],
    "empty object": {},
    "list of lists": [[[[]]]],
    "object": {"__class__": "x", "label": "attention"},
    "1,000 values": list(range(1000)),
}


@pytest.mark.parametrize("case", VALUES)
def test_any_value_anywhere_in_a_request_is_taken_or_refused_with_its_place(shared: Standing, case: str) -> None:
    """A request whose every field is replaced in turn: 201 or 422, and whatever is taken is read and removed again."""
    whole = SearchRequest.model_validate(TINY).model_dump(mode="json")
    http = shared.service.http
    with shared.unchanged():
        for place in list(pointers(whole))[1:]:
            request = copy.deepcopy(whole)
            target = request
            for key in place[:-1]:
                target = target[key]
            target[place[-1]] = VALUES[case]
            answer = http.post("/api/v1/searches", json=request)
            assert answer.status_code in (201, 422), (place, answer.text)
            estimated = http.post("/api/v1/searches:estimate", json=request)
            assert (estimated.status_code == 200) == (answer.status_code == 201), (place, estimated.text)
            if answer.status_code == 422:
                assert answer.json()["detail"].isprintable(), answer.text
                assert len(answer.json()["detail"]) < 400, answer.text
                continue
            one = f"/api/v1/searches/{answer.json()['id']}"
            assert http.get(one).json()["request"] == answer.json()["request"]
            assert http.get("/api/v1/searches").status_code == 200
            assert http.post(f"{one}/cancel").status_code == 200
            assert http.delete(one).status_code == 204
