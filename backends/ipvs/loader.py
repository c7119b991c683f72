"""Loads virtual services, the device kube-ipvs0 and the node's other rules into the test node."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from backends.model.packet import Packet
from backends.replay.loader import Loader, RuleId
from backends.testbed.command import run
from backends.testbed.localroutes import wait_for_local_routes
from backends.testbed.tapnode import TapNode
from translate.errors import MachineError
from translate.ir import Family, format_address

__all__ = ["DEVICE", "SYSCTLS", "IpvsLoader", "load_module"]

DEVICE: Final = "kube-ipvs0"
"""The device with the addresses of all services (``defaultDummyDevice`` of ``pkg/proxy/ipvs``)."""

SYSCTLS: Final = {
    "net/ipv4/vs/conntrack": "1",
    "net/ipv4/vs/expire_nodest_conn": "1",
    "net/ipv4/vs/expire_quiescent_template": "1",
}
"""The sysctls that kube-proxy sets in ipvs mode (``NewProxier`` of ``pkg/proxy/ipvs``).

It also sets ``conn_reuse_mode`` to 0 on kernels before 5.9.
"""

_OF_THE_REPLAY: Final = {
    # Packets of SCTP in flows are HEARTBEAT, which begin no connection otherwise (sctp_conn_schedule).
    "net/ipv4/vs/sloppy_sctp": "1",
}

_CONNECTIONS: Final = Path("/proc/thread-self/net/ip_vs_conn")
_PATIENCE: Final = 30.0
"""The greatest time in seconds to wait until connections have ended. The kernel needs some 10 ms."""


def load_module() -> None:
    """Load the module ip_vs. Raises MachineError if the kernel does not have it."""
    if _CONNECTIONS.exists():
        return
    done = run(("modprobe", "ip_vs"))
    if not _CONNECTIONS.exists():
        why = done.stderr.strip().splitlines()
        raise MachineError(f"this kernel has no ip_vs{f': {why[-1]}' if why else ''}")


class IpvsLoader(Loader):
    """Loads the services (text for ``ipvsadm-restore``) and then the rules of another loader.

    ``addresses`` are those of kube-ipvs0, a dummy device that is down, as on a node: the kernel has local
    routes to its addresses, and no packet can leave by it.
    """

    def __init__(
        self, services: str, addresses: Sequence[int], rules: Loader, *, persistent: bool = False
    ) -> None:
        self._services = services
        self._addresses = tuple(addresses)
        self._rules = rules
        self._persistent = persistent
        self.family = rules.family
        self.gap = rules.gap
        self.counts = rules.counts
        self.pins = rules.pins
        self.lists = rules.lists or persistent
        self.registers_again = rules.registers_again

    def load(self, tap: TapNode) -> None:
        """Load everything. Raises MachineError with the message of the tool or the kernel."""
        load_module()
        length = self.family.bits
        commands = [f"link add {DEVICE} type dummy"]
        commands += [
            f"address add {format_address(self.family, address)}/{length} dev {DEVICE}"
            for address in self._addresses
        ]
        _run(("ip", "-batch", "-"), "".join(f"{command}\n" for command in commands))
        if self.family is Family.IP6:
            wait_for_local_routes(self._addresses)
        for name, value in (SYSCTLS | _OF_THE_REPLAY).items():
            try:
                Path("/proc/sys", name).write_text(value)
            except OSError as e:
                raise MachineError(f"cannot set {name.replace('/', '.')} to {value}: {e.strerror}") from e
        self._add_services()
        self._rules.load(tap)
        self.lists = self._rules.lists or self._persistent
        self.gives_ports = self._rules.gives_ports

    def _add_services(self) -> None:
        _run(("ipvsadm", "--restore"), self._services)

    def forget_connections(self, tap: TapNode) -> None:
        """Forget every connection, and begin the turns of the schedulers anew.

        The only way to end connections of ip_vs is to delete their servers: with ``expire_nodest_conn`` a
        worker of the kernel then ends them (``expire_nodest_conn_handler``).
        """
        if _connections():
            _run(("ipvsadm", "--clear"), "")
            end = time.monotonic() + _PATIENCE
            while _connections():
                if time.monotonic() > end:
                    raise MachineError("the kernel keeps connections of ip_vs whose servers were deleted")
                time.sleep(0.001)
            self._add_services()
        self._rules.forget_connections(tap)

    def forget_lists(self) -> None:
        """Empty the lists of the rules; persistence ends with the connections."""
        if self._rules.lists:
            self._rules.forget_lists()

    def forget_one(self, tap: TapNode, sent: Packet) -> bool:
        """Return False: a single connection of ip_vs cannot be ended."""
        return False

    def counters(self) -> Mapping[RuleId, int]:
        """Return the counters of the rules."""
        return self._rules.counters()

    def close(self) -> None:
        """Close the rules."""
        self._rules.close()


def _connections() -> bool:
    """Return whether there are connections, or templates of persistence, in this network namespace."""
    with _CONNECTIONS.open() as file:
        file.readline()
        return bool(file.readline())


def _run(command: tuple[str, ...], text: str) -> None:
    done = run(command, text)
    if done.returncode or done.stderr.strip():
        message = done.stderr.strip() or f"status {done.returncode}"
        raise MachineError(f"{command[0]} does not take the services: {message}")
