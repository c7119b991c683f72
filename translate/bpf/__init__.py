"""Program → a tc eBPF program: C text for BCC, plus the contents of its maps.

:func:`emit` is the entry point. ``conditions``, ``actions``, ``lookups`` and ``statements`` return C as
:class:`~translate.bpf.code.Code`: lines, and the declarations that they need in the program. ``emit``
puts the chains between the two halves of the hand-written C of ``runtime``; ``tables`` declares the
structures and maps that C shares with Python, ``structures`` their layout; ``change`` compares two
translations.
"""

from translate.bpf.change import BpfChange, LoadedMap, MapChange, change_between, change_maps
from translate.bpf.counters import COUNTERS
from translate.bpf.emit import BACKEND, emit
from translate.bpf.maps import MapContents, MapEntry, SetContents, SetEntry
from translate.bpf.output import BpfOutput
from translate.bpf.programs import PROGRAMS
from translate.bpf.refusals import REFUSED
from translate.bpf.structures import DeclaredMap, Structure
from translate.bpf.tables import CONNECTIONS, U32, DeviceFlag, RuntimePart, runtime_maps, runtime_types

__all__ = [
    "BACKEND",
    "CONNECTIONS",
    "COUNTERS",
    "PROGRAMS",
    "REFUSED",
    "U32",
    "BpfChange",
    "BpfOutput",
    "DeclaredMap",
    "DeviceFlag",
    "LoadedMap",
    "MapChange",
    "MapContents",
    "MapEntry",
    "RuntimePart",
    "SetContents",
    "SetEntry",
    "Structure",
    "change_between",
    "change_maps",
    "emit",
    "runtime_maps",
    "runtime_types",
]
