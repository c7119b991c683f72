"""What the program must know of the node: devices, local addresses, routes; read from the namespace.

The kernel goes on routing. The program asks these maps where no helper of a tc program answers:
what type an address is (``addrtype``, and whether INPUT is next), which address masquerading takes
(``inet_select_addr``), and where a packet made here goes when its destination has changed.
"""

from __future__ import annotations

import socket
import struct
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from backends.node import Node
from translate.errors import MachineError

__all__ = ["Facts", "read_facts"]

_TABLE_MAIN: Final = 254
_TABLE_LOCAL: Final = 255
_SCOPE_UNIVERSE: Final = 0
_IFA_F_SECONDARY: Final = 1
_RTN_UNICAST: Final = 1
_RTN_LOCAL: Final = 2
_ROUTE_LOCALNET: Final = 1
_RP_STRICT: Final = 2
_RP_LOOSE: Final = 4

Entry = tuple[bytes, bytes]


@dataclass(frozen=True, slots=True)
class Facts:
    """Packed keys and values, by the name of the map that they belong into."""

    entries: dict[str, list[Entry]]
    devices: tuple[int, ...]
    """The interfaces to attach to: all of them, ``lo`` too."""


@dataclass(frozen=True, slots=True)
class _Address:
    index: int
    value: int
    length: int
    scope: int
    secondary: bool

    @property
    def usable(self) -> bool:
        """Whether packets that go anywhere may come from it."""
        return not self.secondary and self.scope == _SCOPE_UNIVERSE

    def holds(self, address: int) -> bool:
        """Whether ``address`` is in this one's network."""
        return self.value >> (32 - self.length) == address >> (32 - self.length)

    def covers(self, other: _Address) -> bool:
        """Whether the network of ``other`` lies in this one's."""
        return other.length >= self.length and self.holds(other.value)


def read_facts(node: Node, *, rp_filter: dict[str, int]) -> Facts:
    """Read devices, addresses and routes of the current network namespace.

    ``rp_filter`` is the effective mode per device; ``node`` has conntrack's sysctls. Raises
    MachineError for routes of a kind that the program does not follow.
    """
    try:
        from pyroute2 import IPRoute
    except ImportError as e:
        raise MachineError(f"pyroute2 is not installed for {sys.executable}") from e

    with IPRoute() as ipr:
        found = list(ipr.get_links())
        addresses = [_address(a) for a in ipr.get_addr(family=socket.AF_INET)]
        local = list(ipr.get_routes(family=socket.AF_INET, table=_TABLE_LOCAL))
        main = list(ipr.get_routes(family=socket.AF_INET, table=_TABLE_MAIN))
    links = {link["index"]: link.get_attr("IFLA_IFNAME") for link in found}
    macs = {link["index"]: _mac(link.get_attr("IFLA_ADDRESS")) for link in found}
    entries = {
        "devices": list(_devices(links, macs, addresses, rp_filter)),
        "locals": list(_locals(local, {a.value: a.index for a in addresses})),
        "routes": list(_routes(main, links, addresses)),
        "primary": list(_primary(links, addresses)),
        "settings": [(struct.pack("=I", 0), _settings(node))],
    }
    return Facts(entries, tuple(links))


def _address(message: Any) -> _Address:
    value = _number(message.get_attr("IFA_LOCAL"))
    flags = message.get_attr("IFA_FLAGS") or message["flags"]
    return _Address(
        message["index"], value, message["prefixlen"], message["scope"], bool(flags & _IFA_F_SECONDARY)
    )


def _mac(text: str | None) -> bytes:
    return bytes.fromhex((text or "").replace(":", ""))[:6].ljust(8, b"\0")


def _devices(
    links: dict[int, str], macs: dict[int, bytes], addresses: list[_Address], rp_filter: dict[str, int]
) -> Iterator[Entry]:
    for index, name in links.items():
        first = next((a.value for a in addresses if a.index == index), 0)
        flags = {1: _RP_STRICT, 2: _RP_LOOSE}.get(rp_filter.get(name, 0), 0)
        if _conf(name, "route_localnet") or _conf("all", "route_localnet"):
            flags |= _ROUTE_LOCALNET
        yield struct.pack("=I", index), struct.pack("=16sII8s", name.encode(), first, flags, macs[index])


