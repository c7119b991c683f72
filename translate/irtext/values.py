"""Values of fields as text: addresses and prefixes, protocol and state names, ports, marks, interfaces."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import IntEnum, IntFlag
from types import MappingProxyType
from typing import Final

from translate.ir import (
    AddressType,
    ConnectionState,
    ConnectionStatus,
    Family,
    Field,
    Interval,
    Name,
    PacketType,
    Protocol,
    TcpFlag,
    Value,
    field_bits,
    format_address,
    parse_address,
)
from translate.irtext.lexer import Cursor, TextError, number, quoted

__all__ = [
    "format_interval",
    "format_number",
    "format_value",
    "take_field",
    "take_interval",
    "take_number",
    "take_value",
]

FIELDS: Final = MappingProxyType({field.text: field for field in Field})
"""The fields by name."""

_NAMED: Final[Mapping[Field, type[IntEnum]]] = MappingProxyType(
    {
        Field.L4PROTO: Protocol,
        Field.CT_PROTO: Protocol,
        Field.CT_STATE: ConnectionState,
        Field.FIB_SADDR_TYPE: AddressType,
        Field.FIB_DADDR_TYPE: AddressType,
        Field.FIB_SADDR_TYPE_IIF: AddressType,
        Field.FIB_DADDR_TYPE_IIF: AddressType,
        Field.FIB_SADDR_TYPE_OIF: AddressType,
        Field.FIB_DADDR_TYPE_OIF: AddressType,
        Field.PACKET_TYPE: PacketType,
    }
)
"""Fields whose values have names."""

_FLAGS: Final[Mapping[Field, type[IntFlag]]] = MappingProxyType(
    {Field.CT_STATUS: ConnectionStatus, Field.TCP_FLAGS: TcpFlag}
)
"""Fields whose values are bits with names, joined by ``|``."""

_INTERFACE: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:@%-]*\Z")


def format_number(field: Field, value: int, family: Family) -> str:
    """Return the text of a value of a numeric field, or of a mask for it."""
    if field.is_address:
        return format_address(family, value)
    names = _NAMED.get(field)
    if names is not None and value in names.__members__.values():
        return names(value).name.lower()
    flags = _FLAGS.get(field)
    if flags is not None and value:
        bits = [flag for flag in flags if value & flag]
        if sum(bits) == value:
            return "|".join(str(flag.name).lower() for flag in bits)
    return hex(value) if field.is_hexadecimal or field in _FLAGS else str(value)


def format_value(field: Field, value: Value, family: Family) -> str:
    """Return the text of a value: ``10.0.0.0/8``, ``80-90``, ``established``, ``eth+``."""
    if isinstance(value, Name):
        text = value.text if _INTERFACE.match(value.text) else quoted(value.text)
        return f"{text}+" if value.wildcard else text
    return format_interval(field, value, family)


def format_interval(field: Field, value: Interval, family: Family) -> str:
    """Return the text of an interval: a point, a prefix (only of addresses) or a range."""
    low = format_number(field, value.low, family)
    if value.is_point:
        return low
    length = value.prefix_length(family.bits) if field.is_address else None
    if length is not None:
        return f"{low}/{length}"
    return f"{low}-{format_number(field, value.high, family)}"


def take_field(cursor: Cursor) -> Field:
    """Read the name of a field."""
    column = cursor.column
    token = cursor.next("a field")
    if token.text not in FIELDS or token.is_string:
        raise TextError(column, f"expected a field, found {token.text!r}")
    return FIELDS[token.text]


def take_value(cursor: Cursor, field: Field, family: Family) -> Value:
    """Read a value of ``field``."""
    return _name(cursor) if field.is_name else take_interval(cursor, field, family)


def take_interval(cursor: Cursor, field: Field, family: Family) -> Interval:
    """Read a point, a prefix or a range."""
    token = cursor.next(f"a value of {field.text}")
    text, column = token.text, token.column
    if field.is_address and "/" in text:
        address, _, length = text.partition("/")
        bits = number(length, column + len(address) + 1, "a prefix length", most=family.bits)
        value = Interval.prefix(low := _number(address, column, field, family), bits, family.bits)
        if value.low != low:
            raise TextError(column, f"{text} has bits set after its prefix")
        return value
    first, dash, last = text.partition("-")
    low = _number(first, column, field, family)
    if not dash:
        return Interval.point(low)
    high = _number(last, column + len(first) + 1, field, family)
    if high < low:
        raise TextError(column, f"the range {text} ends before it begins")
    return Interval(low, high)


def take_number(cursor: Cursor, field: Field, family: Family) -> int:
    """Read a value of a numeric field, or a mask for it."""
    token = cursor.next(f"a value of {field.text}")
    return _number(token.text, token.column, field, family)


def _name(cursor: Cursor) -> Name:
    token = cursor.next("an interface")
    if token.is_string:
        return Name(token.text, wildcard=cursor.take("+"))
    return Name(token.text.removesuffix("+"), wildcard=token.text.endswith("+"))


def _number(text: str, column: int, field: Field, family: Family) -> int:
    if field.is_address:
        try:
            return parse_address(family, text)
        except ValueError as e:
            raise TextError(column, str(e)) from e
    names = _NAMED.get(field)
    if names is not None and text.upper() in names.__members__:
        return int(names[text.upper()])
    flags = _FLAGS.get(field)
    if flags is not None and all(part.upper() in flags.__members__ for part in text.split("|")):
        return sum({int(flags[part.upper()]) for part in text.split("|")})
    return number(text, column, f"a value of {field.text}", most=(1 << field_bits(field, family)) - 1)
