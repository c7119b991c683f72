"""The addresses, ports and prefixes of NAT targets as text."""

from __future__ import annotations

from translate.ir import Family, Field, Interval, NatPorts, TranslatePrefix, parse_address
from translate.irtext.lexer import Cursor, TextError, number
from translate.irtext.values import format_interval, take_interval

__all__ = ["format_addresses", "format_ports", "take_addresses", "take_ports", "take_prefix"]


def format_addresses(addresses: Interval | None, family: Family) -> str:
    """Return the text of the addresses that a target binds, empty for none."""
    return "" if addresses is None else f" to {format_interval(Field.DADDR, addresses, family)}"


def format_ports(ports: NatPorts) -> str:
    """Return the text of the ports that a target binds, and of their choice."""
    text = (
        "" if ports.interval is None else f" port {format_interval(Field.DPORT, ports.interval, Family.IP)}"
    )
    text += "" if ports.base is None else f" base {ports.base}"
    text += " random" if ports.random else ""
    text += " random-fully" if ports.fully_random else ""
    return f"{text} persistent" if ports.persistent else text


def take_prefix(cursor: Cursor, family: Family) -> TranslatePrefix:
    """Read the prefixes of SNPT and DNPT. Raises TextError."""
    source = cursor.take("src")
    if not source:
        cursor.expect("dst")
    (old, old_bits), (new, bits) = (_take_network(cursor, family) for _ in range(2))
    return TranslatePrefix(source=source, old=old, old_bits=old_bits, new=new, bits=bits)


def _take_network(cursor: Cursor, family: Family) -> tuple[int, int]:
    token = cursor.next("a prefix such as fd00::/48")
    address, _, length = token.text.partition("/")
    try:
        value = parse_address(family, address)
    except ValueError:
        raise TextError(token.column, f"{token.text!r} is no prefix") from None
    return value, number(length, token.column, "a length", most=family.bits)


def take_addresses(cursor: Cursor, family: Family) -> Interval | None:
    """Read the addresses that a target binds, None without any. Raises TextError."""
    return take_interval(cursor, Field.DADDR, family) if cursor.take("to") else None


def take_ports(cursor: Cursor) -> NatPorts:
    """Read the ports that a target binds, and their choice. Raises TextError."""
    return NatPorts(
        interval=take_interval(cursor, Field.DPORT, Family.IP) if cursor.take("port") else None,
        base=cursor.number("a port", most=65535) if cursor.take("base") else None,
        random=cursor.take("random"),
        fully_random=cursor.take("random-fully"),
        persistent=cursor.take("persistent"),
    )
