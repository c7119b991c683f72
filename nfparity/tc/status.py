"""Status of the loaded program: devices, tables and counters."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator, Mapping
from typing import Final

from backends.tc_ebpf.counters import read_counters
from backends.tc_ebpf.filters import Filter, Filters, Side
from backends.tc_ebpf.programs.bpfmap import BpfMap
from nfparity.tc.place import DataplanePlace
from nfparity.tc.record import Record
from translate.dataclass import dataclass
from translate.ir import Family

__all__ = ["Attachment", "Status", "TableUse", "attachments", "status_of"]

_TABLES: Final = frozenset({1, 9, 11})
"""Types of maps whose number of entries changes: hash, LRU hash, trie (``enum bpf_map_type``)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    """A device, the number of the program at each side, and the filters that run before it.

    0 stands for no program.
    """

    device: str
    index: int
    programs: Mapping[Side, int]
    before: tuple[Filter, ...] = ()

    @property
    def complete(self) -> bool:
        """True if both sides have a program."""
        return all(self.programs.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class TableUse:
    """The number of entries in a table, and its size."""

    name: str
    entries: int
    max_entries: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """The status of one family's dataplane."""

    record: Record
    open: bool
    """True if packets are passed to it."""
    attached: tuple[Attachment, ...]
    tables: tuple[TableUse, ...]
    counters: Mapping[str, int]
    """Unusual events since the first load, by counter (``COUNTERS`` describes each)."""

    def data(self) -> dict[str, object]:
        """Return the status as plain data."""
        record = self.record
        return {
            "phase": record.phase.value,
            "open": self.open,
            "since": record.since,
            "rules": record.source.rules,
            "sha256": record.source.digest,
            "level": record.source.level,
            "direct": record.source.direct,
            "devices": [
                {
                    "device": attached.device,
                    "index": attached.index,
                    **{side.word: number or None for side, number in attached.programs.items()},
                    "before": [
                        {"side": f.side.word, "preference": f.preference, "kind": f.kind, "name": f.name}
                        for f in attached.before
                    ],
                }
                for attached in self.attached
            ],
            "tables": {
                table.name: {"entries": table.entries, "max_entries": table.max_entries}
                for table in self.tables
            },
            "counters": dict(self.counters),
            "sysctls": {f"net.ipv4.conf.{d}.{n}": value for (d, n), value in record.sysctls.items()},
        }


def status_of(place: DataplanePlace, record: Record) -> Status:
    """Compare the record with the kernel's state. Raises MachineError."""
    return Status(
        record=record,
        open=_is_open(place),
        attached=tuple(attachments(place.family)),
        tables=tuple(_uses(place, record)),
        counters=_counters(place),
    )


def _is_open(place: DataplanePlace) -> bool:
    try:
        gate = BpfMap.pinned(place.state("gate"))
    except FileNotFoundError:
        return False
    value = gate.get(struct.pack("=I", 0))
    gate.close()
    return value is not None and any(value)


def _counters(place: DataplanePlace) -> dict[str, int]:
    try:
        counters = BpfMap.pinned(place.state("counters"))
    except FileNotFoundError:
        return {}
    values = read_counters(counters)
    counters.close()
    return values


def attachments(family: Family) -> Iterator[Attachment]:
    """Yield the devices to which programs of a family are attached. Raises MachineError."""
    with Filters() as filters:
        for index, name in socket.if_nameindex():
            attached = {side: list(filters.on(index, side)) for side in Side}
            programs = {
                side: next((f.program for f in some if f.ours and f.family is family), 0)
                for side, some in attached.items()
            }
            if any(programs.values()):
                others = (f for some in attached.values() for f in some if not f.ours)
                before = tuple(f for f in others if f.runs_before(family))
                yield Attachment(device=name, index=index, programs=programs, before=before)


def _uses(place: DataplanePlace, record: Record) -> Iterator[TableUse]:
    for path in place.maps(record.generation):
        table = BpfMap.pinned(path)
        if table.info.kind in _TABLES:
            yield TableUse(
                name=path.name, entries=sum(1 for _ in table.entries()), max_entries=table.info.max_entries
            )
        table.close()
