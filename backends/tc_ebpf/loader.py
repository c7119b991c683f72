"""The harness's loader: a dataplane in the namespace of a TAP node."""

from __future__ import annotations

from typing import Final

from backends.model.packet import Packet
from backends.replay.loader import JIFFIES, Loader
from backends.tc_ebpf.connections import Connections
from backends.tc_ebpf.dataplane import Dataplane
from backends.tc_ebpf.node.sourcechecks import TAKEN
from backends.tc_ebpf.programs.runtimes import Runtimes
from backends.testbed.suppress_stack_rst import ResetFallback
from backends.testbed.tapnode import TapNode
from translate.bpf import BpfOutput, MapChange
from translate.bpf.layout.tables import RuntimePart
from translate.dataclass import replace
from translate.ir import Family

__all__ = ["TcEbpfLoader"]


_RUNTIMES: Final = Runtimes()
"""The runtimes of the process that holds the node, for this session and later ones."""


class TcEbpfLoader(Loader):
    """Loads one :class:`~translate.bpf.BpfOutput`; without ``direct``, all packets go through the stack.

    Without ``cached``, the program is always compiled.
    """

    # Conntrack stays off, and REJECT answers from the program never pass netfilter's OUTPUT.
    reset_fallback = ResetFallback.ALL

    leaves_nothing = True

    def __init__(self, output: BpfOutput, *, direct: bool = True, cached: bool = True) -> None:
        self._output = output
        self._direct = direct
        self._cached = cached
        self.lists = output.lists
        self.pins = "bpf_get_smp_processor_id" in output.chains
        if RuntimePart.CONNLIMIT in output.parts:
            self.gap = JIFFIES
        self.family = output.family
        self.dataplane: Dataplane | None = None
        self._connections: Connections | None = None

    def load(self, tap: TapNode) -> None:
        """Load the program; raises MachineError with the message of BCC or the verifier."""
        dataplane = Dataplane(
            self._output,
            tap.node.sysctls,
            direct=self._direct,
            cached=self._cached,
            runtimes=_RUNTIMES if self._cached else None,
        )
        dataplane.load()
        if self.family is Family.IP:
            # The program has set them: the node's values must not be set again.
            others = {k: v for k, v in tap.node.sysctls.items() if not k.endswith(TAKEN)}
            tap.node = replace(tap.node, sysctls=others)
        self.dataplane = dataplane

    def forget_connections(self, tap: TapNode) -> None:
        """Empty the program's own connection tables."""
        self._known().clear()

    def forget_lists(self) -> None:
        """Empty the lists of ``-m recent``."""
        self._loaded().forget_lists()

    def forget_one(self, tap: TapNode, sent: Packet) -> bool:
        """Forget only the connection that began with ``sent``; return False for a packet without ports."""
        if not isinstance(sent.sport, int) or not isinstance(sent.dport, int):
            return False
        self._known().forget(src=sent.src, dst=sent.dst, sport=sent.sport, dport=sent.dport, proto=sent.proto)
        return True

    def has_connections(self, tap: TapNode) -> bool:
        """Return whether the program may remember a connection."""
        return self._known().may_remain()

    def change(self, steps: tuple[MapChange, ...]) -> None:
        """Change the maps of the loaded program (:meth:`BpfChange.live`).

        Connections and lists of ``-m recent`` are kept. Raises ValueError if nothing is loaded, MachineError
        with the kernel's error.
        """
        self._loaded().change(steps)

    def close(self) -> None:
        """End the program."""
        if self.dataplane is not None:
            self.dataplane.close()

    def _known(self) -> Connections:
        if self._connections is None:
            self._connections = self._loaded().connections()
        return self._connections

    def _loaded(self) -> Dataplane:
        if self.dataplane is None:
            raise ValueError("nothing is loaded")
        return self.dataplane