def _locals(routes: list[Any], own: dict[int, int]) -> Iterator[Entry]:
    seen = set()
    for route in routes:
        address, length = _destination(route)
        if (address, length) in seen:
            continue  # the same address on several devices: the first one is found
        seen.add((address, length))
        # Of several devices with one address, __ip_dev_find finds the one that got it last.
        home = own.get(address, 0) if route["type"] == _RTN_LOCAL and length == 32 else 0
        value = struct.pack("=III", route["type"], route.get_attr("RTA_OIF") or 0, home)
        yield _prefix(address, length), value


def _routes(routes: list[Any], links: dict[int, str], addresses: list[_Address]) -> Iterator[Entry]:
    best: dict[tuple[int, int], tuple[int, bytes]] = {}
    for route in routes:
        address, length = _destination(route)
        oif = route.get_attr("RTA_OIF")
        if route["type"] != _RTN_UNICAST or oif is None:
            raise MachineError("the tc program follows unicast routes through one device only")
        gateway = route.get_attr("RTA_GATEWAY")
        via = _number(gateway) if gateway else 0
        preferred = route.get_attr("RTA_PREFSRC")
        source = _number(preferred) if preferred else _select(links, addresses, oif, via or None) or 0
        metric = route.get_attr("RTA_PRIORITY") or 0
        known = best.get((address, length))
        if known is None or metric < known[0]:
            best[address, length] = metric, struct.pack("=III", oif, via, source)
    for (address, length), (_, value) in best.items():
        yield _prefix(address, length), value


def _primary(links: dict[int, str], addresses: list[_Address]) -> Iterator[Entry]:
    """``inet_select_addr(device, next hop, universe)`` as a trie of device and next hop."""
    for index in links:
        default = _select(links, addresses, index, None)
        if default is None:
            continue
        yield _source(index, 0, 0), struct.pack("=I", default)
        here = [a for a in addresses if a.index == index and a.usable]
        for address in here:
            # In the order of the list, not of the lengths: an earlier, wider network comes first.
            first = next(a for a in here if a.covers(address))
            if address.length:
                yield _source(index, address.value, address.length), struct.pack("=I", first.value)


def _select(links: dict[int, str], addresses: list[_Address], index: int, next_hop: int | None) -> int | None:
    """``inet_select_addr``.

    The first primary address of the device whose network holds the next hop; without one, its
    first primary address; without any, the first usable address of the first device that has one.
    """
    usable = [a for a in addresses if a.usable]
    here = [a for a in usable if a.index == index]
    for address in here:
        if next_hop is None or address.holds(next_hop):
            return address.value
    if here:
        return here[0].value
    return next((a.value for i in sorted(links) for a in usable if a.index == i), None)


def _settings(node: Node) -> bytes:
    # From the facts: these sysctls do not exist in a namespace that has no conntrack.
    names = ("tcp_loose", "tcp_be_liberal", "checksum")
    return struct.pack("=3I", *(node.sysctl(f"net.netfilter.nf_conntrack_{n}") != "0" for n in names))


def _destination(route: Any) -> tuple[int, int]:
    text = route.get_attr("RTA_DST")
    return (_number(text) if text else 0), route["dst_len"]


def _number(text: str) -> int:
    return int.from_bytes(socket.inet_aton(text), "big")


def _prefix(address: int, length: int) -> bytes:
    return struct.pack("=I", length) + address.to_bytes(4, "big")


def _source(index: int, address: int, length: int) -> bytes:
    mask = (1 << 32) - (1 << (32 - length))
    return struct.pack("=II", 32 + length, index) + (address & mask).to_bytes(4, "big")


def _conf(device: str, name: str) -> bool:
    return Path("/proc/sys/net/ipv4/conf", device, name).read_text().strip() != "0"
