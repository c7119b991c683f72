"""The trie of the routes by device, for ``-m rpfilter`` over IPv6 (``runtime/waysback.h``).

IPv6 may have several routes to a prefix, in the order of their metrics. For a device, the kernel takes the
first one out of it (``rt6_device_match``). So each table has a row for every device with the first of these
routes, and a row with the first route of all.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from backends.tc_ebpf.node.listings import ListedRoute
from translate.errors import MachineError

__all__ = ["ROW_LOCAL", "WayBack", "ways_back"]

ROW_LOCAL: Final = 1 << 31
"""The bit of the rows of the local table; a device's number never has it."""

_TABLES: Final = {254: 0, 255: ROW_LOCAL}
_LOOPBACK: Final = 1
_RTN_UNICAST: Final = 1
_RTN_UNREACHABLE: Final = 7


class WayBack(NamedTuple):
    """A prefix in a row, and the type of its first route. The row of all devices has no device's number."""

    row: int
    address: int
    length: int
    type: int


def ways_back(routes: Iterable[ListedRoute]) -> list[WayBack]:
    """Return the trie for routes in the order of the kernel's dump.

    Raises MachineError for a route through several devices.
    """
    best: dict[tuple[int, int, int], tuple[int, int]] = {}
    for route in routes:
        table = _TABLES.get(route.table)
        if table is None or route.cached:
            continue
        kind = route.type
        if kind == _RTN_UNICAST and route.oif is None:
            raise MachineError("-m rpfilter of the tc program supports only routes through one device")
        if kind == _RTN_UNICAST and route.oif == _LOOPBACK:
            kind = _RTN_UNREACHABLE  # fib6_is_reject
        for row in {table, table | (route.oif or 0)}:
            key = row, route.destination, route.length
            if key not in best or route.metric < best[key][0]:
                best[key] = route.metric, kind
    return [WayBack(*key, kind) for key, (_, kind) in best.items()]
