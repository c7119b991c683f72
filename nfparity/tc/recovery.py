"""Undo: for ``unload``, the guard of a killed loader, and the next command.

Every step may be repeated, by any process, after an interruption at any point. The kernel has priority: a
program is removed even if the record cannot be written, or is damaged or missing. Settings that only the
record contained are then reported.
"""

from __future__ import annotations

import os
import socket
from contextlib import suppress

from backends.tc_ebpf.dataplane import switch
from backends.tc_ebpf.filters import Filters, Side
from backends.tc_ebpf.node.sourcechecks import read_sysctl, taken_sysctls, write_sysctl
from backends.tc_ebpf.programs import bpfcall
from backends.tc_ebpf.programs.bpfmap import BpfMap
from nfparity.tc.place import DataplanePlace
from nfparity.tc.record import Phase, Record
from translate.errors import MachineError
from translate.ir import Family

__all__ = ["clean", "is_loaded", "known", "roll_back", "settle"]


def clean(place: DataplanePlace) -> bool:
    """Remove everything; return whether there was anything. Packets bypass the program at once.

    A ``clsact`` that nfparity added is removed unless others use it, and a sysctl gets its old value unless
    it was changed since. If a damaged or missing record is needed for this, raises MachineError after
    everything else is removed.
    """
    trouble = None
    try:
        record = Record.read(place.record)
    except MachineError as e:
        record, trouble = None, str(e)
    if record is not None and record.cookie != place.cookie:
        place.unpin()  # pins of a namespace that is gone
        place.forget()
        record = None
    if record is not None:
        record = record.at(Phase.UNLOADING)
        with suppress(MachineError):
            record.write(place.record)
    removed = record is not None or place.pins.is_dir()
    _close_gate(place)
    with Filters() as filters:
        indexes = [index for index, _ in socket.if_nameindex()]
        for index in indexes:
            for side in Side:
                removed = filters.detach(index, side, place.family) or removed
        rooms = record.rooms if record is not None else ()
        used = tuple(i for i in rooms if i in indexes and not filters.remove_clsact(i))
    _leave(place.other, used)
    if record is not None:
        _restore_sysctls(record)
    place.unpin()
    place.forget()
    if record is None and (removed or trouble is not None):
        raise MachineError(_unknown(place, trouble))
    return removed


def is_loaded(place: DataplanePlace) -> bool:
    """Return whether nfparity's program is attached, independent of the record. Raises MachineError."""
    if place.pins.is_dir():
        return True
    with Filters() as filters:
        return any(
            filter_.ours and filter_.family is place.family
            for index, _ in socket.if_nameindex()
            for side in Side
            for filter_ in filters.on(index, side)
        )


def _unknown(place: DataplanePlace, trouble: str | None) -> str:
    """Return instructions to restore settings by hand, because their old values are unknown."""
    what = trouble or f"{place.record} is gone"
    lines = [f"{what}; programs and maps are removed, but the old values of these settings are unknown:"]
    if place.family is Family.IP:
        for (device, name), value in taken_sysctls(name for _, name in socket.if_nameindex()).items():
            with suppress(MachineError):
                if read_sysctl(device, name) == value:
                    lines.append(f"  echo BEFORE >/proc/sys/net/ipv4/conf/{device}/{name}   # it is {value}")
    with Filters() as filters:
        names = dict(socket.if_nameindex())
        for index in sorted(filters.with_clsact()):
            if index in names and not any(True for side in Side for _ in filters.on(index, side)):
                lines.append(f"  tc qdisc del dev {names[index]} clsact   # unless another program added it")
    return "\n".join(lines)


def roll_back(place: DataplanePlace, record: Record) -> Record:
    """Attach the replaced program to every device again; return the new record."""
    assert record.previous is not None
    was = record.previous
    with Filters() as filters:
        for side in Side:
            program = place.open_entry(was, side)
            try:
                number = bpfcall.program_number(program)
                for index, _ in socket.if_nameindex():
                    ours = [f for f in filters.on(index, side) if f.ours and f.family is place.family]
                    if ours and ours[0].program != number:
                        filters.attach(index, side, place.family, program, replacing=True)
            finally:
                os.close(program)
    source = record.replaced or record.source
    restored = record.at(Phase.LOADED, generation=was, previous=None, source=source, replaced=None)
    with suppress(MachineError):  # the next command repeats the rollback
        restored.write(place.record)
    place.unpin(keep=was)
    return restored


def known(place: DataplanePlace) -> Record | None:
    """Return the record, or None without one.

    Raises MachineError when the record is damaged, or gone while something is loaded.
    """
    try:
        record = Record.read(place.record)
        if record is None and is_loaded(place):
            raise MachineError(f"a program is loaded, and {place.record} is gone")
    except MachineError as e:
        raise MachineError(f"{e}; nfparity tc unload removes what is loaded") from e
    return record


def settle(place: DataplanePlace) -> Record | None:
    """Finish or undo an interrupted command; return the record of the loaded program, or None.

    The caller must hold the lock of the place. Raises MachineError when the record is damaged, or gone while
    something is loaded, and leaves that as it is.
    """
    record = known(place)
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


def _leave(place: DataplanePlace, rooms: tuple[int, ...]) -> None:
    """Leave the ``clsact`` of these devices to the other family, which still uses it and removes it later."""
    with suppress(MachineError):  # it is empty then, and stays
        record = Record.read(place.record) if rooms else None
        if record is not None and record.cookie == place.cookie:
            record.at(record.phase, rooms=tuple(dict.fromkeys((*record.rooms, *rooms)))).write(place.record)


def _close_gate(place: DataplanePlace) -> None:
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
