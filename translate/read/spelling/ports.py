"""Ports and port ranges in the three notations of iptables.

:func:`parse_port_range` is ``xtables_parse_port``: numbers in any base. :func:`parse_resolved_range` is
``xtopt_parse_mport``, which reads decimal numbers by ``getaddrinfo``. :func:`parse_nat_ports` is
``parse_ports`` of ``libxt_NAT``. Names come from a fixed table.
"""

from __future__ import annotations

from typing import Final

from translate.dataclass import dataclass
from translate.ir import Interval
from translate.read.spelling.errors import OptionError
from translate.read.spelling.names import service_port
from translate.read.spelling.numbers import unsigned_start
from translate.read.spelling.services import SERVICES

__all__ = [
    "NatPortRange",
    "PortRange",
    "parse_nat_ports",
    "parse_port",
    "parse_port_range",
    "parse_resolved_range",
]

_MOST: Final = 65535
_HINT: Final = "write a number from 0 to 65535; names come from a fixed table"


@dataclass(frozen=True, slots=True)
class PortRange:
    """The ports from ``low`` to ``high``; none if ``high`` is less."""

    low: int
    high: int


@dataclass(frozen=True, slots=True)
class NatPortRange:
    """The ports to bind; ``base`` is the port that is mapped to the first of them."""

    ports: Interval
    base: int | None = None


def parse_port(text: str, *, option: int, offset: int = 0) -> int:
    """Return a port given by number or by a name of the fixed table; raises OptionError."""
    port = service_port(text)
    if port is None:
        raise _unknown(text, option, offset)
    return port


def parse_port_range(text: str, *, option: int) -> Interval:
    """Return the ports of ``a``, ``a:b``, ``:b`` or ``a:`` of a TCP or SCTP match; raises OptionError."""
    low_text, colon, high_text = text.partition(":")
    if not colon:
        return Interval.point(parse_port(text, option=option))
    low = parse_port(low_text, option=option) if low_text else 0
    high = parse_port(high_text, option=option, offset=len(low_text) + 1) if high_text else _MOST
    if low > high:
        raise OptionError(f'port range "{text}" ends before it begins', option=option)
    return Interval(low, high)


def parse_resolved_range(text: str, *, option: int) -> PortRange:
    """Return the ports of ``a``, ``a:b``, ``:b`` or ``a:`` of a UDP or conntrack match; raises OptionError.

    Numbers are decimal, also with leading zeros. A range that ends before it begins contains no port.
    """
    parts = text.split(":")
    if len(parts) > 2:
        raise OptionError(f'"{text}" is not a port or a range', option=option)
    missing = (0, _MOST) if len(parts) == 2 else (0,)
    ports = []
    offset = 0
    for part, default in zip(parts, missing, strict=True):
        ports.append(_resolved(part, option, offset) if part else default)
        offset += len(part) + 1
    return PortRange(ports[0], ports[-1])


def _resolved(text: str, option: int, offset: int) -> int:
    digits = text.lstrip(" \t\n\v\f\r").removeprefix("+")
    if digits.isascii() and digits.isdigit():
        number = int(digits[:20])
        if number > _MOST:
            hint = f"iptables would read it as {number % (_MOST + 1)}"
            raise OptionError(f"there is no port {text}", option=option, offset=offset, hint=hint)
        return number
    port = SERVICES.get(text)
    if port is None:
        raise _unknown(text, option, offset)
    return port


def parse_nat_ports(text: str, *, option: int, offset: int = 0) -> NatPortRange:
    """Return the ports of ``a``, ``a-b`` or ``a-b/base`` of a NAT target; raises OptionError.

    A name is only valid for a single port or the base, because names may contain hyphens.
    """
    low, end = unsigned_start(text, _MOST)
    if low is None:
        return NatPortRange(Interval.point(parse_port(text, option=option, offset=offset)))
    if end == len(text):
        return NatPortRange(Interval.point(low))
    if text[end] != "-":
        hint = "a range is written with a hyphen" if text[end] == ":" else None
        raise OptionError(
            f'unexpected "{text[end:]}" after the port', option=option, offset=offset + end, hint=hint
        )
    rest = text[end + 1 :]
    after = offset + end + 1
    high, end = unsigned_start(rest, _MOST)
    if high is None:
        hint = "a range cannot contain names"
        raise OptionError(f'"{rest.partition("/")[0]}" is not a port', option=option, offset=after, hint=hint)
    if high < low:
        raise OptionError(f'port range "{text}" ends before it begins', option=option, offset=offset)
    if end == len(rest):
        return NatPortRange(Interval(low, high))
    if rest[end] != "/":
        raise OptionError(f'unexpected "{rest[end:]}" after the ports', option=option, offset=after + end)
    base = parse_port(rest[end + 1 :], option=option, offset=after + end + 1)
    if base == 0:
        raise OptionError("port 0 cannot be the base", option=option, offset=after + end + 1)
    return NatPortRange(Interval(low, high), base)


def _unknown(text: str, option: int, offset: int) -> OptionError:
    return OptionError(f'unknown port "{text}"', option=option, offset=offset, hint=_HINT)
