"""Dataclasses with msgspec and without it."""

from __future__ import annotations

import copy
import dataclasses
import json
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import pytest

from tests.lab.imports import modules_of
from translate.dataclass import asdict, dataclass, field, fields, replace, values_by_field

ROOT = Path(__file__).resolve().parents[3]

DESCRIBE = """
import dataclasses, importlib, inspect, json, sys
if "without" in sys.argv:
    sys.modules["msgspec"] = None

def text(value):
    return getattr(value, "__qualname__", None) or type(value).__qualname__

def described_field(one):
    default = one.default if one.default_factory is dataclasses.MISSING else one.default_factory
    return one.name, one.type, one.kw_only, one.compare, one.repr, text(default)

described = {}
for name in json.load(sys.stdin):
    module = importlib.import_module(name)
    for cls in vars(module).values():
        if inspect.isclass(cls) and cls.__module__ == name and dataclasses.is_dataclass(cls):
            described[f"{name}.{cls.__qualname__}"] = {
                "positional": list(cls.__match_args__),
                "fields": list(map(described_field, dataclasses.fields(cls))),
                "compared": config.eq if (config := getattr(cls, "__struct_config__", None))
                else cls.__eq__ is not object.__eq__,
                "ordered": config.order if config else cls.__lt__ is not object.__lt__,
                "frozen": config.frozen if config else cls.__setattr__ is not object.__setattr__,
                "struct": config is not None,
            }
json.dump(described, sys.stdout)
"""


@dataclass(frozen=True, slots=True, order=True)
class Point:
    """A record with a default."""

    x: int
    y: int = 0
    unit: ClassVar[str] = "m"

    def moved(self) -> Point:
        return replace(self, x=self.x + 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Named(Point):
    """A record with the fields of another."""

    name: str = ""
    parts: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Counter:
    """A record that changes."""

    count: int = 0
    names: dict[str, int] = field(default_factory=dict)

    class Inner:
        pass

    @dataclass(slots=True)
    class Nested:
        value: int


@dataclass(frozen=True, slots=True)
class Other:
    """A record with the fields of Point."""

    x: int
    y: int = 0


@dataclass(slots=True, eq=False)
class Node:
    """A record that equals itself alone."""

    value: int


@dataclass(frozen=True, slots=True)
class Checked:
    """A record that checks its fields."""

    value: int

    def __post_init__(self) -> None:
        if self.value < 0:
            raise ValueError("negative")


@dataclass(frozen=True, slots=True)
class Hidden:
    """A record with a field that is not compared."""

    value: int
    cache: dict[str, int] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Located(Hidden):
    """A record of several fields with another that is not compared."""

    name: str = ""
    line: int = field(default=0, compare=False)


@dataclass(slots=True)
class Memo:
    """A record that changes, with a field that is not compared."""

    value: int
    uses: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True, order=True)
class Ranked:
    """A record that is ordered by some of its fields."""

    rank: int
    name: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Partly:
    """A record with one field that has to be named."""

    value: int
    unit: str = field(default="", kw_only=True)


class NotOurs:
    """A base whose objects have a __dict__."""


@dataclass(frozen=True, slots=True)
class OfAnother(NotOurs):
    """A record with such a base."""

    value: int


@pytest.mark.parametrize("cls", [Point, Named, Counter, Counter.Nested, Other, Node, Hidden, Located, Memo])
def test_dataclasses_with_slots_are_structs(cls: type) -> None:
    assert issubclass(cls, msgspec.Struct)
    assert dataclasses.is_dataclass(cls)


@pytest.mark.parametrize("cls", [Checked, OfAnother, Ranked, Partly])
def test_what_structs_do_not_have_stays_a_dataclass(cls: type) -> None:
    assert not issubclass(cls, msgspec.Struct)
    assert dataclasses.is_dataclass(cls)


def test_a_dataclass_without_slots_stays_one() -> None:
    @dataclass(frozen=True)
    class Plain:
        value: int

    assert Plain(1).__dict__ == {"value": 1}


