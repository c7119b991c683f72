"""Loading, changing and unloading the dataplane of the current network namespace.

A first load writes the record of the changes to undo, loads maps and programs, pins them, sets sysctls, and
adds filters to one device after the other. At first the filters let every packet pass; finally one map entry
activates all devices at once. A replacement loads a second program with the connection tables of the first.
Then each filter changes its program in one step of the kernel. A guard undoes an interrupted load.
"""

from __future__ import annotations

import hashlib
import os
import socket
from collections.abc import Callable
from datetime import UTC, datetime
from enum import Enum

from backends.tc_ebpf.dataplane import change_maps, fill, fitted, switch
from backends.tc_ebpf.filters import Filters, Side
from backends.tc_ebpf.programs.program import LoadedProgram
from nfparity.persistent_state.guard import Guard
from nfparity.tc.namespace import current_facts, refresh_maps, take_sysctls
from nfparity.tc.place import STATE, here
from nfparity.tc.record import Phase, Record, Source
from nfparity.tc.recovery import clean, known, settle
from translate import bpf
from translate.dataclass import dataclass, replace
from translate.errors import InputError, MachineError
from translate.ir import Family

__all__ = ["DataplaneRules", "Installed", "LoadResult"]

_AGAIN = "nfparity tc unload tries again"
_CONNECTIONS = ("conns", "replies", "sources")

Step = Callable[[str], None]
"""Hook for tests that end the process after a step."""


