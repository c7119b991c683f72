"""Program → a tc eBPF program: C text for BCC, plus the contents of its maps.

:func:`emit` is the entry point. ``chains`` returns the chains of a Program as functions in C. ``emit`` puts
them between the two halves of the hand-written C of ``runtime``; ``layout`` declares the structures and maps
that C shares with Python; ``change`` compares two translations.
"""

from translate.bpf.change import BpfChange, LoadedMap, MapChange, change_between, change_maps
from translate.bpf.emit import BACKEND, emit
from translate.bpf.layout.counters import COUNTERS
from translate.bpf.layout.maps import MapContents, MapEntry, SetContents, SetEntry
from translate.bpf.layout.programs import FUNCTIONS, PROGRAMS
from translate.bpf.layout.structures import DeclaredMap, Structure
from translate.bpf.layout.tables import CONNECTIONS, U32, DeviceFlag, RuntimePart, runtime_maps, runtime_types
from translate.bpf.output import BpfOutput, TranslationUnit
from translate.bpf.refusals import REFUSED

__all__ = [
    "BACKEND",
    "CONNECTIONS",
    "COUNTERS",
    "FUNCTIONS",
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
    "TranslationUnit",
    "change_between",
    "change_maps",
    "emit",
    "runtime_maps",
    "runtime_types",
]
