"""The connections that a loaded program remembers, for a replay, which forgets them between flows."""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable
from typing import Final

from backends.tc_ebpf.programs.bpfmap import BpfMap
from translate.bpf import COUNTERS, runtime_types
from translate.ir import Family

__all__ = ["Connections"]

_ENTERED: Final = struct.pack("=I", tuple(COUNTERS).index("entered"))


class Connections:
    """The maps of connections of a program, which ``map_of`` returns by name. Methods raise MachineError.

    Nothing else may delete entries, except the program itself.
    """

    def __init__(self, map_of: Callable[[str], BpfMap], family: Family) -> None:
        types = runtime_types(family).structures
        self._tuple = types["tuple"]
        offsets = {declarator.name: offset for declarator, offset in types["conn"].offsets}
        self._reply = slice(offsets["reply"], offsets["reply"] + self._tuple.size)
        self._conns, self._replies, self._sources = map(map_of, ("conns", "replies", "sources"))
        self._counters = map_of("counters")
        self._deleted = self._entered()
        """The number of entered connections that are no longer there, as far as it is known."""

    def clear(self) -> None:
        """Forget every connection. The kernel walks all buckets of each map, which takes some time."""
        for table in (self._conns, self._replies, self._sources):
            table.clear()
        self._deleted = self._entered()

    def forget(self, *, src: int, dst: int, sport: int, dport: int, proto: int) -> None:
        """Forget the connection that began with a packet of these fields, if there is one."""
        key = self._tuple.pack(src=src, dst=dst, sport=sport, dport=dport, proto=proto)
        connection = self._conns.get(key)
        if connection is None:
            return
        self._conns.delete([key])
        self._deleted += 1
        reply = connection[self._reply]
        if self._replies.get(reply) == key:
            self._replies.delete([reply])
        source = self._tuple.pack(src=src, sport=sport, proto=proto)
        if self._sources.get(source) == key:
            self._sources.delete([source])

    def may_remain(self) -> bool:
        """Return whether there may be a connection; True also if the program itself has removed one."""
        return self._entered() != self._deleted

    def _entered(self) -> int:
        values = self._counters.get(_ENTERED) or b""
        return sum(int.from_bytes(values[at : at + 8], sys.byteorder) for at in range(0, len(values), 8))
