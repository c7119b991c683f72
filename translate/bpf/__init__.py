"""Program → a tc eBPF program: C text for BCC, plus the contents of its maps.

:func:`emit` is the only door. ``conditions`` turns tests into C, ``statements`` statements and
actions, ``emit`` puts chains between the hand-written C of ``runtime``; ``change`` compares two
translations; ``structures`` reads what a
program's text declares. Imports ``translate.ir``,
``translate.errors`` and what ``translate.passes`` knows of lists of ``-m recent``; the kernel backend
and the harness import this package.
"""

from translate.bpf.change import BpfChange, LoadedMap, MapChange, change_maps
from translate.bpf.emit import BACKEND, emit
from translate.bpf.maps import BpfOutput, MapContents, MapEntry, SetContents, SetEntry
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
