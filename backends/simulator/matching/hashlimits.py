"""The tables of ``-m hashlimit``: a token bucket for each value of some fields (``xt_hashlimit``).

A table belongs to the network namespace, and all rules with its name share it. Its key, rate and times are
those of the rule that was loaded first (``htable_find_get``); only the choice between ``--hashlimit-upto``
and ``--hashlimit-above`` belongs to each rule. The simulator forgets a bucket as soon as it expires; the
kernel removes expired buckets once per interval.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from backends.model.leading import leading_ports
from backends.model.packet import Packet, PortClass
from backends.simulator.matching.fields import HotDrop
from translate.ir import PORT_PROTOCOLS, Family, Field, HashLimit

__all__ = ["HashTables", "first_of_each"]

_MILLISECOND: Final = 10**6


def first_of_each(tests: Iterable[HashLimit]) -> dict[str, HashLimit]:
    """Return for each table the test that is loaded first."""
    first: dict[str, HashLimit] = {}
    for test in tests:
        first.setdefault(test.name, test)
    return first


@dataclass(slots=True)
class HashTables:
    """All tables of one run, empty when it begins."""

    first: Mapping[str, HashLimit]
    buckets: dict[tuple[str, tuple[object, ...]], tuple[int, int]] = field(default_factory=dict)
    """The times in nanoseconds at which each bucket is full again and at which its last packet came."""

    def matches(self, test: HashLimit, packet: Packet, now: int) -> bool:
        """Take from the packet's bucket, and return whether the test holds (``hashlimit_mt_common``)."""
        table = self.first[test.name]
        place = (test.name, tuple(_part(table, where, packet) for where in table.key))
        full, used = self.buckets.get(place, (0, now))
        if now - used >= table.expire * _MILLISECOND:
            full = 0
        after = max(full, now) + table.interval
        within = after - now <= table.capacity
        self.buckets[place] = (after if within else full, now)
        return within is not test.above


def _part(table: HashLimit, where: Field, packet: Packet) -> object:
    match where:
        case Field.SADDR:
            return packet.src & table.source_mask
        case Field.DADDR:
            return packet.dst & table.destination_mask
        case _ if packet.truncated:
            return _leading_port(packet, where)
        case _ if packet.is_later_fragment:
            return _data_as_port(packet, where)
        case _:
            port = packet.sport if where is Field.SPORT else packet.dport
            # A port that the kernel has picked differs between connections.
            return port if isinstance(port, int | PortClass) else 0


def _leading_port(packet: Packet, where: Field) -> int:
    """Return a port of a truncated packet; one that ends before its ports is dropped."""
    if packet.proto not in PORT_PROTOCOLS:
        return 0
    ports = leading_ports(packet)
    if ports is None:
        raise HotDrop
    return ports[where is not Field.SPORT]


def _data_as_port(packet: Packet, where: Field) -> int:
    """Return the port that ``hashlimit_init_dst`` reads from data of a later fragment; 0 in IPv6."""
    if packet.family is Family.IP6 or packet.proto not in PORT_PROTOCOLS:
        return 0
    at = 0 if where is Field.SPORT else 2
    return int.from_bytes(packet.payload[at : at + 2], "big")
