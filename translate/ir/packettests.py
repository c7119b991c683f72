"""Tests of a packet's headers and bytes that only the simulator and the tc program have."""

from __future__ import annotations

from translate.dataclass import dataclass
from translate.ir.bytecode import Instruction
from translate.ir.fields import Field

__all__ = ["BytecodeTest", "HeaderOptions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BytecodeTest:
    """``-m bpf --bytecode``: true if the program returns another number than 0 for the packet (``bpf_mt``).

    The program reads the packet from its IP header on. A load behind the packet's end ends it with 0.
    """

    program: tuple[Instruction, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HeaderOptions:
    """True if a header with options of IPv6 begins with these options, in order (``hbh_mt6``).

    ``header`` is the field with the length of the header, of which the packet may have several: the first
    counts. Each option has a kind and a length, None for any length. Option 0 (Pad1) has none. Every option
    but the last has to be whole.
    """

    header: Field
    options: tuple[tuple[int, int | None], ...]
