"""``lookup``: a run of rules that compare the same fields with constants becomes one lookup.

*Before*: a normalised Program (each field tested once per statement, values canonical).

*After*: two or more consecutive statements that test the same fields with ``==``, share their
remaining tests and have distinct constants are replaced by one :class:`Lookup`. A field that all of them
compare with the same value is a test and no part of the key, but protocol and ports stay together.

*Why the meaning is preserved*: distinct constants cannot both match, so the order of the rules does not
matter, *provided the packet still has the same key when the rules after the matching one are reached*. So no
action of the run, nor any chain that it may call, changes a field of the key before control comes back (``nft
-o`` gets this wrong with marks). Then every later rule of the run fails on the key, even if fields of the
shared tests have changed, and the lookup continues after the run as the rules do. Of two rules with the same
key the second is dead if the first is proven to leave the chain or to end the table (``control.leaves``);
otherwise the run ends before it. Tests with state or chance are not shared. Nor is an ``AnyOf``, for which
emitters use a separate chain: a ``return`` in a map would only return from that chain. A packet that lacks a
field fails every rule, and has no entry.

Keys of several fields are points, so that emitters can hash them; a key of one field may be
intervals, which must be disjoint.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Mapping
from functools import cached_property
from itertools import islice, product
from math import prod
from operator import eq
from typing import Final

from translate.dataclass import dataclass, field, replace
from translate.ir import (
    Apply,
    Entry,
    Field,
    FieldTest,
    Interval,
    Lookup,
    LoweredChain,
    Name,
    Program,
    Statement,
    Test,
    Value,
)
from translate.passes.control import CHANGEABLE, changed_by, changed_fields, leaves, plain
from translate.passes.facts import Facts, entry_facts, facts_of_key, refine
from translate.passes.structural_sharing import holding

__all__ = ["KEY_FIELDS", "Candidate", "Context", "Key", "candidate_of", "lookup"]

KEY_FIELDS: Final = (
    Field.IIF,
    Field.OIF,
    Field.SADDR,
    Field.DADDR,
    Field.L4PROTO,
    Field.SPORT,
    Field.DPORT,
    Field.ICMP_TYPE,
    Field.MARK,
    Field.CT_STATE,
    Field.FIB_SADDR_TYPE,
    Field.FIB_DADDR_TYPE,
)
"""The fields that can be part of a key, in the order of a key."""

_PORTS: Final = (Field.SPORT, Field.DPORT)

_MOST_KEYS: Final = 64
"""The greatest number of entries for one rule with lists of values (``multiport``)."""

Key = tuple[Value, ...]
"""One value per field."""


@dataclass(frozen=True, slots=True)
class _Shape:
    """The key fields and shared tests of the statements of one run."""

    fields: tuple[Field, ...]
    shared: frozenset[Test]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A rule that may be part of a lookup: the keys that it would add, and its other tests."""

    shape: _Shape
    shared: tuple[Test, ...]
    keys: tuple[Key, ...]
    statement: Apply


@dataclass(slots=True)
class _Run:
    """A growing run: its entries and their keys."""

    first: Candidate
    entries: dict[Key, Entry] = field(default_factory=dict)
    intervals: list[Interval] = field(default_factory=list)
    rules: int = 0

    def clash(self, key: Key) -> Entry | bool:
        """Return the entry with the same key, True if ``key`` overlaps another key, or False."""
        same = self.entries.get(key)
        if same is not None:
            return same
        if len(key) > 1 or not isinstance(key[0], Interval):
            return False
        at = bisect_left(self.intervals, key[0])
        around = self.intervals[max(at - 1, 0) : at + 1]
        return any(other.low <= key[0].high and key[0].low <= other.high for other in around)

    def add(self, entry: Entry) -> None:
        """Add ``entry``, whose key clashes with no other."""
        self.entries[entry.key] = entry
        if len(entry.key) == 1 and isinstance(entry.key[0], Interval):
            insort(self.intervals, entry.key[0])


