"""Typed values out of objects, and the shapes of what other programs print."""

from __future__ import annotations

import json

import pytest

from translate.errors import ParseError
from translate.jsoninput import (
    NUMBER,
    TEXT,
    Fields,
    Items,
    JsonObject,
    Problems,
    json_lines,
    one_or_more,
    read_json,
    read_object,
)


def reader(text: str, problems: Problems | None = None) -> JsonObject:
    return read_object(text, name="f", problems=problems or Problems())


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ('"0x' + "f" * 5000 + '"', "a: expected a number, found the string '0xfff"),
        ('"' + "9" * 5000 + '"', "a: expected a number, found the string '999"),
        ('"0x10000"', "a: 0x10000 is not in 0-65535"),
        ('" 12 "', "a: expected a number"),
        ('"1_2"', "a: expected a number"),
        ('"\\u0661"', "a: expected a number"),
        ("1.5", "a: expected a whole number, found the number 1.5"),
    ],
    ids=range(7),
)
def test_numbers_that_are_none(value: str, said: str) -> None:
    problems = Problems()
    obj = reader(f'{{"a": {value}}}', problems)
    assert obj.integer("a", 7, low=0, high=65535) == 7
    (found,) = problems.diagnostics
    assert found.message.startswith(said)
    assert len(found.message) < 120


def test_numbers_that_are_some() -> None:
    obj = reader('{"a": "0xFF", "b": "-1", "c": 3}')
    assert [obj.integer(k, None, low=-5, high=255) for k in "abcd"] == [255, -1, 3, None]


def test_problems_have_the_place_of_their_values() -> None:
    problems = Problems()
    obj = reader('{"a": {"b": ["x", 1]},\n "c": 5}', problems)
    inner = obj.object("a")
    assert inner is not None
    inner.problem("b", "no", index=1)
    obj.text("c", "")
    obj.problem("missing", "not there")
    obj.finish()
    assert [(str(d.origin), d.message.partition(",")[0]) for d in problems.diagnostics] == [
        ("f:1:19", "a.b[1]: no"),
        ("f:2:2", "c: expected a string"),
        ("f:1:1", "missing: not there"),
    ]
    assert not obj.ok


def test_beyond_the_limit_problems_are_counted() -> None:
    problems = Problems(limit=3)
    for obj in json_lines(b'{"a": 1}\n' * 10, name="f", problems=problems):
        obj.text("a", "")
    with pytest.raises(ParseError) as caught:
        problems.raise_if_any()
    assert [d.message for d in caught.value.diagnostics][-1] == "and 7 more problems"
    assert len(caught.value.diagnostics) == 4


def test_lines_that_are_no_objects_do_not_end_the_reading() -> None:
    problems = Problems()
    found = list(
        json_lines(b'\xef\xbb\xbf{"a": 1}\n\n[]\n{\n{"b": 2}\r\n\xff\n', name="f", problems=problems)
    )
    assert [(one.data, one.place) for one in found] == [({"a": 1}, "f:1"), ({"b": 2}, "f:5")]
    assert [str(d.origin) for d in problems.diagnostics] == ["f:3:1", "f:4:2", "f:6:1"]


SHAPE = Fields(
    required={"name": TEXT, "ports": Items(Fields(required={"port": NUMBER}))},
    optional={"flags": one_or_more(TEXT)},
)


@pytest.mark.parametrize(
    ("value", "faults"),
    [
        ({"name": "a", "ports": [{"port": 1, "more": []}], "flags": ["x"]}, []),
        ({"name": "a", "ports": [], "flags": None}, []),
        ([], [((), "expected an object, found a list")]),
        ({"name": 5}, [(("name",), "expected a string, found the number 5"), ((), "ports is missing")]),
        ({"name": "", "ports": [{"port": True}]}, [(("ports", 0, "port"), "expected a whole number")]),
        ({"name": "", "ports": [7]}, [(("ports", 0), "expected an object, found the number 7")]),
        ({"name": "", "ports": [], "flags": [1]}, [(("flags",), "expected a string, or a list of them")]),
    ],
)
def test_shapes(value: object, faults: list[tuple[tuple[str | int, ...], str]]) -> None:
    found = list(SHAPE.faults(read_json(json.dumps(value), name="f").value))
    assert [path for path, _ in found] == [path for path, _ in faults]
    assert all(said.startswith(expected) for (_, said), (_, expected) in zip(found, faults, strict=True))
