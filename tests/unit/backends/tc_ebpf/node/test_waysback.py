"""Routes of IPv6 by device: the trie finds what the kernel's lookup by device finds."""

from __future__ import annotations

import pytest

from backends.tc_ebpf.node.listings import ListedRoute
from backends.tc_ebpf.node.waysback import ROW_LOCAL, WayBack, ways_back
from translate.errors import MachineError

NET = 0xFD00 << 112
UNICAST, LOCAL, UNREACHABLE = 1, 2, 7
LO, ETH0, POD0 = 1, 2, 3


def route(
    oif: int | None, *, kind: int = UNICAST, table: int = 254, metric: int = 256, cached: bool = False
) -> ListedRoute:
    return ListedRoute(
        table=table,
        type=kind,
        destination=NET,
        length=64,
        oif=oif,
        gateway=None,
        source=None,
        metric=metric,
        mtu=0,
        cached=cached,
    )


def rows(*routes: ListedRoute) -> dict[int, int]:
    """Return the types of the trie by row."""
    found = ways_back(routes)
    assert all(way[1:3] == (NET, 64) for way in found)
    return {way.row: way.type for way in found}


def test_each_device_has_its_own_route() -> None:
    assert ways_back([route(ETH0)]) == [WayBack(0, NET, 64, UNICAST), WayBack(ETH0, NET, 64, UNICAST)]
    assert rows(route(ETH0), route(POD0)) == {0: UNICAST, ETH0: UNICAST, POD0: UNICAST}


def test_the_least_metric_is_first() -> None:
    refusing = route(LO, kind=UNREACHABLE, metric=100)
    assert rows(route(ETH0), refusing)[0] == UNREACHABLE
    assert rows(route(ETH0), refusing)[ETH0] == UNICAST
    assert rows(route(ETH0), route(LO, kind=UNREACHABLE, metric=1024))[0] == UNICAST
    assert rows(route(ETH0), route(LO, kind=UNREACHABLE))[0] == UNICAST  # the order of the dump


def test_tables_are_apart() -> None:
    assert rows(route(ETH0), route(POD0, kind=LOCAL, table=255)) == {
        0: UNICAST,
        ETH0: UNICAST,
        ROW_LOCAL: LOCAL,
        ROW_LOCAL | POD0: LOCAL,
    }
    assert rows(route(ETH0, table=100)) == {}


def test_a_cached_route_is_none_of_the_table() -> None:
    assert rows(route(ETH0, cached=True)) == {}


def test_a_route_out_of_the_loopback_refuses() -> None:
    assert rows(route(LO))[0] == UNREACHABLE


def test_several_devices_are_refused() -> None:
    with pytest.raises(MachineError, match="only routes through one device"):
        ways_back([route(None)])
