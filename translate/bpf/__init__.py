"""Program → a tc eBPF program: C text for BCC, plus the contents of its maps.

:func:`emit` is the only door. ``conditions`` turns tests into C, ``statements`` statements and
actions, ``emit`` puts chains between the hand-written C of ``runtime``; ``change`` compares two
translations. Imports ``translate.ir``,
``translate.errors`` and what ``translate.passes`` knows of lists of ``-m recent``; the kernel backend
and the harness import this package.
"""

from translate.bpf.change import BpfChange, MapChange
from translate.bpf.emit import BACKEND, emit
from translate.bpf.maps import BpfOutput, MapContents, MapEntry, SetContents, SetEntry

__all__ = [
    "BACKEND",
    "BpfChange",
    "BpfOutput",
    "MapChange",
    "MapContents",
    "MapEntry",
    "SetContents",
    "SetEntry",
    "emit",
]
