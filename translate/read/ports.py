"""Ports and port ranges as iptables writes them."""

from __future__ import annotations

from translate.ir import Interval
from translate.read.declaration import OptionError
from translate.read.names import service_port

__all__ = ["parse_port", "parse_port_range"]


def parse_port(text: str, *, option: int, offset: int = 0) -> int:
    """Return a port given by number or by a name of the fixed table; raises OptionError."""
    port = service_port(text)
    if port is None:
        raise OptionError(
            f'unknown port "{text}"',
            option=option,
            offset=offset,
            hint="write a number from 0 to 65535; names come from a fixed table",
        )
    return port


def parse_port_range(text: str, *, option: int, separator: str = ":", offset: int = 0) -> Interval:
    """Return the ports of ``a``, ``a:b``, ``:b`` or ``a:``; raises OptionError.

    A missing end is 0 or 65535 (``xtopt_parse_mport``).
    """
    low_text, found, high_text = text.partition(separator)
    if not found:
        return Interval.point(parse_port(text, option=option, offset=offset))
    low = parse_port(low_text, option=option, offset=offset) if low_text else 0
    after = offset + len(low_text) + 1
    high = parse_port(high_text, option=option, offset=after) if high_text else 65535
    if low > high:
        raise OptionError(f'port range "{text}" ends before it begins', option=option, offset=offset)
    return Interval(low, high)
