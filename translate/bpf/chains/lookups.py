"""Lookups as C: a map if their keys are points or prefixes, otherwise a series of comparisons."""

from __future__ import annotations

from collections.abc import Sequence

from translate.bpf.chains.actions import action_code
from translate.bpf.chains.code import Code, Condition, Declaration, Needs
from translate.bpf.chains.conditions import conditions, equals, in_key, present
from translate.bpf.chains.context import Context
from translate.bpf.chains.fields import refuse_type
from translate.bpf.chains.numbers import NumberText
from translate.bpf.layout.maps import MapContents, MapEntry, max_entries_for
from translate.bpf.layout.structures import Declarator, Structure
from translate.bpf.layout.tables import ARGUMENTS, ENTRY, U32, runtime_types
from translate.bpf.refusals import CannotExpress
from translate.ir import Entry, Family, Field, Interval, Lookup, Value

__all__ = ["lookup_code"]


def lookup_code(statement: Lookup, context: Context) -> Code:
    """Return the code of a lookup. Raises CannotExpress."""
    ranged = _ranged(statement)
    tests = conditions(statement.tests, context)
    has = tuple(map(Condition, present(statement.fields)))
    condition = Condition.every(has if tests.text == "1" and has else (tests, *has))
    net = ranged.pop() if len(ranged) == 1 else None
    if ranged or (net is not None and not _is_net(statement, net, context.family)):
        return condition.guarding(_comparisons(statement, context))
    body = _map(statement, net, context)
    return condition.guarding(Code(("{", *body.indented(), "}"), body.needs))


def _is_net(statement: Lookup, at: int, family: Family) -> bool:
    values = [entry.key[at] for entry in statement.entries]
    return statement.fields[at].is_address and all(
        isinstance(value, Interval) and value.prefix_length(family.bits) is not None for value in values
    )


def _comparisons(statement: Lookup, context: Context) -> Code:
    """Return comparisons with the keys, which are disjoint intervals, so that at most one condition holds."""
    lines: list[str] = []
    needs: list[Needs] = []
    for entry in statement.entries:
        condition = " && ".join(
            equals(f, value, context.family) for f, value in zip(statement.fields, entry.key, strict=True)
        )
        body = action_code(entry.actions, context)
        lines += [f"{'} else if' if lines else 'if'} ({condition}) {{", *body.indented()]
        needs.append(body.needs)
    return Code((*lines, "}"), Needs.of_all(needs)) if lines else Code()


def _map(statement: Lookup, net: int | None, context: Context) -> Code:
    """Return a lookup in a map: a hash, or for prefixes a trie that compares the other fields first."""
    number, bits = context.lookups, context.family.bits
    rows = [_row(statement.fields, entry, context) for entry in statement.entries]
    # A code is an index into the sorted texts, which does not depend on the order of rules.
    distinct = {body.lines: body for body, _ in rows}
    bodies = {lines: (code, distinct[lines]) for code, lines in enumerate(sorted(distinct), 1)}
    order = sorted(range(len(statement.fields)), key=lambda at: at == net)
    fields = [statement.fields[at] for at in order]
    widths = [bits // 8 if field.is_address else 0 for field in fields]
    before = 8 * sum(width or 4 for width in widths[:-1])
    entries = tuple(
        MapEntry(
            key=_key([entry.key[at] for at in order], None if net is None else before, bits),
            code=bodies[body.lines][0],
            arguments=arguments,
            origin=entry.origin,
        )
        for entry, (body, arguments) in zip(statement.entries, rows, strict=True)
    )
    wire = runtime_types(context.family).structures["wire"]
    length = () if net is None else (Declarator(U32, "length"),)
    parts = [Declarator(wire if field.is_address else U32, f"k{i}") for i, field in enumerate(fields)]
    contents = MapContents(
        name=f"lookup_{number}",
        fields=(*(part.name for part in length), *(field.text for field in fields)),
        key=Structure(f"key_{number}", (*length, *parts)),
        entries=entries,
        trie=net is not None,
        max_entries=max_entries_for(len(entries)),
    )
    values = (
        *(f".{part.name} = {before + bits}" for part in length),
        *(f".k{i} = {in_key(field)}" for i, field in enumerate(fields)),
    )
    lines = (
        f"{contents.key.text} key = {{ {', '.join(values)} }};",
        f"{ENTRY.text} *e = {contents.name}.lookup(&key);",
    )
    cases: list[str] = []
    for code, body in bodies.values():
        cases += [f"{'} else if' if cases else 'if'} (e->code == {code}) {{", *body.indented()]
    dispatch = Condition("e").guarding(Code((*cases, "}") if cases else ()))
    declared = Needs(
        declarations=(Declaration.of_map(contents.declared, " . ".join(contents.fields)),), maps=(contents,)
    )
    return Code(
        (*lines, *dispatch.lines), Needs.of_all((declared, *(body.needs for body in distinct.values())))
    )


def _key(values: Sequence[Value], before: int | None, bits: int) -> tuple[int, ...]:
    """Return the numbers of a key; those of a trie begin with the length of the prefix.

    ``before`` is the number of bits before the net in the key of a trie; None for a hash.
    """
    numbers = [value.low for value in values if isinstance(value, Interval)]
    if before is None:
        return tuple(numbers)
    net = values[-1]
    assert isinstance(net, Interval)
    length = net.prefix_length(bits)
    assert length is not None
    return before + length, *numbers


def _row(fields: Sequence[Field], entry: Entry, context: Context) -> tuple[Code, tuple[int, ...]]:
    """Return the code of an entry's actions, and the numbers in the entry's value."""
    for tested, value in zip(fields, entry.key, strict=True):
        refuse_type(tested, value, context.family)
    arguments: list[int] = []
    body = action_code(entry.actions, context, _collected(arguments))
    if len(arguments) > ARGUMENTS:
        raise CannotExpress(
            "entry-size", "the actions of this rule have too many numbers for an entry of a map"
        )
    return body, tuple(arguments)


def _ranged(statement: Lookup) -> set[int]:
    """Return the indices of fields with names, prefixes or ranges in some key."""
    columns = [[entry.key[at] for entry in statement.entries] for at in range(len(statement.fields))]
    return {
        at
        for at, values in enumerate(columns)
        if statement.fields[at].is_name
        or not all(isinstance(value, Interval) and value.is_point for value in values)
    }


def _collected(arguments: list[int]) -> NumberText:
    """Return a renderer that reads numbers from a map entry, and appends their words to ``arguments``."""

    def number(value: int, bits: int = 32) -> str:
        at = len(arguments)
        if bits <= 32:
            arguments.append(value)
            return f"e->argument[{at}]"
        arguments.extend(value >> shift & 0xFFFFFFFF for shift in range(bits - 32, -1, -32))
        return f"ADDRESS_AT(e, {at})"

    return number
