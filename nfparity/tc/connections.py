"""The connections of a loaded program, read from its pinned tables."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Final

from nfparity.tc.place import DataplanePlace
from nfparity.tc.record import Record
from translate import bpf
from translate.dataclass import dataclass
from translate.errors import MachineError
from translate.ir import PORT_PROTOCOLS, Family, Protocol, format_address

__all__ = ["Connection", "ConnectionTuple", "connections"]

_SEEN_REPLY: Final = 1 << 1
_ASSURED: Final = 1 << 2
_CONFIRMED: Final = 1 << 3
_SRC_NAT: Final = 1 << 4
_DST_NAT: Final = 1 << 5

_TCP_STATES: Final = (
    "NONE",
    "SYN_SENT",
    "SYN_RECV",
    "ESTABLISHED",
    "FIN_WAIT",
    "CLOSE_WAIT",
    "LAST_ACK",
    "TIME_WAIT",
    "CLOSE",
    "SYN_SENT2",
)
"""The states in the order of the enum in ``tcpstates.h``, with the names of conntrack(8)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionTuple:
    """One direction; for ICMP, ``sport`` is the identifier and ``dport`` type and code as one number."""

    src: int
    dst: int
    sport: int
    dport: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """A connection; ``timeout`` is in whole seconds, ``state`` is TCP's, otherwise None."""

    family: Family
    proto: int
    original: ConnectionTuple
    reply: ConnectionTuple
    timeout: int
    state: str | None
    replied: bool
    assured: bool
    snat: bool
    dnat: bool
    mark: int

    def line(self) -> str:
        """Return a line in the format of ``conntrack -L``."""
        number = self.proto
        name = Protocol(number).name.lower() if number in set(Protocol) else "unknown"
        state = f" {self.state}" if self.state is not None else ""
        there = "" if self.replied else " [UNREPLIED]"
        assured = " [ASSURED]" if self.assured else ""
        original, reply = self._words(self.original), self._words(self.reply)
        return f"{name:<8} {number} {self.timeout}{state} {original}{there} {reply}{assured} mark={self.mark}"

    def data(self) -> dict[str, object]:
        """Return the connection as plain data."""
        return {
            "proto": self.proto,
            "timeout": self.timeout,
            "state": self.state,
            "original": self._data(self.original),
            "reply": self._data(self.reply),
            "replied": self.replied,
            "assured": self.assured,
            "snat": self.snat,
            "dnat": self.dnat,
            "mark": self.mark,
        }

    def _data(self, half: ConnectionTuple) -> dict[str, object]:
        data: dict[str, object] = {
            "src": format_address(self.family, half.src),
            "dst": format_address(self.family, half.dst),
        }
        if self.proto in (Protocol.ICMP, Protocol.ICMPV6):
            return {**data, "type": half.dport >> 8, "code": half.dport & 255, "id": half.sport}
        if self.proto in PORT_PROTOCOLS:
            return {**data, "sport": half.sport, "dport": half.dport}
        return data

    def _words(self, half: ConnectionTuple) -> str:
        return " ".join(f"{key}={value}" for key, value in self._data(half).items())


def connections(place: DataplanePlace, record: Record) -> Iterator[Connection]:
    """Yield the connections that have not timed out.

    Raises MachineError if the program stores them in a form that this version does not know.
    """
    declared = next(map_ for map_ in bpf.runtime_maps(place.family) if map_.name == "conns")
    if declared.layout() != record.source.layout.get("conns"):
        raise MachineError(
            "the loaded program stores connections in another form (another version of nfparity?)"
        )
    structure = bpf.runtime_types(place.family).structures["conn"]
    table = place.map(record.generation, "conns")
    now = time.clock_gettime_ns(time.CLOCK_MONOTONIC)  # bpf_ktime_get_ns
    for _, value in table.entries():
        numbers = structure.numbers(value)
        if numbers["expires"] > now and numbers["status"] & _CONFIRMED:
            yield _connection(place.family, numbers, now)
    table.close()


def _connection(family: Family, numbers: Mapping[str, int], now: int) -> Connection:
    status, proto = numbers["status"], numbers["orig.proto"]
    state = numbers["tcp_state"]
    return Connection(
        family=family,
        proto=proto,
        original=_tuple(numbers, "orig"),
        reply=_tuple(numbers, "reply"),
        timeout=(numbers["expires"] - now) // 1_000_000_000,
        state=_TCP_STATES[state] if proto == Protocol.TCP and state < len(_TCP_STATES) else None,
        replied=bool(status & _SEEN_REPLY),
        assured=bool(status & _ASSURED),
        snat=bool(status & _SRC_NAT),
        dnat=bool(status & _DST_NAT),
        mark=numbers["mark"],
    )


def _tuple(numbers: Mapping[str, int], name: str) -> ConnectionTuple:
    return ConnectionTuple(
        src=numbers[f"{name}.src"],
        dst=numbers[f"{name}.dst"],
        sport=numbers[f"{name}.sport"],
        dport=numbers[f"{name}.dport"],
    )
