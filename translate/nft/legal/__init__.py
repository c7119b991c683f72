"""The legal form of a Program: a statement is exactly one nft rule, a container exactly one map or set.

``legalise`` makes it and ``printer`` prints it part by part, without decisions. A test or action of
:mod:`translate.ir` that is one match or one statement of nft is used as it is. The types here are for the
rest: a header that a match implies, a test of a set, a lookup in a map.
"""

from __future__ import annotations

from translate.nft.legal.containers import DnatTarget, Draw, Element, FilledSet, Key, LegalMap, Masked
from translate.nft.legal.lists import LegalList, Ring
from translate.nft.legal.objects import (
    SharedCounter,
    SharedHelper,
    SharedLabel,
    SharedLimit,
    SharedObject,
    SharedQuota,
)
from translate.nft.legal.parts import (
    AddLabel,
    AnyProtocol,
    Count,
    CountedInSet,
    DnatTo,
    ForThisMachine,
    HashedTo,
    HasLabel,
    HasTransport,
    InSet,
    OfCgroup,
    Part,
    PortOf,
    SetChange,
    SetHelper,
    SetLabel,
    TakenInSet,
    TransportByte,
    VerdictOf,
    WithinLimit,
    WithinQuota,
    WordMatch,
)
from translate.nft.legal.program import BaseHook, LegalChain, LegalProgram, LegalRule

__all__ = [
    "AddLabel",
    "AnyProtocol",
    "BaseHook",
    "Count",
    "CountedInSet",
    "DnatTarget",
    "DnatTo",
    "Draw",
    "Element",
    "FilledSet",
    "ForThisMachine",
    "HasLabel",
    "HasTransport",
    "HashedTo",
    "InSet",
    "Key",
    "LegalChain",
    "LegalList",
    "LegalMap",
    "LegalProgram",
    "LegalRule",
    "Masked",
    "OfCgroup",
    "Part",
    "PortOf",
    "Ring",
    "SetChange",
    "SetHelper",
    "SetLabel",
    "SharedCounter",
    "SharedHelper",
    "SharedLabel",
    "SharedLimit",
    "SharedObject",
    "SharedQuota",
    "TakenInSet",
    "TransportByte",
    "VerdictOf",
    "WithinLimit",
    "WithinQuota",
    "WordMatch",
]
