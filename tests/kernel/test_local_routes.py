"""The kernel routes packets to an IPv6 address some time after it was added; nodes wait for it."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from backends.model.node import node_from_json
from backends.replay.worker import Worker
from backends.testbed import localroutes
from backends.testbed.localroutes import wait_for_local_routes
from backends.testbed.netlink import Routing
from backends.testbed.tapnode import TapNode
from translate.errors import MachineError
from translate.ir import Family

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.skipif(os.geteuid() != 0, reason="kernel backends need root"),
]

NODE = '{"interfaces": {"in0": ["fd00::1/64"]}}'
ADDRESSES = range(0xFD00 << 112 | 2, 0xFD00 << 112 | 50)
_RTF_LOCAL = 0x80000000


@dataclass(frozen=True)
class Add:
    """Adds addresses to a node, and returns whether each is local after waiting for it."""

    def run(self) -> list[bool]:
        tap = TapNode(node_from_json(NODE, name="node"), Family.IP6)
        # Workers of the kernel run here only while this process sleeps: without waiting, most are not local.
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
        with Routing() as routing:
            return [_added(routing, tap.indexes["in0"], address) for address in ADDRESSES]


def _added(routing: Routing, index: int, address: int) -> bool:
    routing.add_address(index, Family.IP6, address, 64)
    wait_for_local_routes([address])
    return _is_local(address)


def _is_local(address: int) -> bool:
    routes = (line.split() for line in Path("/proc/thread-self/net/ipv6_route").read_text().splitlines())
    return any(int(route[0], 16) == address and int(route[8], 16) & _RTF_LOCAL for route in routes)


def _serve() -> Callable[[Add], list[bool]]:
    return Add.run


def test_an_address_is_local_after_waiting() -> None:
    with Worker(_serve) as worker:
        states = worker.ask(Add())
    assert all(states)


def test_an_address_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(localroutes, "_PATIENCE", 0)
    with pytest.raises(
        MachineError, match="the kernel has not added the host route of its address 2001:db8::77"
    ):
        wait_for_local_routes([0x20010DB8 << 96 | 0x77])
