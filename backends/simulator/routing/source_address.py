"""Source address selection of IPv6: the rules of RFC 6724 as ``ipv6_dev_get_saddr`` implements them.

Only the rules that can distinguish static addresses: 1 (same address), 2 (scope), 5 (interface), 6 (label),
and 8 (longest match). Of equally good addresses the first one is taken.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from backends.model.node import Address
from backends.simulator.routing.scopes import scope_of
from translate.ir import Family, Interval, parse_address

__all__ = ["select_source"]


def _prefix(text: str, length: int) -> Interval:
    return Interval.prefix(parse_address(Family.IP6, text), length, 128)


_LABELS: Final = (
    (_prefix("::1", 128), 0),
    (_prefix("::ffff:0:0", 96), 4),
    (_prefix("::", 96), 3),
    (_prefix("2001::", 32), 6),
    (_prefix("2001:10::", 28), 7),
    (_prefix("3ffe::", 16), 12),
    (_prefix("2002::", 16), 2),
    (_prefix("fec0::", 10), 11),
    (_prefix("fc00::", 7), 5),
)
_OTHER_LABEL: Final = 1
_ORCHID: Final = _prefix("2001:10::", 28)


def select_source(candidates: Iterable[tuple[Address, str]], dst: int, dev: str) -> int:
    """Return the best of ``candidates``, each with its device, for ``dst`` out of ``dev``; 0: none."""
    best: tuple[int, ...] | None = None
    chosen = 0
    for address, name in candidates:
        value = address.value
        score = (
            value == dst,
            _scope_score(value, dst),
            name == dev,
            _label(value) == _label(dst),
            (value in _ORCHID) == (dst in _ORCHID),
            min(128 - (value ^ dst).bit_length(), address.prefix_length),
        )
        if best is None or score > best:
            best, chosen = score, value
    return chosen


def _scope_score(source: int, dst: int) -> int:
    """Return the score of rule 2: the smallest sufficient scope, else the largest."""
    scope = scope_of(source)
    return -scope if scope >= scope_of(dst) else scope - 128


def _label(address: int) -> int:
    """Return the label of an address in the default table of ``ip6addrlbl``, longest prefix first."""
    return next((label for prefix, label in _LABELS if address in prefix), _OTHER_LABEL)
