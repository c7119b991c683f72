"""ipsets as text: a block with one element a line."""

from __future__ import annotations

from collections.abc import Iterator

from translate.ir import Cell, Family, Field, Interval, IpSet, Origin, SetElement, SetOption, SetType
from translate.irtext.annotations import format_origin
from translate.irtext.lexer import Cursor, TextError, quoted, word
from translate.irtext.values import format_interval, take_interval

__all__ = ["set_lines", "take_element", "take_set"]

_FIELDS = {
    Cell.ADDRESS: Field.DADDR,
    Cell.NET: Field.DADDR,
    Cell.PROTOCOL: Field.L4PROTO,
    Cell.PORT: Field.DPORT,
}


def set_lines(ipset: IpSet, file: str) -> Iterator[tuple[str, str]]:
    """Yield each line of a set and its annotation; ``file`` is the file of the Program."""
    family = "" if ipset.family is None else f" family {ipset.family}"
    options = _options(ipset.options)
    yield (
        f"set {word(ipset.name)} type {quoted(ipset.type)}{family}{options} {{",
        format_origin(ipset.origin, file),
    )
    for element in ipset.elements:
        cells = zip(ipset.type.cells, element.key, strict=True)
        key = " . ".join(_cell(cell, value, ipset.family) for cell, value in cells)
        nomatch = " nomatch" if element.nomatch else ""
        yield (
            f"    {key}{nomatch}{_options(element.options)}",
            format_origin(element.origin, ipset.origin.file),
        )
    yield "}", ""


def _cell(cell: Cell, value: Interval, family: Family | None) -> str:
    return format_interval(_FIELDS[cell], value, family or Family.IP)


def _options(options: tuple[SetOption, ...]) -> str:
    if not options:
        return ""
    spelled = (
        word(option.name) if option.value is None else f"{word(option.name)} {word(option.value)}"
        for option in options
    )
    return f" with {', '.join(spelled)}"


def take_set(cursor: Cursor, origin: Origin) -> IpSet:
    """Read the first line of a set, after its first word. Raises TextError."""
    name = cursor.next("the name of a set").text
    cursor.expect("type")
    token = cursor.next("a set type")
    if token.text not in SetType.__members__.values():
        raise TextError(token.column, f"unknown set type {token.text!r}")
    kind = SetType(token.text)
    family = cursor.member(Family) if cursor.take("family") else None
    options = _take_options(cursor)
    cursor.expect("{")
    cursor.finish()
    return IpSet(name=name, type=kind, family=family, elements=(), options=options, origin=origin)


def take_element(cursor: Cursor, ipset: IpSet, origin: Origin) -> SetElement:
    """Read an element of ``ipset``. Raises TextError."""
    key: list[Interval] = []
    for cell in ipset.type.cells:
        if key:
            cursor.expect(".")
        key.append(take_interval(cursor, _FIELDS[cell], ipset.family or Family.IP))
    nomatch = cursor.take("nomatch")
    options = _take_options(cursor)
    cursor.finish()
    return SetElement(key=tuple(key), nomatch=nomatch, options=options, origin=origin)


def _take_options(cursor: Cursor) -> tuple[SetOption, ...]:
    options: list[SetOption] = []
    while cursor.take("," if options else "with"):
        name = cursor.next("an option").text
        has_value = not (cursor.is_done or cursor.peek(",", "{"))
        options.append(SetOption(name, cursor.next("a value").text if has_value else None))
    return tuple(options)
