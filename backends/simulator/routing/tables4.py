"""IPv4 routing tables, with the entries that the kernel adds for the addresses of devices."""

from __future__ import annotations

from collections.abc import Iterable

from backends.model.node import Address
from backends.simulator.routing.path import LOOPBACK, Path
from translate.dataclass import dataclass, field
from translate.ir import AddressType, Interval

__all__ = ["Device", "Entry", "Table", "connected_entries", "local_entries", "primary_addresses"]


@dataclass(frozen=True, slots=True)
class Entry:
    """A route of one table, with the :class:`Path` of packets that take it and its prefix length."""

    dst: Interval
    type: AddressType
    dev: str
    via: int | None
    source: int
    path: Path = field(init=False)
    length: int = field(init=False)

    def __post_init__(self) -> None:
        path = Path(type=self.type, dev=self.dev, via=self.via, source=self.source)
        object.__setattr__(self, "path", path)
        object.__setattr__(self, "length", 33 - self.dst.size.bit_length())


@dataclass(frozen=True, slots=True)
class Device:
    """A device with its addresses; ``primary`` has the first of each network."""

    name: str
    addresses: tuple[Address, ...]
    primary: tuple[Address, ...]


class Table:
    """A routing table; the first route to a prefix is the one that is used."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        lengths: dict[int, dict[int, Entry]] = {}
        for e in entries:
            lengths.setdefault(e.dst.size, {}).setdefault(e.dst.low, e)
        self._by_length = sorted(lengths.items())

    def find(self, address: int) -> Entry | None:
        """Return the route with the longest prefix (``fib_table_lookup``)."""
        for size, entries in self._by_length:
            entry = entries.get(address & -size)
            if entry is not None:
                return entry
        return None


def primary_addresses(addresses: tuple[Address, ...]) -> tuple[Address, ...]:
    """Return the primary addresses, the first of each network (without ``IFA_F_SECONDARY``)."""
    networks: set[Interval] = set()
    primary = []
    for a in addresses:
        if a.network not in networks:
            networks.add(a.network)
            primary.append(a)
    return tuple(primary)


def local_entries(device: Device) -> list[Entry]:
    """Return the entries that ``fib_add_ifaddr`` adds to the local table."""
    entries = []
    primary = {a.network: a for a in device.primary}
    for a in device.addresses:
        source = primary[a.network].value
        entries.append(Entry(Interval.point(a.value), AddressType.LOCAL, device.name, None, source))
        if device.name == LOOPBACK:
            entries.append(Entry(a.network, AddressType.LOCAL, device.name, None, a.value))
        if a.prefix_length < 31 and a is primary[a.network]:
            last = Interval.point(a.network.high)
            entries.append(Entry(last, AddressType.BROADCAST, device.name, None, source))
    return entries


def connected_entries(device: Device) -> list[Entry]:
    """Return the entries that ``fib_add_ifaddr`` adds to the main table: connected networks."""
    return [
        Entry(a.network, AddressType.UNICAST, device.name, None, a.value)
        for a in device.primary
        if device.name != LOOPBACK and a.prefix_length < 32
    ]
