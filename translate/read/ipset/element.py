"""One element of an ipset, as ``ipset add`` reads it and ``ipset save`` prints it.

A range or prefix in a dimension without nets is stored as one element per value, as in the kernel. A range of
nets is stored as prefixes.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import prod
from types import MappingProxyType
from typing import Final

from translate.ir import (
    SET_PORT_PROTOCOLS,
    Cell,
    Family,
    Interval,
    Protocol,
    SetType,
    format_address,
    parse_address,
)
from translate.read.spelling.names import PROTOCOLS, protocol_number, service_port

__all__ = ["ICMP_NAMES", "ElementError", "element_keys", "element_text"]

ICMP_NAMES: Final = MappingProxyType(
    {
        Protocol.ICMP: {
            0x0000: "echo-reply",
            0x0300: "network-unreachable",
            0x0301: "host-unreachable",
            0x0302: "protocol-unreachable",
            0x0303: "port-unreachable",
            0x0304: "fragmentation-needed",
            0x0305: "source-route-failed",
            0x0306: "network-unknown",
            0x0307: "host-unknown",
            0x0309: "network-prohibited",
            0x030A: "host-prohibited",
            0x030B: "TOS-network-unreachable",
            0x030C: "TOS-host-unreachable",
            0x030D: "communication-prohibited",
            0x030E: "host-precedence-violation",
            0x030F: "precedence-cutoff",
            0x0400: "source-quench",
            0x0500: "network-redirect",
            0x0501: "host-redirect",
            0x0502: "TOS-network-redirect",
            0x0503: "TOS-host-redirect",
            0x0800: "echo-request",
            0x0900: "router-advertisement",
            0x0A00: "router-solicitation",
            0x0B00: "ttl-zero-during-transit",
            0x0B01: "ttl-zero-during-reassembly",
            0x0C00: "ip-header-bad",
            0x0C01: "required-option-missing",
            0x0D00: "timestamp-request",
            0x0E00: "timestamp-reply",
            0x1100: "address-mask-request",
            0x1200: "address-mask-reply",
        },
        Protocol.ICMPV6: {
            0x0100: "no-route",
            0x0101: "communication-prohibited",
            0x0103: "address-unreachable",
            0x0104: "port-unreachable",
            0x0200: "packet-too-big",
            0x0300: "ttl-zero-during-transit",
            0x0301: "ttl-zero-during-reassembly",
            0x0400: "bad-header",
            0x0401: "unknown-header-type",
            0x0402: "unknown-option",
            0x8000: "echo-request",
            0x8100: "echo-reply",
            0x8500: "router-solicitation",
            0x8600: "router-advertisement",
            0x8700: "neighbour-solicitation",
            0x8800: "neighbour-advertisement",
            0x8900: "redirect",
        },
    }
)
"""The names that ``ipset`` prints for ``type << 8 | code``; it prints others as ``type/code``."""

_ALIASES: Final = {"ping": "echo-request", "pong": "echo-reply"}
_PROTOCOL_NAMES: Final = {n: name for name, n in reversed(tuple(PROTOCOLS.items()))} | {
    int(Protocol.ICMPV6): "ipv6-icmp"
}
_PORTS: Final = Interval(0, 0xFFFF)


class ElementError(Exception):
    """A fault in an element; ``offset`` is the position in its text."""

    def __init__(self, message: str, *, offset: int = 0, hint: str | None = None) -> None:
        self.message = message
        self.offset = offset
        self.hint = hint
        super().__init__(message)


def element_keys(
    kind: SetType, family: Family | None, text: str, *, most: int, ports: Interval = _PORTS
) -> Iterator[tuple[Interval, ...]]:
    """Yield the keys of the element ``text``; raises ElementError.

    ``most`` is the capacity of the set in elements; ``ports`` is the range of a ``bitmap:port``.
    """
    parts = text.split(",")
    if len(parts) != len(kind.dimensions):
        raise ElementError(f"{kind} has elements of {len(kind.dimensions)} parts, not {len(parts)}")
    cells: list[list[tuple[Interval, ...]]] = []
    spans: list[Interval] = []  # every interval is expanded to points
    offset = 0
    for number, (dimension, part) in enumerate(zip(kind.dimensions, parts, strict=True)):
        match dimension:
            case (Cell.ADDRESS,):
                span = _addresses(family, part, offset=offset, single=number > 0)
                spans.append(span)
            case (Cell.NET,):
                cells.append([(net,) for net in _nets(family, part, offset=offset)])
                spans.append(Interval.point(0))
            case (Cell.PROTOCOL, Cell.PORT):
                proto, span = _port(family, part, offset=offset)
                spans.append(span)
            case _:
                span = _bitmap_ports(part, offset=offset)
                if span.low not in ports or span.high not in ports:
                    raise ElementError(f"outside the set's range {ports.low}-{ports.high}", offset=offset)
                spans.append(span)
        offset += len(part) + 1
    if prod(span.size for span in spans) > most:
        raise ElementError(f"more elements than the set can hold (maxelem {most})")
    nets = iter(cells)
    columns: list[list[tuple[Interval, ...]]] = []
    for dimension, span in zip(kind.dimensions, spans, strict=True):
        points = (Interval.point(n) for n in range(span.low, span.high + 1))
        match dimension:
            case (Cell.NET,):
                columns.append(next(nets))
            case (Cell.PROTOCOL, Cell.PORT):
                columns.append([(Interval.point(proto), point) for point in points])
            case _:
                columns.append([(point,) for point in points])
    for combination in product(*columns):
        yield tuple(interval for part in combination for interval in part)


def element_text(kind: SetType, family: Family | None, key: tuple[Interval, ...]) -> str:
    """Return a key as ``ipset save`` prints it."""
    parts: list[str] = []
    values = iter(key)
    for dimension in kind.dimensions:
        match dimension:
            case (Cell.PROTOCOL, Cell.PORT):
                parts.append(_port_text(next(values).low, next(values).low))
            case (Cell.PORT,):
                parts.append(str(next(values).low))
            case _:
                assert family is not None
                value = next(values)
                length = value.prefix_length(family.bits)
                text = format_address(family, value.low)
                parts.append(text if value.is_point else f"{text}/{length}")
    return ",".join(parts)


def _port_text(proto: int, port: int) -> str:
    name = _PROTOCOL_NAMES.get(proto, str(proto))
    if proto in ICMP_NAMES:
        return f"{name}:{ICMP_NAMES[Protocol(proto)].get(port) or f'{port >> 8}/{port & 0xFF}'}"
    return f"{name}:{port}"


# -- addresses -------------------------------------------------------------------------------------


def _address(family: Family | None, text: str, *, offset: int) -> int:
    assert family is not None
    try:
        return parse_address(family, text)
    except ValueError:
        message = f'"{text}" is not an IPv{family.version} address'
        raise ElementError(message, offset=offset, hint="host names are not looked up") from None


def _length(family: Family, text: str, *, offset: int) -> int:
    length = int(text) if text.isascii() and text.isdigit() and len(text) < 4 else -1
    if not 0 < length <= family.bits:
        raise ElementError(f'"/{text}" is not a prefix length from 1 to {family.bits}', offset=offset)
    return length


def _span(family: Family | None, text: str, *, offset: int) -> Interval:
    """Return the interval of an address, a prefix or a range."""
    assert family is not None
    low_text, dash, high_text = text.partition("-")
    if dash:
        low = _address(family, low_text, offset=offset)
        high = _address(family, high_text, offset=offset + len(low_text) + 1)
        if low > high:
            raise ElementError(f'range "{text}" ends before it begins', offset=offset)
        return Interval(low, high)
    host, slash, length_text = text.partition("/")
    address = _address(family, host, offset=offset)
    if not slash:
        return Interval.point(address)
    length = _length(family, length_text, offset=offset + len(host) + 1)
    return Interval.prefix(address, length, family.bits)


def _addresses(family: Family | None, text: str, *, offset: int, single: bool) -> Interval:
    span = _span(family, text, offset=offset)
    if not span.is_point and (single or family is Family.IP6):
        raise ElementError("one address is expected here", offset=offset)
    if span.low == 0 and not single:
        raise ElementError("the address 0 cannot be an element", offset=offset)
    return span


def _nets(family: Family | None, text: str, *, offset: int) -> list[Interval]:
    assert family is not None
    span = _span(family, text, offset=offset)
    if "-" in text and family is Family.IP6:
        raise ElementError("IPv6 nets are written as prefixes", offset=offset)
    nets = []
    low = span.low
    while low <= span.high:  # the widest prefix that begins here and fits, as range_to_mask
        size = low & -low if low else 1 << (family.bits - 1)
        while low + size - 1 > span.high:
            size >>= 1
        nets.append(Interval(low, low + size - 1))
        low += size
    return nets


# -- ports -----------------------------------------------------------------------------------------


def _port(family: Family | None, text: str, *, offset: int) -> tuple[int, Interval]:
    name, colon, port_text = text.partition(":")
    if not colon:
        return Protocol.TCP, _span_of_ports(text, offset=offset)
    proto = protocol_number(name)
    if not proto:
        raise ElementError(f'unknown protocol "{name}"', offset=offset)
    after = offset + len(name) + 1
    if proto in (Protocol.ICMP, Protocol.ICMPV6):
        if (proto == Protocol.ICMP) is not (family is Family.IP):
            raise ElementError(f"{name} does not belong to this family", offset=offset)
        return proto, Interval.point(_icmp(Protocol(proto), port_text, offset=after))
    if proto in SET_PORT_PROTOCOLS:
        return proto, _span_of_ports(port_text, offset=after)
    if port_text != "0":
        raise ElementError(f"protocol {name} has no ports: only port 0 can be given", offset=after)
    return proto, Interval.point(0)


def _icmp(proto: Protocol, text: str, *, offset: int) -> int:
    values_by_name = {name: value for value, name in ICMP_NAMES[proto].items()}
    name = _ALIASES.get(text, text)
    if name in values_by_name:
        return values_by_name[name]
    kind, slash, code = text.partition("/")
    numbers = [int(n) if n.isascii() and n.isdigit() and len(n) < 4 else 256 for n in (kind, code)]
    if not slash or max(numbers) > 255:
        raise ElementError(f'"{text}" is neither a name nor type/code', offset=offset)
    return numbers[0] << 8 | numbers[1]


def _span_of_ports(text: str, *, offset: int) -> Interval:
    whole = service_port(text)
    if whole is not None:
        return Interval.point(whole)
    low_text, dash, high_text = text.partition("-")
    low, high = service_port(low_text), service_port(high_text)
    if not dash or low is None or high is None:
        raise ElementError(f'unknown port "{text}"', offset=offset, hint="write a number from 0 to 65535")
    if low > high:
        raise ElementError(f'port range "{text}" ends before it begins', offset=offset)
    return Interval(low, high)


def _bitmap_ports(text: str, *, offset: int) -> Interval:
    name, colon, port_text = text.partition(":")
    if not colon:
        return _span_of_ports(text, offset=offset)
    if protocol_number(name) not in (Protocol.TCP, Protocol.UDP):
        raise ElementError(f'"{name}" is neither tcp nor udp', offset=offset)
    return _span_of_ports(port_text, offset=offset + len(name) + 1)
