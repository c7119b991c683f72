"""A translation that is loaded in the current network namespace as long as its process lives.

The facts that the program needs are read only from the namespace. The two families are independent
dataplanes.
"""

from __future__ import annotations

import re
import socket
import struct
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final

from backends.model.node import Node
from backends.tc_ebpf.cgroups import cgroup_entries
from backends.tc_ebpf.connections import Connections
from backends.tc_ebpf.filters import Filters, Side
from backends.tc_ebpf.node.facts import NodeFacts, read_facts
from backends.tc_ebpf.node.sourcechecks import read_checks, taken_sysctls, write_sysctl
from backends.tc_ebpf.programs.bpfmap import BpfMap, wait_for_readers
from backends.tc_ebpf.programs.program import LoadedProgram
from backends.tc_ebpf.programs.runtimes import Runtimes
from translate.bpf import BpfOutput, MapChange, RuntimePart
from translate.collector import collector_paused
from translate.dataclass import replace
from translate.ir import Family

__all__ = ["Dataplane", "change_maps", "fill", "fitted", "switch"]

_FIRST: Final = struct.pack("=I", 0)


class Dataplane:
    """Carries the packets of one family in the current network namespace. Methods raise MachineError.

    ``sysctls`` are conntrack's, which a namespace without conntrack does not have. Without ``direct``,
    forwarded packets always go through the stack and its hooks. Without ``cached``, the program is always
    compiled. With ``runtimes``, it uses one of these until it is closed.
    """

    def __init__(
        self,
        output: BpfOutput,
        sysctls: Mapping[str, str] | None = None,
        *,
        direct: bool = True,
        cached: bool = True,
        runtimes: Runtimes | None = None,
    ) -> None:
        self._output = output
        self._node = Node((), sysctls=sysctls or {})
        self._direct = direct
        self._cached = cached
        self._runtimes = runtimes
        self._program: LoadedProgram | None = None

    def load(self) -> None:
        """Compile, fill the maps, attach to every device, and switch the program on."""
        family = self._output.family
        devices = [name for _, name in socket.if_nameindex()]
        checks = read_checks(devices) if family is Family.IP else {}
        program = LoadedProgram(fitted(self._output), cached=self._cached, runtimes=self._runtimes)
        if family is Family.IP:
            for (device, name), value in taken_sysctls(devices).items():
                write_sysctl(device, name, value)
        reverse = RuntimePart.WAYS_BACK in self._output.parts
        facts = read_facts(self._node, family, checks=checks, direct=self._direct, reverse=reverse)
        fill(program, self._output, facts)
        with Filters() as filters:
            for index in facts.devices:
                filters.add_clsact(index)
                for side in Side:
                    filters.attach(index, side, family, program.entries[side])
        switch(program.map("gate"), on=True)
        self._program = program

    def close(self) -> None:
        """Switch the program off, detach it from the devices that remain, and end it."""
        program, self._program = self._program, None
        if program is None:
            return
        switch(program.map("gate"), on=False)
        with Filters() as filters:
            for index in filters.with_clsact():
                for side in Side:
                    filters.detach(index, side, self._output.family)
        wait_for_readers()
        program.close()

    def change(self, steps: tuple[MapChange, ...]) -> None:
        """Change the maps while packets pass (:meth:`BpfChange.live`); connections stay.

        Raises ValueError if nothing is loaded.
        """
        change_maps(self._loaded().map, steps)

    def connections(self) -> Connections:
        """Return the connections of the program. Raises ValueError if nothing is loaded."""
        return Connections(self.map, self._output.family)

    def forget_lists(self) -> None:
        """Empty the lists of ``-m recent``, fill buckets and quotas, and restore sets that rules change."""
        parts = self._output.parts
        for part, name in (
            *((RuntimePart.RECENT, "recents"), (RuntimePart.HASHLIMIT, "hashed")),
            *((RuntimePart.HASHWINDOW, "windows"), (RuntimePart.CONNLIMIT, "counted")),
        ):
            if part in parts:
                self.map(name).clear()
        for members in self._output.sets:
            if members.filled:
                self.map(members.name).clear()
                self.map(members.name).update(members.packed())
        for part, name, number in (
            (RuntimePart.LIMIT, "buckets", self._output.buckets),
            (RuntimePart.QUOTA, "quotas", self._output.quotas),
        ):
            if part in parts:
                full = bytes(self.map(name).info.value_size)
                self.map(name).update([(struct.pack("=I", n), full) for n in range(number)])

    def map(self, name: str) -> BpfMap:
        """Return one of the program's maps. Raises KeyError, or ValueError if nothing is loaded."""
        return self._loaded().map(name)

    def _loaded(self) -> LoadedProgram:
        if self._program is None:
            raise ValueError("nothing is loaded")
        return self._program


def fitted(output: BpfOutput) -> BpfOutput:
    """Return a translation with slots for every processor that this machine can have."""
    last = re.split("[,-]", Path("/sys/devices/system/cpu/possible").read_text().strip())[-1]
    return replace(output, processors=int(last) + 1)


def change_maps(map_of: Callable[[str], BpfMap], steps: Iterable[MapChange]) -> None:
    """Apply changes to maps, in order, while a program uses them."""
    deleting = False
    for step in steps:
        if step.deleted and not deleting:
            wait_for_readers()  # a program may have read an old entry that refers to one that is deleted next
            deleting = True
        map_of(step.name).update(step.written)
        map_of(step.name).delete(step.deleted)


@collector_paused()
def fill(program: LoadedProgram, output: BpfOutput, facts: NodeFacts) -> None:
    """Write the facts about the namespace and the contents of the rules' maps into a program's maps."""
    for name, entries in facts.entries.items():
        program.map(name).update(entries)
    if output.cgroups:
        program.map("cgroups").update(cgroup_entries(output.cgroups))
    for lookup in output.maps:
        program.map(lookup.name).update(lookup.packed())
    for members in output.sets:
        program.map(members.name).update(members.packed())


def switch(gate: BpfMap, *, on: bool) -> None:
    """Switch the program on or off, on all devices at once; switched off, it lets packets pass unchanged."""
    gate.update([(_FIRST, struct.pack("=I", on))])
