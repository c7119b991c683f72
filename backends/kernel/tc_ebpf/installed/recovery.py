"""Undoing: what ``unload`` does, the guard of a loader that was killed, and the next command after both.

Everything here may be done again, by whoever, after any part of it.
"""

from __future__ import annotations

import os
import socket

from backends.kernel.tc_ebpf import bpfcall
from backends.kernel.tc_ebpf.bpfmap import BpfMap
from backends.kernel.tc_ebpf.dataplane import switch
from backends.kernel.tc_ebpf.filters import Filters, Side
from backends.kernel.tc_ebpf.installed.place import Place
from backends.kernel.tc_ebpf.installed.record import Phase, Record
from backends.kernel.tc_ebpf.sourcechecks import read_sysctl, taken_sysctls, write_sysctl
from translate.errors import MachineError

__all__ = ["clean", "roll_back", "settle"]


def clean(place: Place) -> bool:
    """Remove everything; packets pass as without the program at once. True if there was something.

    A ``clsact`` that was made by us goes too unless others use it now, and a sysctl gets its value back
    unless somebody has given it another one since.
    """
    record = Record.read(place.record)
    if record is not None and record.cookie != place.cookie:
        place.unpin()  # of a namespace that is gone
        place.forget()
        record = None
    if record is not None:
        record = record.at(Phase.UNLOADING)
        record.write(place.record)
    found = record is not None or place.pins.is_dir()
    _close_gate(place)
    with Filters() as filters:
        indexes = [index for index, _ in socket.if_nameindex()]
        for index in indexes:
            for side in Side:
                found = filters.detach(index, side, place.family) or found
        rooms = record.rooms if record is not None else ()
        used = tuple(i for i in rooms if i in indexes and not filters.remove_room(i))
    _leave(place.other, used)
    if record is not None:
        _restore_sysctls(record)
    place.unpin()
    place.forget()
    return found


def roll_back(place: Place, record: Record) -> Record:
    """Give every device the program back that was being replaced; return what is then on record."""
    assert record.previous is not None
    was = record.previous
    with Filters() as filters:
        for side in Side:
            program = place.open_entry(was, side)
            try:
                number = bpfcall.program_number(program)
                for index, _ in socket.if_nameindex():
                    mine = [f for f in filters.on(index, side) if f.ours and f.family is place.family]
                    if mine and mine[0].program != number:
                        filters.attach(index, side, place.family, program, replacing=True)
            finally:
                os.close(program)
    source = record.replaced or record.source
    restored = record.at(Phase.LOADED, generation=was, previous=None, source=source, replaced=None)
    restored.write(place.record)
    place.unpin(keep=was)
    return restored


def settle(place: Place) -> Record | None:
    """Finish or undo what an earlier command has left; return what is loaded, None for nothing.

    Only for whoever has locked the place.
    """
    record = Record.read(place.record)
    if record is None or record.cookie != place.cookie or record.phase in (Phase.LOADING, Phase.UNLOADING):
        clean(place)
        return None
    if record.phase is Phase.REPLACING:
        record = roll_back(place, record)
    if not all(place.entry(record.generation, side).exists() for side in Side):
        clean(place)  # somebody has removed the pins
        return None
    place.unpin(keep=record.generation)
    return record


def _leave(place: Place, rooms: tuple[int, ...]) -> None:
    """Leave it to the other family to remove, in the end, what it still uses."""
    record = Record.read(place.record) if rooms else None
    if record is not None and record.cookie == place.cookie:
        record.at(record.phase, rooms=tuple(dict.fromkeys((*record.rooms, *rooms)))).write(place.record)


def _close_gate(place: Place) -> None:
    try:
        gate = BpfMap.pinned(place.state("gate"))
    except (FileNotFoundError, MachineError):
        return
    switch(gate, on=False)
    gate.close()


def _restore_sysctls(record: Record) -> None:
    wanted = taken_sysctls(device for device, _ in record.sysctls)
    for (device, name), value in record.sysctls.items():
        try:
            if read_sysctl(device, name) == wanted.get((device, name)):
                write_sysctl(device, name, value)
        except MachineError:
            continue  # the device has gone