class Context:
    """Facts about the whole Program, computed when first needed."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.family: Final = program.family
        self.chains: Final = {chain.name: chain for chain in program.chains}

    @cached_property
    def changed(self) -> Mapping[str, frozenset[Field]]:
        """The fields that each chain may change."""
        return changed_fields(self.program)

    @cached_property
    def facts(self) -> Mapping[str, Facts]:
        """The facts at the entry of each chain; only proofs about equal keys need them."""
        return entry_facts(self.program)


def lookup(program: Program) -> Program:
    """Return the Program with runs of constant comparisons as lookups."""
    context = Context(program)
    return replace(program, chains=tuple([_chain(chain, context) for chain in program.chains]))


def _chain(chain: LoweredChain, context: Context) -> LoweredChain:
    if len(chain.statements) < 2:
        return chain
    tested = [_tested_fields(statement) for statement in chain.statements]
    if not any(map(eq, tested, islice(tested, 1, None))):
        return chain  # no two consecutive statements fit into one lookup
    kept: list[Statement] = []
    run: _Run | None = None
    for statement in chain.statements:
        candidate = candidate_of(statement, context)
        if run is not None and candidate is not None and _extend(run, candidate, chain.name, context):
            continue
        if run is not None:
            kept.append(_finished(run))
            run = None
        if candidate is None:
            kept.append(statement)
        else:
            run = _Run(candidate)
            _extend(run, candidate, chain.name, context)
    if run is not None:
        kept.append(_finished(run))
    return holding(chain, kept)


def _tested_fields(statement: Statement) -> frozenset[Field] | None:
    """Return the fields that a rule tests (the same for all rules of a run); None for other statements."""
    if not isinstance(statement, Apply):
        return None
    return frozenset([test.field for test in statement.tests if isinstance(test, FieldTest)])


def candidate_of(statement: Statement, context: Context) -> Candidate | None:
    """Return the keys that the statement would add to a lookup, or None if it cannot be part of one."""
    if not isinstance(statement, Apply):
        return None
    tests = {t.field: t for t in statement.tests if isinstance(t, FieldTest) and _is_key(t)}
    fields = tuple(f for f in KEY_FIELDS if f in tests)
    single = len(fields) == 1
    fields = tuple(f for f in fields if single or all(_few(v) for v in tests[f].values))
    if not fields or (
        not CHANGEABLE.isdisjoint(fields)
        and not changed_by(statement.actions, context.changed).isdisjoint(fields)
    ):
        return None
    shared = tuple(t for t in statement.tests if not (isinstance(t, FieldTest) and tests.get(t.field) is t))
    shared = (*shared, *(tests[f] for f in tests if f not in fields))
    if not plain(shared) or prod(_spread(tests[f]) for f in fields) > _MOST_KEYS:
        return None
    keys = tuple(product(*[_values(tests[f], single=single) for f in fields]))
    return Candidate(_Shape(fields, frozenset(shared)), shared, keys, statement)


def _is_key(test: FieldTest) -> bool:
    if test.negated or test.mask is not None or test.field not in KEY_FIELDS:
        return False
    return not any(isinstance(v, Name) and v.wildcard for v in test.values)


def _few(value: Value) -> bool:
    """Return whether the value is a point, or two points that canonical form has joined (ports 80 and 81)."""
    return isinstance(value, Name) or value.size <= 2


def _spread(test: FieldTest) -> int:
    return sum(v.size if isinstance(v, Interval) and v.size <= 2 else 1 for v in test.values)


def _values(test: FieldTest, *, single: bool) -> list[Value]:
    """Return the values as keys: points, and in keys of one field wider intervals, too."""
    key_values: list[Value] = []
    for value in test.values:
        if isinstance(value, Name) or value.is_point or (single and value.size > 2):
            key_values.append(value)
        else:
            key_values.extend(Interval.point(n) for n in range(value.low, value.high + 1))
    return key_values


def _extend(run: _Run, candidate: Candidate, chain: str, context: Context) -> bool:
    """Add the candidate's keys to the run; if that would be unsound, return False and change nothing."""
    if run.first.shape != candidate.shape:
        return False
    new: list[Entry] = []
    for key in candidate.keys:
        clash = run.clash(key)
        if clash is True:
            return False
        if isinstance(clash, Entry):
            tests = (*candidate.shared, *facts_of_key(candidate.shape.fields, key))
            facts_here = refine(context.facts[chain], tests, context.family)
            if not leaves(clash.actions, facts_here, context.chains, context.family):
                return False
            continue
        actions = candidate.statement.actions
        new.append(Entry(key=key, actions=actions, origin=candidate.statement.origin))
    for entry in new:
        run.add(entry)
    run.rules += 1
    return True


def _finished(run: _Run) -> Statement:
    if run.rules < 2:
        return run.first.statement
    fields, entries = run.first.shape.fields, list(run.entries.values())
    constant = [i for i in range(len(fields)) if len({e.key[i] for e in entries}) == 1]
    varying = {f for i, f in enumerate(fields) if i not in constant}
    if varying & {Field.L4PROTO, *_PORTS}:
        constant = [i for i in constant if fields[i] not in (Field.L4PROTO, *_PORTS)]
    if len(constant) == len(fields):
        constant = constant[1:]
    tests = tuple(FieldTest(field=fields[i], values=(entries[0].key[i],)) for i in constant)
    if constant:
        kept = [i for i in range(len(fields)) if i not in constant]
        fields = tuple(fields[i] for i in kept)
        entries = [replace(e, key=tuple(e.key[i] for i in kept)) for e in entries]
    return Lookup(
        fields=fields,
        entries=tuple(entries),
        tests=(*tests, *run.first.shared),
        origin=run.first.statement.origin,
    )