def test_a_class_that_extends_a_struct_cannot_stay_a_dataclass() -> None:
    with pytest.raises(TypeError, match="Positive extends a struct, but needs what structs do not have"):

        @dataclass(frozen=True, slots=True)
        class Positive(Point):
            def __post_init__(self) -> None: ...


def test_checks_are_made() -> None:
    with pytest.raises(ValueError, match="negative"):
        Checked(-1)


def test_objects_are_made_as_those_of_a_dataclass() -> None:
    assert (Point(1).x, Point(1).y, Point(y=2, x=1).y) == (1, 0, 2)
    assert Named(1, name="a").parts == []
    assert Named(1, name="a").parts is not Named(1, name="a").parts
    assert (Named(1, 2, name="a").y, Point.unit) == (2, "m")
    point: Any = Point
    named: Any = Named
    for wrong in (lambda: point(), lambda: point(1, 2, 3), lambda: point(1, z=2), lambda: named(1, 2, "a")):
        with pytest.raises(TypeError):
            wrong()


def test_frozen_records_cannot_be_changed() -> None:
    for unchangeable, name in ((Point(1), "x"), (Counter(), "missing")):
        with pytest.raises(AttributeError):
            setattr(unchangeable, name, 1)
    counter = Counter()
    counter.count += 1
    assert counter == Counter(1)


def test_equality_order_hash_and_text() -> None:
    assert Point(1, 2) == Point(1, 2) != Point(2, 1)
    other: object = Other(1)
    assert Point(1) != other
    assert Point(1, 2) < Point(2, 1)
    assert sorted([Point(2), Point(1)]) == [Point(1), Point(2)]
    assert len({Point(1), Point(1), Point(2)}) == 2
    assert repr(Point(1)) == "Point(x=1, y=0)"
    assert (Node(1) == Node(1), len({Node(1), Node(1)})) == (False, 2)
    with pytest.raises(TypeError):
        hash(Counter())


def test_fields_that_are_not_compared_or_not_shown() -> None:
    one, same = Hidden(1, {"a": 1}), Hidden(1)
    other: object = Other(1)
    assert (one == same, one != same, hash(one) == hash(same)) == (True, False, True)
    assert (one == Hidden(2), one != Hidden(2), one != other, one == other) == (False, True, True, False)
    assert repr(one) == "Hidden(value=1)"
    here = Located(1, name="a", line=3)
    assert (here == Located(1, {"b": 2}, "a", 4), here != Located(1, {}, "b", 3)) == (True, True)
    assert (len({here, Located(1, name="a"), Located(2)}), here == one) == (2, False)
    assert repr(here) == "Located(value=1, name='a', line=3)"
    for made in (one, here):
        assert (copy.copy(made), pickle.loads(pickle.dumps(made)), replace(made)) == (made, made, made)
    assert Memo(1, 2) == Memo(1) != Memo(2)
    with pytest.raises(TypeError):
        hash(Memo(1))
    flags = {f.name: (f.compare, f.repr) for f in fields(Located)}
    assert flags == {
        "value": (True, True),
        "cache": (False, False),
        "name": (True, True),
        "line": (False, True),
    }


def test_copies() -> None:
    named = Named(1, name="a", parts=[1])
    wrong: dict[str, Any] = {"z": 5}
    assert pickle.loads(pickle.dumps(named)) == named
    assert pickle.loads(pickle.dumps(Counter.Nested(1))) == Counter.Nested(1)
    assert copy.deepcopy(named).parts is not named.parts
    assert replace(named, x=5) == Named(5, name="a", parts=[1])
    assert dataclasses.replace(named, x=5) == replace(named, x=5)
    assert replace(Hidden(1), value=2) == Hidden(2)
    assert Point(1).moved() == Point(2)
    with pytest.raises(TypeError):
        replace(named, **wrong)
    assert asdict(Counter(1, {"a": 1})) == {"count": 1, "names": {"a": 1}}
    assert values_by_field(named)["parts"] is named.parts
    assert values_by_field(Hidden(1)) == {"value": 1, "cache": {}}
    assert [one.name for one in fields(named)] == ["x", "y", "name", "parts"]
    assert [one.name for one in fields(Point)] == ["x", "y"]


