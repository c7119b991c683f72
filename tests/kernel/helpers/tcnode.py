"""A TAP node with a tc program on it, for tests that look into the program's maps and send many packets."""

from __future__ import annotations

import dataclasses
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from backends.model.node import Node, node_from_json
from backends.replay.loader import Loader
from backends.replay.worker import Worker
from backends.tc_ebpf.counters import read_counters
from backends.tc_ebpf.dataplane import Dataplane
from backends.tc_ebpf.loader import TcEbpfLoader
from backends.testbed.suppress_stack_rst import suppress_stack_rst
from tests.lab.unobservednode import UnobservedNode
from translate.bpf import emit
from translate.ir import Family
from translate.passes import lower
from translate.read import read_ruleset

BURST = 256
"""The number of packets sent before those that left are read: fewer than a device's queue holds."""

NODES = {
    Family.IP: """{"interfaces": {"eth0": ["192.0.2.2/24"], "pod0": ["10.0.0.1/8"]},
        "routes": [{"dst": "default", "via": "192.0.2.1", "dev": "eth0"}]}""",
    Family.IP6: """{"interfaces": {"eth0": ["2001:db8::2/64"], "pod0": ["fd00::1/48"]},
        "routes": [{"dst": "default", "via": "2001:db8::1", "dev": "eth0"}]}""",
}


def node_of(family: Family) -> Node:
    return node_from_json(NODES[family], name="node")


@dataclass(frozen=True)
class StartWith:
    node: Node
    loader: Loader

    def __call__(self) -> Server:
        tap = UnobservedNode(self.node, self.loader.family)
        suppress_stack_rst(self.loader.reset_fallback, self.loader.family)
        self.loader.load(tap)
        tap.apply_sysctls()
        return Server(tap, self.loader)


@dataclass
class Server:
    """The child's side: a message ``("name", …)`` calls the method ``name``."""

    tap: UnobservedNode
    loader: Loader

    def __call__(self, message: tuple[Any, ...]) -> Any:
        name, *arguments = message
        return getattr(self, name)(*arguments)

    def send(self, device: str, packets: Sequence[bytes]) -> list[bytes]:
        """Send packets into a device; return the packets that left, by any device."""
        left: list[bytes] = []
        for begin in range(0, len(packets), BURST):
            self.tap.inject_all(device, packets[begin : begin + BURST])
            left += self.tap.left()
        return left

    def send_from_both(
        self, first: tuple[str, Sequence[bytes]], second: tuple[str, Sequence[bytes]]
    ) -> list[bytes]:
        """Send packets into two devices at once, each on its own CPU if there are two."""
        left: list[bytes] = []
        longest = max(len(first[1]), len(second[1]))
        for begin in range(0, longest, BURST):
            threads = [
                threading.Thread(target=self._on, args=(cpu, device, packets[begin : begin + BURST]))
                for cpu, (device, packets) in enumerate((first, second))
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            left += self.tap.left()
        return left

    def _on(self, cpu: int, device: str, packets: Sequence[bytes]) -> None:
        available = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {available[cpu % len(available)]})
        self.tap.inject_all(device, packets)

    def counters(self) -> dict[str, int]:
        return read_counters(self.dataplane().map("counters"))

    def entries(self, name: str) -> list[tuple[bytes, bytes]]:
        return list(self.dataplane().map(name).entries())

    def dataplane(self) -> Dataplane:
        assert isinstance(self.loader, TcEbpfLoader)
        assert self.loader.dataplane is not None
        return self.loader.dataplane

    def run(self, what: Callable[[Server], Any]) -> Any:
        return what(self)

    def close(self) -> None:
        self.loader.close()


@contextmanager
def tc_node(*rules: str, family: Family = Family.IP, connections: int | None = None) -> Iterator[Worker]:
    """Load rules into a node of two devices, pod0 with the clients and eth0 with the servers."""
    ruleset = read_ruleset("\n".join((*rules, "")).encode(), name="rules", family=family)
    output = emit(lower(ruleset, level=2))
    if connections is not None:
        output = dataclasses.replace(output, connections=connections)
    with Worker(StartWith(node_of(family), TcEbpfLoader(output))) as worker:
        yield worker
