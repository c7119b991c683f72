"""Program → a tc eBPF program: C text for BCC, plus the contents of its maps.

:func:`emit` is the entry point. ``conditions``, ``actions``, ``lookups`` and ``statements`` render C as
:class:`~translate.bpf.code.Code`: lines, and everything they need from the rest of the program. ``emit`` puts
chains between the hand-written C of ``runtime``; ``change`` compares two translations; ``structures``
reads the structures and maps that a program's text declares.
"""

from translate.bpf.change import BpfChange, LoadedMap, MapChange, change_maps
from translate.bpf.emit import BACKEND, emit
from translate.bpf.maps import BpfOutput, MapContents, MapEntry, SetContents, SetEntry
from translate.bpf.programs import PROGRAMS
from translate.bpf.refusals import REFUSED
from translate.bpf.structures import (
    DeclaredMap,
    Member,
    Structure,
    declared_maps,
    layouts,
    structures,
)

__all__ = [
    "BACKEND",
    "PROGRAMS",
    "REFUSED",
    "BpfChange",
    "BpfOutput",
    "DeclaredMap",
    "LoadedMap",
    "MapChange",
    "MapContents",
    "MapEntry",
    "Member",
    "SetContents",
    "SetEntry",
    "Structure",
    "change_maps",
    "declared_maps",
    "emit",
    "layouts",
    "structures",
]
