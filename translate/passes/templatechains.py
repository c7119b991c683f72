"""The chain that replaces all copies of equal shape at one place, for ``template``.

The copies have statements with the same outlines. A statement whose rows are equal in all copies stays as it
is. Any other statement becomes a lookup, which finds the row of a copy by the copy's key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from translate.dataclass import replace
from translate.ir import (
    Apply,
    Branch,
    Choose,
    Dnat,
    Entry,
    Field,
    Interval,
    Lookup,
    LoweredChain,
    Origin,
    Statement,
    Test,
    Value,
)
from translate.passes.copies import Copy, Row, renamed
from translate.passes.lookup import KEY_FIELDS
from translate.passes.templatenames import Place

__all__ = ["Member", "template_chain"]

_Key = tuple[Value, ...]

Member = tuple[_Key, Copy]
"""A key of the dispatcher, and the copy of the chain for its packets."""


def template_chain(
    names: Mapping[Place, str],
    place: Place,
    members: list[Member],
    fields: tuple[Field, ...],
) -> LoweredChain:
    """Return the chain that replaces all copies at ``place``; ``names`` are those of all such chains.

    ``fields`` are those of the dispatcher.
    """
    first = members[0][1]
    path = place[1]
    below = [
        names[callee.shape, path if len(first.callees) == 1 else (*path, index)]
        for index, callee in enumerate(first.callees.values())
    ]
    calls = [dict(zip(copy.callees, below, strict=True)) for _, copy in members]
    statements: list[Statement] = []
    for index, part in enumerate(first.parts):
        if isinstance(part.statement, Choose):
            branches = tuple(
                Branch(
                    weight=b.weight, actions=renamed(b.actions, calls[0]), origin=_place(b.origin, members)
                )
                for b in part.statement.branches
            )
            origin = _place(part.statement.origin, members)
            statements.append(replace(part.statement, branches=branches, origin=origin))
            continue
        rows = [
            [_renamed_row(row, names_) for row in copy.parts[index].rows]
            for (_, copy), names_ in zip(members, calls, strict=True)
        ]
        if all(_same(rows[0], other) for other in rows) and not any(map(_is_own, rows[0])):
            statements.append(_constant(part.statement, calls[0], members))
        else:
            keyed = [(key, row) for (key, _), own in zip(members, rows, strict=True) for row in own]
            origin = _place(part.statement.origin, members)
            statements.append(_lookup(origin, (*fields, *part.fields), part.tests, keyed))
    return LoweredChain(
        name=names[place],
        table=first.chain.table,
        statements=tuple(statements),
        origin=_place(first.chain.origin, members),
    )


def _place(origin: Origin, members: Sequence[object]) -> Origin:
    """Return the origin of a statement for all members: that of the first member."""
    return origin.of_several() if len(members) > 1 else origin


def _renamed_row(row: Row, names: Mapping[str, str]) -> Row:
    actions = renamed(row.actions, names)
    return row if actions is row.actions else Row(row.key, actions, row.origin)


def _same(rows: Sequence[Row], other: Sequence[Row]) -> bool:
    return [(r.key, r.actions) for r in rows] == [(r.key, r.actions) for r in other]


def _is_own(row: Row) -> bool:
    """Return whether the row names one address or port, which is looked up even if all copies agree on it.

    Otherwise the first service with another endpoint would change the chain instead of an entry.
    """
    return any(isinstance(v, Interval) and v.is_point for v in row.key) or any(
        isinstance(action, Dnat) for action in row.actions
    )


def _constant(statement: Statement, calls: Mapping[str, str], members: Sequence[object]) -> Statement:
    origin = _place(statement.origin, members)
    match statement:
        case Apply():
            return replace(statement, actions=renamed(statement.actions, calls), origin=origin)
        case Lookup():
            entries = tuple(
                Entry(key=e.key, actions=renamed(e.actions, calls), origin=_place(e.origin, members))
                for e in statement.entries
            )
            return replace(statement, entries=entries, origin=origin)
        case Choose():
            raise AssertionError("a draw has no constants")


def _lookup(
    origin: Origin,
    fields: tuple[Field, ...],
    tests: tuple[Test, ...],
    rows: list[tuple[_Key, Row]],
) -> Lookup:
    order = sorted(range(len(fields)), key=lambda i: KEY_FIELDS.index(fields[i]))
    entries = []
    for key, row in rows:
        whole: tuple[Value, ...] = (*key, *row.key)
        ordered = tuple([whole[i] for i in order])
        entries.append(Entry(key=ordered, actions=row.actions, origin=row.origin))
    return Lookup(
        fields=tuple(fields[i] for i in order),
        entries=tuple(entries),
        tests=tests,
        origin=origin,
    )
