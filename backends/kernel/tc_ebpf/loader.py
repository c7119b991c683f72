"""Compiles the program, fills its maps, attaches it to every device of the node."""

from __future__ import annotations

import ctypes
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from backends.kernel.loader import Loader
from backends.kernel.quiet import Quiet
from backends.kernel.tapnode import TapNode
from backends.kernel.tc_ebpf.bcc import import_bcc, provide_headers
from backends.kernel.tc_ebpf.bpfmap import BpfMap, wait_for_readers
from backends.kernel.tc_ebpf.facts import Facts, SourceChecks, read_facts
from backends.packet import Packet
from translate.bpf import BpfOutput, MapChange
from translate.errors import MachineError
from translate.ir import Family

__all__ = ["TcEbpfLoader"]

_ENTRIES: Final = {"ingress": "nfparity_ingress", "egress": "nfparity_egress"}
_STAGES: Final = (
    "track",
    "prerouting",
    "arrived",
    "input",
    "deliver",
    "output",
    "routed",
    "forward",
    "postrouting",
    "leave",
    "bind",
    "port",
    "sctp_verify",
    "sctp_sum",
    "reject",
    "answer",
)
"""The programs that ``programs`` jumps to, in the order of ``enum program``."""
_PARENTS: Final = {"ingress": 0xFFFFFFF2, "egress": 0xFFFFFFF3}
_STATE: Final = ("conns", "replies", "sources")
_SHOWN: Final = 2000


class TcEbpfLoader(Loader):
    """Loads one :class:`~translate.bpf.BpfOutput`."""

    # Conntrack stays off, and REJECT answers from the program never meet the quiet table.
    quiet = Quiet.ALL

    def __init__(self, output: BpfOutput) -> None:
        self._output = output
        self.lists = output.lists
        self.family = output.family
        self._bpf: Any = None

    def load(self, tap: TapNode) -> None:
        """Load the program; raises MachineError with what BCC or the verifier said."""
        provide_headers()
        bcc = import_bcc()
        checks = self._take_over_sysctls(tap) if self.family is Family.IP else {}
        with _captured() as said:
            try:
                self._bpf = bcc.BPF(text=self._output.source.encode())
                descriptors = {name: self._program(bcc, name) for name in (*_ENTRIES, *_STAGES)}
            except Exception as e:  # BCC raises bare Exceptions
                raise MachineError(f"the tc program does not load: {e}\n{said()[-_SHOWN:]}") from e
        for number, name in enumerate(_STAGES):
            self._bpf[b"programs"][ctypes.c_int(number)] = ctypes.c_int(descriptors[name])
        facts = read_facts(tap.node, self.family, checks=checks)
        for name, entries in facts.entries.items():
            self._fill(name, entries)
        for contents in self._output.maps:
            self._fill(contents.name, contents.packed())
        for members in self._output.sets:
            self._fill(members.name, members.packed())
        _attach(facts, descriptors)

    def forget(self, tap: TapNode) -> None:
        """Empty the program's own connection tables, and the lists of ``-m recent``."""
        for name in (*_STATE, *(("recents",) if self.lists else ())):
            self._bpf[name.encode()].clear()

    def forget_one(self, tap: TapNode, sent: Packet) -> bool:
        """Say no: of the program's tables, what belongs to one connection is the program's to know."""
        return False

    def _program(self, bcc: Any, name: str) -> int:
        return int(self._bpf.load_func(f"nfparity_{name}".encode(), bcc.BPF.SCHED_CLS).fd)

    def change(self, steps: tuple[MapChange, ...]) -> None:
        """Change the maps of the loaded program (:meth:`BpfChange.live`).

        Connections and lists of ``-m recent`` stay. Raises ValueError when nothing is loaded,
        MachineError with what the kernel said.
        """
        if self._bpf is None:
            raise ValueError("nothing is loaded")
        deleting = False
        for step in steps:
            if step.deleted and not deleting:
                wait_for_readers()  # of entries that led to what goes now
                deleting = True
            self._map(step.name).update(step.written)
            self._map(step.name).delete(step.deleted)

    def _fill(self, name: str, entries: list[tuple[bytes, bytes]]) -> None:
        self._map(name).update(entries)

    def _map(self, name: str) -> BpfMap:
        return BpfMap(self._bpf, name)

    def _take_over_sysctls(self, tap: TapNode) -> dict[str, SourceChecks]:
        """Hand to the program the checks of a packet's source that the kernel would make too early.

        A reply to a packet made here has its source translated back at ingress, before the kernel
        routes it, where netfilter does so in INPUT, after the check. So the kernel is told to
        accept any source, and the program checks (``martian_source``). IPv6 has no such checks.
        """
        names = [*tap.indexes, "lo"]
        checks = {
            name: SourceChecks(
                rp_filter=max(_read(name, "rp_filter"), _read("all", "rp_filter")),
                accept_local=bool(_read(name, "accept_local") or _read("all", "accept_local")),
            )
            for name in names
        }
        taken = ("rp_filter", "accept_local")
        others = {k: v for k, v in tap.node.sysctls.items() if not k.endswith(taken)}
        tap.node = replace(tap.node, sysctls=others)
        for name in ("all", *names):
            _write(name, "rp_filter", "0")
            _write(name, "accept_local", "1")
        # What was made here and sent here by DNAT comes in on lo without a route attached.
        _write("lo", "route_localnet", "1")
        return checks


def _attach(facts: Facts, descriptors: dict[str, int]) -> None:
    from pyroute2 import IPRoute, NetlinkError

    with IPRoute() as ipr:
        for index in facts.devices:
            try:
                ipr.tc("add", "clsact", index)
                for side, parent in _PARENTS.items():
                    ipr.tc(
                        "add-filter",
                        "bpf",
                        index,
                        0,
                        fd=descriptors[side],
                        name=f"nfparity_{side}",
                        parent=parent,
                        classid=1,
                        direct_action=True,
                    )
            except NetlinkError as e:
                raise MachineError(f"cannot attach to device {index}: {e} (clsact, cls_bpf)") from e


def _read(device: str, name: str) -> int:
    return int(Path("/proc/sys/net/ipv4/conf", device, name).read_text())


def _write(device: str, name: str, value: str) -> None:
    try:
        Path("/proc/sys/net/ipv4/conf", device, name).write_text(value)
    except OSError as e:
        raise MachineError(f"cannot set {name} of {device}: {e.strerror}") from e


@contextmanager
def _captured() -> Iterator[Any]:
    """Keep what the compiler and the verifier print on stderr out of the report, and give it."""
    sys.stderr.flush()
    with tempfile.TemporaryFile() as file:
        kept = os.dup(2)
        os.dup2(file.fileno(), 2)

        def said() -> str:
            file.seek(0)
            return file.read().decode(errors="replace")

        try:
            yield said
        finally:
            os.dup2(kept, 2)
            os.close(kept)