COPIES_WITHOUT_MSGSPEC = """
import functools, sys
sys.modules["msgspec"] = None
from translate.dataclass import dataclass, field, replace, values_by_field

@dataclass(frozen=True, slots=True, kw_only=True)
class Plain:
    value: int
    cache: list = field(default_factory=list, compare=False)

@dataclass(frozen=True)
class Checked:
    value: int
    def __post_init__(self):
        if self.value < 0:
            raise ValueError("negative")

@dataclass(frozen=True)
class Cached:
    value: int
    @functools.cached_property
    def double(self):
        return 2 * self.value

@dataclass(frozen=True)
class Own:
    value: int
    seen: list = field(init=False, default_factory=list)

def error(function):
    try:
        function()
    except (AttributeError, TypeError, ValueError) as e:
        return type(e)

plain = Plain(value=1)
copy = replace(plain, value=2)
assert copy == Plain(value=2) != plain and copy.cache is plain.cache and type(copy) is Plain
assert issubclass(error(lambda: setattr(copy, "value", 3)), AttributeError)
assert error(lambda: replace(plain, z=5)) is TypeError
assert replace(Checked(1), value=2) == Checked(2)
assert error(lambda: replace(Checked(1), value=-1)) is ValueError
cached = Cached(1)
assert (cached.double, replace(cached, value=2).double) == (2, 4)
own = Own(1)
assert replace(own, value=2).seen is not own.seen
assert values_by_field(copy) == {"value": 2, "cache": plain.cache}
print("as copies are")
"""


def test_copies_without_msgspec() -> None:
    run = subprocess.run(
        [sys.executable, "-c", COPIES_WITHOUT_MSGSPEC], cwd=ROOT, capture_output=True, text=True
    )
    assert run.stdout == "as copies are\n", run.stderr


def test_patterns() -> None:
    match Point(1, 2):
        case Point(x, y):
            assert (x, y) == (1, 2)
    match Named(1, name="a"):
        case Named(x, name=name):
            assert (x, name) == (1, "a")


def _described(how: str) -> dict[str, dict[str, object]]:
    names = sorted(
        name.removesuffix(".__init__")
        for name in modules_of(ROOT, ("translate", "backends", "harness", "nfparity"))
        if not name.endswith("__main__")
    )
    run = subprocess.run(
        [sys.executable, "-c", DESCRIBE, how],
        cwd=ROOT,
        input=json.dumps(names),
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def test_every_dataclass_of_the_product_is_the_same_without_msgspec() -> None:
    """Constructor, patterns, fields, equality and order."""
    expected, described = _described("without"), _described("with")
    assert len(expected) > 500
    assert not [name for name, cls in expected.items() if cls.pop("struct")]
    structs = [name for name, cls in described.items() if cls.pop("struct")]
    assert len(structs) > len(expected) * 0.8
    assert described == expected


RULES = "rulesets/aws-vpc-cni/rules.iptables-save"
NODE = "rulesets/aws-vpc-cni/node.json"
FLOWS = "cases/aws-vpc-cni/flows.jsonl"
COMMANDS = (
    (0, f"translate {RULES} --to nft"),
    (0, f"translate {RULES} --to bpf -O1"),
    (0, f"translate {RULES} --to ir"),
    (0, f"corpus generate {RULES} --node {NODE}"),
    (0, f"simulate {RULES} --node {NODE} --corpus {FLOWS}"),
    (2, f"translate {FLOWS} --to nft"),
)
PLAIN = "import sys; sys.modules['msgspec'] = None; from nfparity.cli import main; sys.exit(main())"


@pytest.mark.parametrize(("status", "command"), COMMANDS, ids=[command for _, command in COMMANDS])
def test_commands_print_the_same_without_msgspec(status: int, command: str) -> None:
    usual, plain = [
        subprocess.run(
            [sys.executable, *how, *command.split()],
            cwd=ROOT / "tests/corpus",
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
        )
        for how in (["-m", "nfparity"], ["-c", PLAIN])
    ]
    assert usual.returncode == status, usual.stderr
    assert (plain.returncode, plain.stdout, plain.stderr) == (status, usual.stdout, usual.stderr)
