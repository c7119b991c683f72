"""The tables of ``-m hashlimit``: a bucket or a window for each value of some fields (``xt_hashlimit``).

A table belongs to the network namespace, and all rules with its name share it. Its key, rate and times are
those of the rule that was loaded first (``htable_find_get``); only the choice between ``--hashlimit-upto``
and ``--hashlimit-above`` belongs to each rule. The simulator forgets a bucket as soon as it expires; the
kernel removes expired buckets once per interval.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from backends.model.leading import leading
from backends.model.packet import Packet, PortClass
from backends.simulator.matching.undecided import Undecided
from backends.simulator.matching.view import HotDrop
from translate.dataclass import dataclass, field
from translate.ir import PORT_PROTOCOLS, Family, Field, HashLimit

__all__ = ["HashTables", "first_of_each"]

_SECOND: Final = 10**9
_MILLISECOND: Final = 10**6
_INDEXED: Final = frozenset({50, 51})
"""ESP and AH, whose SPI counts as both ports."""
_PORTS_AT: Final[dict[int, int]] = {**dict.fromkeys(PORT_PROTOCOLS, 0), 50: 0, 51: 4}
"""The place of the ports after the IP header, by protocol (``proto_ports_offset``)."""


def first_of_each(tests: Iterable[HashLimit]) -> dict[str, HashLimit]:
    """Return for each table the test that is loaded first."""
    first: dict[str, HashLimit] = {}
    for test in tests:
        first.setdefault(test.name, test)
    return first


class _Window(NamedTuple):
    """A window with its packets: the times in nanoseconds of the first and the last one.

    ``closed``: too many packets came in the window before.
    """

    begun: int
    used: int
    packets: int
    closed: bool = False


@dataclass(slots=True)
class HashTables:
    """All tables of one run, empty when it begins."""

    first: Mapping[str, HashLimit]
    buckets: dict[tuple[str, tuple[object, ...]], tuple[int, int]] = field(default_factory=dict)
    """The times in nanoseconds at which each bucket is full again and at which its last packet came."""
    windows: dict[tuple[str, tuple[object, ...]], _Window] = field(default_factory=dict)

    def begin(self) -> None:
        """Forget all packets."""
        self.buckets.clear()
        self.windows.clear()

    @property
    def holds_any(self) -> bool:
        """Return whether a packet has been counted."""
        return bool(self.buckets or self.windows)

    def matches(self, test: HashLimit, packet: Packet, now: int) -> bool:
        """Take from the packet's bucket, and return whether the test holds (``hashlimit_mt_common``)."""
        table = self.first[test.name]
        place = (test.name, tuple(_part(table, where, packet) for where in table.key))
        if bool(test.window) is not bool(table.window):
            raise Undecided(f"the table {test.name} of -m hashlimit has buckets and windows")
        if table.window:
            known = self.windows.get(place)
            self.windows[place] = window = _counted(table, known, now)
            return (not window.closed and window.packets <= table.burst) is not test.above
        full, used = self.buckets.get(place, (0, now))
        if now - used >= table.expire * _MILLISECOND:
            full = 0
        after = max(full, now) + table.interval
        within = after - now <= table.capacity
        self.buckets[place] = (after if within else full, now)
        return within is not test.above


def _counted(table: HashLimit, known: _Window | None, now: int) -> _Window:
    """Return the window after another packet (``rateinfo_recalc``)."""
    if known is None or now - known.used >= table.expire * _MILLISECOND:
        return _Window(now, now, 1)
    passed, length = now - known.begun, table.window * _SECOND
    if passed < length:
        return known._replace(used=now, packets=known.packets + 1)
    return _Window(now, now, 1, closed=known.packets * length > passed * table.rate)


def _part(table: HashLimit, where: Field, packet: Packet) -> object:
    match where:
        case Field.SADDR:
            return packet.src & table.source_mask
        case Field.DADDR:
            return packet.dst & table.destination_mask
        case _ if packet.proto in _INDEXED or packet.truncated or packet.is_later_fragment:
            return _bytes_as_port(packet, where)
        case _:
            port = packet.sport if where is Field.SPORT else packet.dport
            # A port that the kernel has picked differs between connections.
            return port if isinstance(port, int | PortClass) else 0


def _bytes_as_port(packet: Packet, where: Field) -> int:
    """Return the bytes that ``hashlimit_init_dst`` takes for a port; 0 for protocols without ports.

    In ESP and AH, the ports are the two halves of the SPI (``proto_ports_offset``). Raises HotDrop for a
    packet that ends before its ports.
    """
    if packet.proto not in _PORTS_AT or (packet.is_later_fragment and packet.family is Family.IP6):
        return 0
    whole = packet.proto in _INDEXED and not (packet.truncated or packet.is_later_fragment)
    start = _PORTS_AT[packet.proto]
    ports = (leading(packet) if whole else packet.payload)[start : start + 4]
    if len(ports) < 4:
        raise HotDrop
    return int.from_bytes(ports[:2] if where is Field.SPORT else ports[2:], "big")
