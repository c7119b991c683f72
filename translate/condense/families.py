"""The families of a skimmed dump, and the choice of members for the sample.

A *member* is a connected component (:mod:`translate.condense.components`), or a single rule of a shared chain
that calls no chain. Two members belong to one family if they consist of the same blocks in the same order,
call their own chains at the same places, and have the same equalities among their constants.

A family is condensed under these conditions, which the package's docstring explains:

* no constant is equal to an address that is written in the block itself (:func:`_qualifies`);
* no field is compared with a constant and with a prefix, in one chain or in two with a jump between them
  (:func:`_compares_with_prefix`);
* no two rules of a shared chain, up to its last rule of a member, match the same packet (:func:`_disjoint`);
* a chain that members call besides their own does the same to every packet and calls nothing
  (:func:`_does_the_same`);
* shared chains are reached without a comparison of addresses or ports (:func:`_before`), or with a comparison
  that only excludes addresses that are not constants of members.

The sample has two values of each constant that differs between members, and so many members that every shared
chain has more rules than the limits of the passes (:data:`_ENOUGH`). All other rules and all members of small
families are in the sample. If a condition on shared chains fails, there are no families.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Final

from translate.condense.blocks import Block, RuleLine
from translate.condense.components import components_of
from translate.condense.members import Member, RuleFamily
from translate.condense.skim import SkimmedTable
from translate.dataclass import dataclass, field
from translate.ir import (
    Family,
    Field,
    FieldTest,
    Interval,
    Table,
    format_address,
    parse_address,
)

__all__ = ["Families", "families_of", "holds"]

_ENOUGH: Final = 66
"""The minimum number of rules of a shared chain in the sample, if the chain has so many."""

_SMALL: Final = 16
"""A family with fewer members is completely in the sample."""

_MOST_KINDS: Final = 12
"""The maximum number of kinds of rules in one shared chain that are compared with each other."""

_ADDRESSES: Final = (Field.SADDR, Field.DADDR)
_PORT_FIELDS: Final = (Field.SPORT, Field.DPORT)


@dataclass(slots=True)
class _Kind:
    """A family while its members are collected.

    ``blocks`` are the blocks of its parts, ``shared`` the chains of its entrances.
    """

    table: SkimmedTable
    blocks: tuple[Block, ...]
    shared: tuple[str, ...]
    members: list[Member] = field(default_factory=list)
    names: list[Sequence[str]] = field(default_factory=list)
    shown: set[int] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Families:
    """The families of a text and the lines of its sample.

    ``shown`` has a byte for each line, which is 0 if the line is not in the sample. By table, ``calls`` are
    the chains that members call besides their own, and ``entered`` the shared chains that call members.
    :func:`holds` uses both to check the sample.
    """

    families: tuple[RuleFamily, ...]
    shown: bytes
    calls: dict[str, set[str]]
    entered: dict[str, set[str]]


def families_of(tables: list[SkimmedTable], family: Family, lines: int) -> Families | None:
    """Return the families of a text; None if the sample would have every line."""
    kinds: list[_Kind] = []
    for table in tables:
        kinds += [kind for kind in _kinds(table) if len(kind.members) >= _SMALL and _qualifies(kind)]
    kinds = [kind for kind in kinds if family is Family.IP or _canonical(kind)]
    kinds = _undisturbed(kinds)
    if not kinds:
        return None
    entered: dict[str, set[str]] = {}
    calls: dict[str, set[str]] = {}
    for kind in kinds:
        entered.setdefault(kind.table.name, set()).update(kind.shared)
        calls.setdefault(kind.table.name, set()).update(
            line.shared for block in kind.blocks for line in block.lines if line.shared is not None
        )
    _choose(kinds)
    shown = bytearray(b"\1") * lines
    families: list[RuleFamily] = []
    for kind in kinds:
        lengths = tuple([len(block.lines) for block in kind.blocks])
        nothing = [bytes(length) for length in lengths]
        declared = kind.table.declared
        for index, (member, names) in enumerate(zip(kind.members, kind.names, strict=True)):
            if index not in kind.shown:
                for start, length, zeros in zip(member.starts, lengths, nothing, strict=True):
                    shown[start - 1 : start - 1 + length] = zeros
                for name in names:
                    shown[declared[name] - 1] = 0
        families.append(
            RuleFamily(
                entrances=len(kind.shared),
                lengths=lengths,
                fields=tuple(f for block in kind.blocks for f in block.fields),
                members=tuple(kind.members),
                shown=tuple(sorted(kind.shown)),
            )
        )
    return Families(tuple(families), bytes(shown), calls, entered) if 0 in shown else None


def _kinds(table: SkimmedTable) -> Iterator[_Kind]:
    """Return the families of one table, the members of each in the order of their first lines."""
    by_outline: dict[tuple[object, ...], _Kind] = {}
    for component in components_of(table):
        matched = [each for _, each in component.entrances] + component.blocks
        numbers = {name: number for number, name in enumerate(component.chains)}
        constants: list[str] = []
        outline: list[object] = [name for name, _ in component.entrances]
        for block, _, groups in matched:
            outline.append(block.pattern.pattern)
            constants += [groups[i] for i in block.values]
            if block.calls:
                outline += [numbers[groups[i]] for i in block.calls]
        key = (*outline, *map(constants.index, constants))
        kind = by_outline.get(key)
        if kind is None:
            blocks = tuple([block for block, _, _ in matched])
            kind = by_outline[key] = _Kind(table, blocks, tuple([name for name, _ in component.entrances]))
        kind.members.append(Member(tuple([line for _, line, _ in matched]), tuple(constants)))
        kind.names.append(component.chains)
    yield from by_outline.values()


# Conditions on the members of a family.


def _qualifies(kind: _Kind) -> bool:
    entrances = len(kind.shared)
    lines = [line for block in kind.blocks for line in block.lines]
    if any(line.draws for block in kind.blocks[:entrances] for line in block.lines):
        return False
    if any(not block.values for block in kind.blocks[:entrances]):
        return False
    # A chain of the member with two such lines could become a lookup that calls chains.
    if any(sum(line.calls and line.tests for line in b.lines) > 1 for b in kind.blocks[entrances:]):
        return False
    if _compares_with_prefix(lines) or any(_compares_both(block.lines) for block in kind.blocks):
        return False
    written = {p.text.partition("/")[0] for line in lines for p in line.prefixes}
    return not written or all(written.isdisjoint(member.constants) for member in kind.members)


def _compares_with_prefix(lines: Sequence[RuleLine]) -> bool:
    """Return whether one field may be compared with a constant and, after a jump, with a prefix."""
    for where in _ADDRESSES:
        constant = [line for line in lines if where in line.fields]
        prefix = [line for line in lines if any(p.field is where for p in line.prefixes)]
        if (prefix and any(line.calls for line in constant)) or (
            constant and any(line.calls for line in prefix)
        ):
            return True
    return False


def _compares_both(lines: Sequence[RuleLine]) -> bool:
    """Return whether rules of one chain compare the same field with a constant and with a prefix.

    Negated prefixes do not count: they are not keys of lookups, and do not make two rules disjoint.
    """
    written = {p.field for line in lines for p in line.prefixes if not p.negated}
    return any(where in written for line in lines for where in line.fields)


def _canonical(kind: _Kind) -> bool:
    """Return whether all IPv6 addresses among the constants are in canonical form."""
    addresses = {
        text if where is not None else text[1 : text.rindex("]")]
        for member in kind.members
        for where, text in zip((f for b in kind.blocks for f in b.fields), member.constants, strict=True)
        if where not in _PORT_FIELDS
    }
    try:
        return all(format_address(Family.IP6, parse_address(Family.IP6, text)) == text for text in addresses)
    except ValueError:
        return False


def _undisturbed(kinds: list[_Kind]) -> list[_Kind]:
    """Return the families whose shared chains do not depend on the order of members."""
    while True:
        entered = {(kind.table.name, name): kind.table for kind in kinds for name in kind.shared}
        disturbed = {
            (key, name) for (key, name), table in entered.items() if not _disjoint(table, name, kinds)
        }
        if not disturbed:
            return kinds
        kinds = [k for k in kinds if not any((k.table.name, name) in disturbed for name in k.shared)]


def _disjoint(table: SkimmedTable, shared: str, kinds: list[_Kind]) -> bool:
    """Return whether no packet matches two rules of a shared chain, among those up to the last member."""
    starts = {
        member.starts[at]
        for kind in kinds
        if kind.table is table
        for at, name in enumerate(kind.shared)
        if name == shared
        for member in kind.members
    }
    first, last = min(starts), max(starts)
    rows: dict[str, list[tuple[str, ...]]] = {}
    lines: dict[str, RuleLine] = {}
    if _compares_both([block.lines[0] for block, _, _ in table.entrances[shared]]):
        return False
    for block, number, groups in table.entrances[shared]:
        if block.values:
            rows.setdefault(block.pattern.pattern, []).append(tuple([groups[i] for i in block.values]))
            lines[block.pattern.pattern] = block.lines[0]
        elif first < number < last:
            return False
    if table.others[shared] or len(lines) > _MOST_KINDS or any(line.draws for line in lines.values()):
        return False
    return all(len(set(own)) == len(own) for own in rows.values()) and not any(
        _may_meet(lines[a], rows[a], lines[b], rows[b]) for a, b in combinations(lines, 2)
    )


def _may_meet(
    line: RuleLine, rows: Sequence[tuple[str, ...]], other: RuleLine, others: Sequence[tuple[str, ...]]
) -> bool:
    """Return whether one packet may match both a rule of one kind and a rule of another kind."""
    if line.protocol is not None and other.protocol is not None and line.protocol != other.protocol:
        return False
    common = [f for f in line.fields if f is not None and f in other.fields]
    places, other_places = [line.fields.index(f) for f in common], [other.fields.index(f) for f in common]
    values = {tuple([row[i] for i in places]) for row in rows}
    return any(tuple([row[i] for i in other_places]) in values for row in others)


# The choice of members for the sample.


def _choose(kinds: list[_Kind]) -> None:
    """Choose the sample: the first member at an entrance, members with other constants, and enough rules."""
    rules_shown: dict[tuple[str, str], int] = {}
    for kind in kinds:
        members = kind.members
        kind.shown.update(range(3))
        for number in range(len(kind.shared)):
            starts = [member.starts[number] for member in members]
            kind.shown.add(starts.index(min(starts)))
        for number, constant in enumerate(members[0].constants):
            others = (i for i, member in enumerate(members) if member.constants[number] != constant)
            kind.shown.add(next(others, 0))
        for name in kind.shared:
            key = kind.table.name, name
            rules_shown[key] = rules_shown.get(key, 0) + len(kind.shown)
    for kind in kinds:
        rest = (i for i in range(len(kind.members)) if i not in kind.shown)
        while any(rules_shown[kind.table.name, name] < _ENOUGH for name in kind.shared):
            index = next(rest, None)
            if index is None:
                break
            kind.shown.add(index)
            for name in kind.shared:
                rules_shown[kind.table.name, name] += 1


# Conditions on the sample after it has been read.


def holds(tables: Sequence[Table], families: Families) -> bool:
    """Return whether the chains that call members, and those that members call, satisfy the conditions."""
    before = [test for table in tables for test in _before(table, families.entered.get(table.name, set()))]
    return (
        all(_does_the_same(table, families.calls.get(table.name, set())) for table in tables)
        and all(test.negated and test.mask is None and test.field in _ADDRESSES for test in before)
        and not (before and any(_excluded(test, families.families) for test in before))
    )


def _does_the_same(table: Table, names: set[str]) -> bool:
    """Return whether each of these chains does the same to every packet and calls no chain."""
    chains = [chain for chain in table.chains if chain.name in names]
    return len(chains) == len(names) and not any(
        rule.tests or rule.callee is not None for chain in chains for rule in chain.rules
    )


def _before(table: Table, names: set[str]) -> Iterator[FieldTest]:
    """Yield the tests of addresses and ports in all rules that lead to one of these chains."""
    reached = set(names)
    size = -1
    while size < len(reached):
        size = len(reached)
        for chain in table.chains:
            for rule in chain.rules:
                if rule.callee in reached:
                    yield from (t for t in rule.tests if isinstance(t, FieldTest) and t.field in _TESTED)
                    reached.add(chain.name)


def _excluded(test: FieldTest, families: Sequence[RuleFamily]) -> bool:
    """Return whether a constant is one of the addresses that a negated test excludes."""
    for family in families:
        at = [number for number, where in enumerate(family.fields) if where is test.field]
        for text in {member.constants[number] for member in family.members for number in at}:
            address = parse_address(Family.IP6 if ":" in text else Family.IP, text)
            if any(address in value for value in test.values if isinstance(value, Interval)):
                return True
    return False


_TESTED: Final = frozenset({*_ADDRESSES, *_PORT_FIELDS, Field.L4PROTO})
