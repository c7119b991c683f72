"""Copies of a chain, each specialised for the packets of one lookup key.

A :class:`Copy` leaves out the tests that hold for every packet with the key, and the statements that no such
packet passes. The chains that it calls are copied in the same way. Every statement is split into its
*outline*, which is the same in copies of equal shape, and its *rows*, the constants in which they may differ.
``template`` makes one chain of the copies that have the same shape at the same place.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2s
from itertools import product
from math import prod
from typing import Final

from translate.dataclass import dataclass, field, replace
from translate.ir import (
    Action,
    AnyOf,
    Apply,
    Branch,
    BytecodeTest,
    CgroupTest,
    Choose,
    Dnat,
    Family,
    Field,
    FieldTest,
    Goto,
    HeaderOptions,
    Interval,
    Jump,
    Lookup,
    LoweredChain,
    NatPorts,
    Origin,
    Random,
    Recent,
    RecentMode,
    SetTest,
    Statement,
    Test,
    Value,
    WordTest,
)
from translate.passes.calls import callee
from translate.passes.control import plain
from translate.passes.facts import Facts, implied, impossible, refine
from translate.passes.lookup import KEY_FIELDS
from translate.passes.structural_sharing import is_same

__all__ = ["Copier", "Copy", "CopyError", "Row", "StatementPart", "renamed"]

HOLES: Final = frozenset({Field.SADDR, Field.DADDR, Field.L4PROTO, Field.SPORT, Field.DPORT})
"""Fields whose constants may differ between copies: fields in which the keys of a lookup can differ."""

_MOST_ROWS: Final = 64
"""The greatest number of rows for one rule with several lists of values."""

_DEEPEST: Final = 16
"""The greatest depth of calls that are copied; deeper chains are called unchanged."""

_Outline = tuple[object, ...]


class CopyError(Exception):
    """A chain that must not be copied, or too many copies."""


@dataclass(frozen=True, slots=True)
class Row:
    """The constants of one statement, and its actions for packets with these constants."""

    key: tuple[Value, ...]
    actions: tuple[Action, ...]
    origin: Origin


@dataclass(frozen=True, slots=True)
class StatementPart:
    """A statement, split into outline and rows.

    ``statement`` is the specialised statement; ``tests`` and ``fields`` are common to its ``rows``. A draw
    has no rows.
    """

    outline: _Outline
    statement: Statement
    tests: tuple[Test, ...] = ()
    fields: tuple[Field, ...] = ()
    rows: tuple[Row, ...] = ()


@dataclass(slots=True)
class Copy:
    """A chain for the packets of one key. ``callees`` are the copies that it calls, by original name.

    Copies have the same ``shape`` if they and the chains that they call differ only in constants.
    """

    chain: LoweredChain
    parts: list[StatementPart]
    callees: dict[str, Copy]
    shape: str = ""

    def places(self, place: tuple[int, ...] = ()) -> Iterable[tuple[tuple[int, ...], Copy]]:
        """Yield this copy and all below it, each with its path: the indices of callees that have siblings."""
        yield place, self
        for index, below in enumerate(self.callees.values()):
            yield from below.places(place if len(self.callees) == 1 else (*place, index))


@dataclass(slots=True)
class Copier:
    """Makes the copies for one dispatcher.

    ``as_they_are`` are the chains to call without copying, and ``key`` the dispatcher's fields. ``list_name``
    returns the common list for a list of ``-m recent``, given its number in its tree. ``budget`` is the
    number of statements that may still be copied.
    """

    chains: Mapping[str, LoweredChain]
    family: Family
    key: tuple[Field, ...]
    as_they_are: Collection[str]
    list_name: Callable[[str, int], str]
    budget: int
    shapes: dict[_Outline, str] = field(default_factory=dict)
    _taken: set[str] = field(default_factory=set)

    def copy(self, root: str, facts: Facts) -> tuple[Copy, tuple[str, ...]]:
        """Return the copy of ``root`` for packets of which ``facts`` are true, and the lists that it names.

        Raises CopyError for a chain that must not be copied, or if the budget is used up.
        """
        lists: dict[str, int] = {}
        return self._copy(self.chains[root], facts, lists, 0), tuple(lists)

    def _copy(self, chain: LoweredChain, facts: Facts, lists: dict[str, int], depth: int) -> Copy:
        self.budget -= len(chain.statements)
        if self.budget < 0:
            raise CopyError("too many copies")
        calls = _Calls(chain, self.as_they_are, deep=depth >= _DEEPEST)
        parts: list[StatementPart] = []
        for statement in chain.statements:
            specialised = self._left(statement, facts, lists)
            if specialised is not None:
                parts += _parts(specialised, calls)
        callees = {
            name: self._copy(calls.inner.get(name) or self.chains[name], facts, lists, depth + 1)
            for name in calls.names
        }
        copied = Copy(chain, parts, callees)
        outline = (
            chain.table,
            tuple(part.outline for part in parts),
            tuple(callee.shape for callee in callees.values()),
        )
        copied.shape = self._shape(outline)
        return copied

    def _shape(self, outline: _Outline) -> str:
        shape = self.shapes.get(outline)
        if shape is None:
            shape = blake2s(repr(outline).encode(), digest_size=5).hexdigest()
            while shape in self._taken:
                shape += "x"
            self._taken.add(shape)
            self.shapes[outline] = shape
        return shape

    # Tests whose result follows from the key.

    def _left(self, statement: Statement, facts: Facts, lists: dict[str, int]) -> Statement | None:
        """Return the statement without the tests that ``facts`` decide, or None if no packet passes it."""
        tests: list[Test] = []
        for test in statement.tests:
            match test:
                case FieldTest():
                    if test.field in facts:
                        if implied(test, facts, self.family):
                            continue
                        if impossible(refine(facts, (test,), self.family)):
                            if any(isinstance(t, Recent) for t in tests):
                                raise CopyError("a test with state before one that never holds")
                            return None
                    tests.append(test)
                case SetTest(filled=True):
                    raise CopyError("a set that rules change")
                case AnyOf() | SetTest() | CgroupTest() | Random():
                    tests.append(test)
                case WordTest() | HeaderOptions() | BytecodeTest():
                    tests.append(test)
                case Recent():
                    index = lists.setdefault(test.name, len(lists))
                    tests.append(replace(test, name=self.list_name(test.name, index), key=self.key))
                case _:
                    raise CopyError("a test with state of its own")
        if isinstance(statement, Lookup):
            return self._specialised_lookup(statement, tuple(tests), facts)
        if is_same(tests, statement.tests):
            return statement
        if isinstance(statement, Apply):
            return Apply(tests=tuple(tests), actions=statement.actions, origin=statement.origin)
        return replace(statement, tests=tuple(tests))

    def _specialised_lookup(self, lookup: Lookup, tests: tuple[Test, ...], facts: Facts) -> Statement | None:
        key_places = [i for i, f in enumerate(lookup.fields) if f in self.key]
        if not key_places:
            return replace(lookup, tests=tests)
        entries = [
            entry
            for entry in lookup.entries
            if all(_holds(entry.key[i], facts[lookup.fields[i]]) for i in key_places)
        ]
        if not entries:
            return None
        rest = [i for i in range(len(lookup.fields)) if i not in key_places]
        if not rest:
            return Apply(tests=tests, actions=entries[0].actions, origin=entries[0].origin)
        return Lookup(
            fields=tuple(lookup.fields[i] for i in rest),
            entries=tuple(replace(e, key=tuple(e.key[i] for i in rest)) for e in entries),
            tests=tests,
            origin=lookup.origin,
        )


@dataclass(slots=True)
class _Calls:
    """The calls of one chain: ``names`` numbers the callees to copy, ``inner`` has new chains of the copy.

    A ``deep`` chain calls all others unchanged.
    """

    chain: LoweredChain
    as_they_are: Collection[str]
    deep: bool
    names: dict[str, int] = field(default_factory=dict)
    inner: dict[str, LoweredChain] = field(default_factory=dict)

    def outline(self, actions: tuple[Action, ...]) -> _Outline:
        """Return the actions without their chains and addresses."""
        parts: list[object] = []
        for action in actions:
            match action:
                case Jump(chain=name) | Goto(chain=name) if not self.deep and name not in self.as_they_are:
                    number = self.names.setdefault(name, len(self.names))
                    parts.append(("jump" if isinstance(action, Jump) else "goto", number))
                case Dnat(addresses=addresses, ports=ports) if _is_point(addresses) and _is_point(
                    ports.interval
                ):
                    rest = _without_interval(ports)
                    parts.append(("dnat", addresses is None, ports.interval is None, rest))
                case _:
                    parts.append(action)
        return tuple(parts)

    def chain_for(self, branch: Branch) -> Branch:
        """Return a branch of a draw; actions that end in a DNAT move to a new chain."""
        if self.deep or not branch.actions or not isinstance(branch.actions[-1], Dnat):
            return branch
        name = f"{self.chain.name} {len(self.inner)}"
        body = Apply(tests=(), actions=branch.actions, origin=branch.origin)
        self.inner[name] = LoweredChain(
            name=name, table=self.chain.table, statements=(body,), origin=branch.origin
        )
        return replace(branch, actions=(Jump(name),))


def _parts(statement: Statement, calls: _Calls) -> list[StatementPart]:
    match statement:
        case Choose():
            branches = tuple([calls.chain_for(branch) for branch in statement.branches])
            outlines = tuple([(branch.weight, calls.outline(branch.actions)) for branch in branches])
            outline = ("draw", statement.tests, statement.equal, outlines)
            if not is_same(branches, statement.branches):
                statement = replace(statement, branches=branches)
            return [StatementPart(outline, statement, statement.tests)]
        case Lookup():
            rows = tuple(Row(e.key, e.actions, e.origin) for e in statement.entries)
            kinds = tuple(dict.fromkeys(calls.outline(row.actions) for row in rows))
            outline_ = ("rows", statement.tests, statement.fields, kinds)
            return [StatementPart(outline_, statement, statement.tests, statement.fields, rows)]
        case Apply():
            return _applied(statement, calls)


def _applied(apply: Apply, calls: _Calls) -> list[StatementPart]:
    parts: list[StatementPart] = []
    written = next((i for i, test in enumerate(apply.tests) if isinstance(test, Recent)), None)
    if written is not None and _always_holds(apply.tests[written]) and plain(apply.tests[:written]):
        # First the change of the list, then the rest of the rule after the same tests, which hold again.
        first = replace(apply, tests=apply.tests[: written + 1], actions=())
        parts.append(_constant(first, ()))
        if not apply.actions:
            return parts
        apply = replace(apply, tests=(*apply.tests[:written], *apply.tests[written + 1 :]))
    if not plain(apply.tests):
        bound = any(isinstance(action, Dnat) for action in apply.actions)
        return [*parts, _constant(apply, apply.actions if bound else calls.outline(apply.actions))]
    holes = {t.field: t.values for t in apply.tests if isinstance(t, FieldTest) and _is_hole(t)}
    if len(holes) > 1 and prod(len(values) for values in holes.values()) > _MOST_ROWS:
        holes = {}
    rest = apply.tests
    fields: tuple[Field, ...] = ()
    if holes:
        rest = tuple(t for t in apply.tests if not (isinstance(t, FieldTest) and _is_hole(t)))
        fields = tuple(holes) if len(holes) == 1 else tuple(f for f in KEY_FIELDS if f in holes)
    rows = tuple([Row(key, apply.actions, apply.origin) for key in product(*[holes[f] for f in fields])])
    outline = ("rows", rest, fields, (calls.outline(apply.actions),))
    return [*parts, StatementPart(outline, apply, rest, fields, rows)]


def _constant(apply: Apply, outline: _Outline) -> StatementPart:
    """Return the part for a rule that is the same in all copies, except for the chains that it calls."""
    row = Row((), apply.actions, apply.origin)
    return StatementPart(("constant", apply.tests, outline), apply, apply.tests, (), (row,))


def renamed(actions: tuple[Action, ...], names: Mapping[str, str]) -> tuple[Action, ...]:
    """Return the actions with the chains of jumps renamed by ``names``."""
    name = callee(actions)
    if name is None or name not in names:
        return actions
    transfer = Jump if isinstance(actions[-1], Jump) else Goto
    return (*actions[:-1], transfer(names[name]))


@lru_cache(maxsize=1024)
def _without_interval(ports: NatPorts) -> NatPorts:
    return replace(ports, interval=None)


def _holds(value: Value, known_values: Sequence[Interval]) -> bool:
    return isinstance(value, Interval) and all(known.low in value for known in known_values)


def _is_point(value: Interval | None) -> bool:
    return value is None or value.is_point


def _is_hole(test: FieldTest) -> bool:
    return test.field in HOLES and test.mask is None and not test.negated


def _always_holds(test: Test) -> bool:
    return isinstance(test, Recent) and test.mode is RecentMode.SET and not test.negated
