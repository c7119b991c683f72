"""JSON is read as Python reads it, but for what no other program takes, and every value has its place."""

from __future__ import annotations

import json
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from translate.errors import ParseError
from translate.jsoninput import DEEPEST, read_json

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
)


def place(text: str | bytes, **options: object) -> str:
    with pytest.raises(ParseError) as caught:
        read_json(text, name="f", **options)  # type: ignore[arg-type]
    (found,) = caught.value.diagnostics
    return f"{found.origin}: {found.message}"


def paths(value: object, path: tuple[str | int, ...] = ()) -> list[tuple[tuple[str | int, ...], object]]:
    children = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    return [(path, value), *(found for key, child in children for found in paths(child, (*path, key)))]


@given(VALUES, st.sampled_from([None, 0, 1, 2]), st.booleans())
def test_every_value_is_found_where_it_stands(value: object, indent: int | None, ascii_only: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    document = read_json(text, name="f")
    assert document.value == value
    lines = text.split("\n")
    for path, inner in paths(value):
        origin = document.origin(path)
        assert origin.text == lines[origin.line - 1]
        rest = "\n".join((origin.text[origin.column - 1 :], *lines[origin.line :]))
        found, _ = json.JSONDecoder().raw_decode(rest)
        assert found == (path[-1] if path and isinstance(path[-1], str) else inner)


@given(st.binary(max_size=60) | st.text('{}[]",:\\u0d8e1+-.N \n', max_size=40).map(str.encode))
def test_whatever_comes_is_a_value_or_a_place(data: bytes) -> None:
    try:
        document = read_json(data, name="f")
    except ParseError as e:
        (found,) = e.diagnostics
        assert found.origin.line >= 1
        assert found.origin.column >= 1
    else:
        assert document.value == json.loads(data)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "f:1:1: not JSON: expecting value"),
        ('{\n "a": }', "f:2:7: not JSON: expecting value"),
        ('{"a": 1} x', "f:1:10: not JSON: extra data"),
        ('{"a": 1,\n "b": {"c": 2, "c": 3}}', "f:2:16: key 'c' is given twice"),
        ('{"a": [1, NaN]}', "f:1:11: NaN is not a JSON number"),
        ('{"a": -Infinity}', "f:1:7: -Infinity is not a JSON number"),
        ("[1,\n1e999]", "f:2:1: 1e999 is too large a number"),
        ('["a",\n ' + "1" * 5000 + "]", "f:2:2: a number of 5000 characters; at most 100 are allowed"),
        ('["a", ' + "1" * 101 + "]", "f:1:7: a number of 101 characters; at most 100 are allowed"),
        ('["\\ud83d\\ude00", "\\ud83d"]', "f:1:18: a string that holds half a character"),
        ('{"\\udcff": 1}', "f:1:2: a string that holds half a character"),
        ("[" * (DEEPEST + 1) + "]" * (DEEPEST + 1), f"f:1:{DEEPEST + 1}: more than {DEEPEST} levels"),
        ('{"a":' * 100_000, f"f:1:{5 * DEEPEST + 1}: more than {DEEPEST} levels"),
        ("[" * (DEEPEST + 1) + "x", f"f:1:{DEEPEST + 1}: more than {DEEPEST} levels"),
        ("[" * 100_000, f"f:1:{DEEPEST + 1}: more than {DEEPEST} levels"),
        (b'{\n"\xc3\xa4": "\xfc"}', "f:2:7: not UTF-8 text: byte 0xfc"),
        (b"\xff{}", "f:1:1: not UTF-8 text: byte 0xff"),
    ],
    ids=range(17),
)
def test_what_is_wrong_has_its_place(text: str | bytes, said: str) -> None:
    assert place(text).startswith(said)


def test_what_is_allowed_to_the_limit() -> None:
    deep = "[" * DEEPEST + "]" * DEEPEST
    assert json.dumps(read_json(deep, name="f").value) == deep
    assert read_json("1" * 100, name="f").value == int("1" * 100)
    assert read_json('["' + "[" * 500 + "1" * 500 + '\\\\ud800"]', name="f").value
    assert read_json(b"\xef\xbb\xbf {}", name="f").value == {}
    assert read_json(r'"\udcff"', name="f", bytes_as_text=True).value == "\udcff"
    assert place(r'"\ud8ff"', bytes_as_text=True).startswith("f:1:1: a string that holds half")


def test_it_begins_on_another_line() -> None:
    assert place("[1,\n2", line=7).startswith("f:8:2: not JSON")
    assert str(read_json("[1,\n2]", name="f", line=7).origin((1,))) == "f:8:1"


def test_what_is_not_there_has_the_place_of_what_is_around_it() -> None:
    document = read_json('{"a": [{"b": 1}]}', name="f")
    assert document.origin(("a", 0, "c", 5)).column == 8
    assert document.origin(("x",)).column == 1


def test_little_room_on_the_stack_is_no_fault_of_the_text() -> None:
    def at_depth(depth: int) -> object:
        return at_depth(depth - 1) if depth else read_json("[[1]]", name="f").value

    assert at_depth(sys.getrecursionlimit() // 2) == [[1]]
