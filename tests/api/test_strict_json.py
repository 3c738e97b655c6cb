from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.strict_json import MAX_DEPTH, MAX_VALUES, InvalidJson, parse

_plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(_plain)
def test_every_json_value_is_read_as_it_is(value: Any) -> None:
    assert parse(json.dumps(value).encode()) == value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"NaN", "NaN is not JSON; numbers must be finite"),
        (b'{"a": [-Infinity]}', "-Infinity is not JSON; numbers must be finite"),
        (b"-1e400", "number -1e400 is out of range; numbers must be finite"),
        (b"1" * 5000, "integer 111111111111111111111111 is out of range; at most 64 bits"),
        (b"18446744073709551616", "integer 18446744073709551616 is out of range; at most 64 bits"),
        (b'{"a": {"b": 1, "c": 2, "b": 3}}', "name 'b' stands twice in one object"),
        (b"\xff", "not UTF-8 at byte 0"),
        (b'{"a": "\\ud800"}', "a string holds half of a surrogate pair"),
        (b'{"\\ud800": 1}', "a string holds half of a surrogate pair"),
        (b"[1,", "not JSON: expecting value at line 1 column 4"),
        (b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1), "nested deeper than 32 levels"),
        (b'{"a":' * 100_000, "nested deeper than 32 levels"),
        (b"[" + b"1," * MAX_VALUES + b"1]", "more than 20000 names and values"),
        # In time that grows with the length: with its square, this one would take minutes.
        (
            b"{" + b",".join(b'"%d":1' % n for n in [*range(150_000), 149_999]) + b"}",
            "name '149999' stands twice in one object",
        ),
    ],
    ids=[
        "nan",
        "infinity",
        "overflow",
        "long",
        "65 bits",
        "twice",
        "bytes",
        "surrogate",
        "name",
        "cut off",
        "deep",
        "deeper",
        "many",
        "twice of many",
    ],
)
def test_anything_else_is_refused_in_one_line(text: bytes, message: str) -> None:
    with pytest.raises(InvalidJson) as caught:
        parse(text)
    assert str(caught.value) == message


def test_the_deepest_allowed_text_is_read() -> None:
    assert parse(b"[" * MAX_DEPTH + b"]" * MAX_DEPTH)