class LoadResult(Enum):
    """The result of a load."""

    FIRST = "loaded"
    SAME = "unchanged"
    CHANGED = "changed"
    """Only entries of maps have changed."""
    REPLACED = "replaced"
    """Another program was loaded, and the connections of the first were kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataplaneRules:
    """A translation and its source. ``digest`` is the SHA-256 of the rules.

    Without ``direct``, forwarded packets go through the network stack and its other hooks. ``sized``: the
    user has set the number of connections; otherwise that of the loaded program stays. Without ``cached``,
    the program is always compiled.
    """

    output: bpf.BpfOutput
    name: str
    digest: str
    level: int
    direct: bool = True
    sized: bool = False
    cached: bool = True

    @property
    def reverse(self) -> bool:
        """True if the program needs the routes by device (``-m rpfilter`` over IPv6)."""
        return bpf.RuntimePart.WAYS_BACK in self.output.parts

    def source(self) -> Source:
        """Return the source for the record."""
        return Source(
            rules=self.name,
            digest=self.digest,
            level=self.level,
            text=hashlib.sha256(self.output.text.encode()).hexdigest(),
            layout={name: d.layout() for name, d in self.output.declared.items() if name in STATE},
            lists=self.output.lists,
            direct=self.direct,
        )


class Installed:
    """The dataplane of one family in the current network namespace.

    Methods raise MachineError with the kernel's message; then nothing has changed.
    """

    def __init__(self, family: Family, step: Step = lambda done: None) -> None:
        self.family = family
        self.place = here(family)
        self._step = step

    def load(self, rules: DataplaneRules, *, flush: bool = False) -> LoadResult:
        """Load rules, and replace those that are already loaded.

        Raises InputError if connections cannot be kept and ``flush`` is False.
        """
        rules = replace(rules, output=fitted(rules.output))
        with self.place.locked():
            record = settle(self.place)
            if record is None:
                self._load(rules)
                return LoadResult.FIRST
            if not rules.sized:
                room = self._room_of(record, "conns")
                rules = replace(rules, output=replace(rules.output, connections=room))
            other = self._other_tables(record, rules)
            if other is None and rules.source().text == record.source.text:
                change = self._change(record, rules)
                if not change.replacement:
                    now = replace(record.source, direct=rules.direct)
                    record, _ = self._attach(record.at(record.phase, source=now))
                    return self._make(change, record, rules)
            if other is None:
                self._replace(record, rules)
            elif flush:
                clean(self.place)
                self._load(rules)
            else:
                raise InputError(f"{other}; --flush drops the existing connections")
            return LoadResult.REPLACED

    def refresh(self) -> tuple[str, ...]:
        """Read devices, addresses and routes again, and attach to new devices.

        Returns the names of the new devices. Raises MachineError if nothing is loaded.
        """
        with self.place.locked():
            record = settle(self.place)
            if record is None:
                raise MachineError(f"no rules of family {self.family.value} are loaded here")
            return self._attach(record)[1]

    def unload(self) -> bool:
        """Remove everything; return whether there was anything.

        If the record is damaged or missing, raises MachineError with the settings that could not be restored.
        """
        with self.place.locked(needed=False):
            removed = clean(self.place)
            self.place.forget(logs=True)
            return removed

    def _load(self, rules: DataplaneRules) -> None:
        place = self.place
        record = Record(phase=Phase.LOADING, cookie=place.cookie, source=rules.source(), since=_now())
        with Guard(lambda: _undo(self), _AGAIN) as guard:
            record.write(place.record)
            self._step("recorded")
            with LoadedProgram(rules.output, log=place.log("load"), cached=rules.cached) as program:
                self._step("compiled")
                self._pin(program, rules, record.generation)
                self._step("pinned")
                record = take_sysctls(place, record)
                self._step("sysctls set")
                facts = current_facts(self.family, record, reverse=rules.reverse)
                fill(program, rules.output, facts)
                self._step("filled")
                with Filters() as filters:
                    record = self._make_rooms(filters, facts.devices, record)
                    self._step("rooms made")
                    for index in facts.devices:
                        for side in Side:
                            filters.attach(index, side, self.family, program.entries[side])
                            self._step(f"{side.word} of {index}")
                switch(program.map("gate"), on=True)
                self._step("open")
                record.at(Phase.LOADED, since=_now()).write(place.record)
                guard.commit()

    def _replace(self, record: Record, rules: DataplaneRules) -> None:
        place, family, number = self.place, self.family, record.generation + 1
        record = record.at(
            Phase.REPLACING,
            generation=number,
            previous=record.generation,
            source=rules.source(),
            replaced=record.source,
        )
        with Guard(lambda: _undo(self), _AGAIN) as guard:
            record.write(place.record)
            self._step("recorded")
            kept = {name: place.state(name) for name in STATE if place.state(name).exists()}
            with LoadedProgram(
                rules.output, log=place.log("load"), kept=kept, cached=rules.cached
            ) as program:
                self._step("compiled")
                self._pin(program, rules, number)
                self._step("pinned")
                record = take_sysctls(place, record)
                facts = current_facts(family, record, reverse=rules.reverse)
                fill(program, rules.output, facts)
                self._step("filled")
                with Filters() as filters:
                    record = self._make_rooms(filters, facts.devices, record)
                    for index in facts.devices:
                        for side in Side:
                            filters.attach(index, side, family, program.entries[side], replacing=True)
                            self._step(f"{side.word} of {index}")
                    _detach_others(filters, facts.devices, family)
            done = record.at(Phase.LOADED, since=_now(), previous=None, replaced=None)
            done.write(place.record)
            guard.commit()
        place.unpin(keep=number)

    def _change(self, record: Record, rules: DataplaneRules) -> bpf.BpfChange:
        loaded = {}
        names = [contents.name for contents in rules.output.maps] + [
            contents.name for contents in rules.output.sets
        ]
        for name in names:
            pinned = self.place.map(record.generation, name)
            loaded[name] = bpf.LoadedMap(pinned.info.max_entries, dict(pinned.entries()))
            pinned.close()
        return bpf.change_maps(loaded, rules.output)

    def _make(self, change: bpf.BpfChange, record: Record, rules: DataplaneRules) -> LoadResult:
        source = rules.source()
        if not change.steps:
            record.at(Phase.LOADED, source=source).write(self.place.record)
            return LoadResult.SAME
        record.at(Phase.CHANGING, source=source).write(self.place.record)
        self._step("recorded")
        opened = {step.name: self.place.map(record.generation, step.name) for step in change.steps}
        change_maps(opened.__getitem__, change.steps)
        self._step("written")
        for opened_map in opened.values():
            opened_map.close()
        record.at(Phase.LOADED, source=source, since=_now()).write(self.place.record)
        return LoadResult.CHANGED

    def _attach(self, record: Record) -> tuple[Record, tuple[str, ...]]:
        """Update maps and filters for the present devices; return the record and the names of new devices."""
        place, family = self.place, self.family
        record = take_sysctls(place, record)
        reverse = place.has_map(record.generation, "ways_back")
        facts = current_facts(family, record, reverse=reverse)
        refresh_maps(facts, lambda name: place.map(record.generation, name))
        entries = {side: place.open_entry(record.generation, side) for side in Side}
        added = []
        with Filters() as filters:
            record = self._make_rooms(filters, facts.devices, record)
            for index in facts.devices:
                for side, program in entries.items():
                    if not any(f.ours and f.family is family for f in filters.on(index, side)):
                        filters.attach(index, side, family, program)
                        added.append(index)
            _detach_others(filters, facts.devices, family)
        for program in entries.values():
            os.close(program)
        return record, tuple(facts.names[index] for index in dict.fromkeys(added))

    def _make_rooms(self, filters: Filters, devices: tuple[int, ...], record: Record) -> Record:
        """Add a ``clsact`` qdisc to devices without one, after recording these devices."""
        there = filters.with_clsact()
        missing = tuple(index for index in devices if index not in there)
        if missing:
            record = record.at(record.phase, rooms=tuple(dict.fromkeys((*record.rooms, *missing))))
            record.write(self.place.record)
        for index in missing:
            filters.add_clsact(index)
            self._step(f"room on {index}")
        return record

    def _pin(self, program: LoadedProgram, rules: DataplaneRules, generation: int) -> None:
        for name in rules.output.declared:
            folder = self.place.generation(generation)
            path = self.place.state(name) if name in STATE else folder / name
            if not path.exists():
                self.place.pin(path, program.map(name).descriptor)
        for side, descriptor in program.entries.items():
            self.place.pin(self.place.entry(generation, side), descriptor)

    def _room_of(self, record: Record, name: str) -> int:
        table = self.place.map(record.generation, name)
        table.close()
        return table.info.max_entries

    def _other_tables(self, record: Record, rules: DataplaneRules) -> str | None:
        """Return the reason why the existing connections cannot be kept, or None."""
        layout = rules.source().layout
        if any(layout[name] != was for name, was in record.source.layout.items() if name in layout):
            return "the loaded program stores connections in another form"
        declared = rules.output.declared
        for name in _CONNECTIONS:
            was = self._room_of(record, name)
            if was != declared[name].size:
                return f"the loaded program has room for {was} connections, not {declared[name].size}"
        return None


def _undo(installed: Installed) -> None:
    """The action of the guard: undo the changes of a loader that ended, unless another process is working."""
    try:
        known(installed.place)
    except MachineError:
        clean(installed.place)
    else:
        settle(installed.place)


def _detach_others(filters: Filters, devices: tuple[int, ...], family: Family) -> None:
    """Detach from devices that must no longer be attached, such as new ports of a bridge."""
    for index, _ in socket.if_nameindex():
        if index not in devices:
            for side in Side:
                filters.detach(index, side, family)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
