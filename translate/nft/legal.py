"""The legal form of a Program: every statement is exactly one nft rule, and every container one map or set.

``legalise`` makes it and ``printer`` writes it down, part by part and without a choice. Tests and actions
are those of :mod:`translate.ir` wherever one of them is one match or one statement of nft; what the IR has
no type for is here: a header that a match implies, a set that is asked, a map that is looked up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from translate.errors import Note
from translate.ir import (
    Action,
    Entry,
    Family,
    Field,
    FieldTest,
    Hook,
    Lookup,
    NatPorts,
    Nth,
    Origin,
    Policy,
    Random,
)

__all__ = [
    "AnyProtocol",
    "BaseHook",
    "Count",
    "DnatTo",
    "Draw",
    "Element",
    "FilledSet",
    "InSet",
    "Key",
    "LegalChain",
    "LegalMap",
    "LegalProgram",
    "LegalRule",
    "Masked",
    "Part",
    "PortOf",
    "SetChange",
    "SharedCounter",
    "Target",
    "TransportByte",
    "VerdictOf",
]


# Keys.


@dataclass(frozen=True, slots=True)
class Masked:
    """An address of the packet under a mask."""

    field: Field
    mask: int


@dataclass(frozen=True, slots=True)
class Draw:
    """A random number below ``below``."""

    below: int


Key = tuple[Field | Masked | Draw, ...]
"""What is looked up in a map or set: the parts of its key, in order."""


# Parts of a rule, besides tests and actions of the IR.


@dataclass(frozen=True, slots=True)
class PortOf:
    """A test of a port in the header of one protocol, which implies that the packet has it."""

    protocol: int
    test: FieldTest


@dataclass(frozen=True, slots=True)
class TransportByte:
    """A test of the ICMP type or code that implies no protocol."""

    test: FieldTest


@dataclass(frozen=True, slots=True)
class AnyProtocol:
    """A match on the protocol that every packet passes.

    Behind it nft knows what a port of the connection is. To nft the packet is then one of TCP
    (``relational_expr_pctx_update`` looks at single values in the set), so that it implies TCP no more, and
    refuses what would imply another protocol.
    """


@dataclass(frozen=True, slots=True)
class InSet:
    """Whether the key of the packet is in a set."""

    set: str
    key: Key
    negated: bool = False


@dataclass(frozen=True, slots=True)
class SetChange:
    """Put the packet's key into a set or start its time anew; or take it out where ``delete`` is true."""

    set: str
    key: Key
    delete: bool = False


@dataclass(frozen=True, slots=True)
class Count:
    """Count the packet in a shared counter; the rule always goes on (``nft_counter_eval``)."""

    counter: str


@dataclass(frozen=True, slots=True)
class VerdictOf:
    """Do what a verdict map holds for the packet's key; go on with the rule behind where it holds nothing."""

    map: str
    key: Key


@dataclass(frozen=True, slots=True)
class DnatTo:
    """Translate to the target that a map holds for the packet's key; go on where it holds none."""

    map: str
    key: Key
    ports: NatPorts


Part = (
    FieldTest
    | Random
    | Nth
    | PortOf
    | TransportByte
    | AnyProtocol
    | InSet
    | SetChange
    | Count
    | VerdictOf
    | DnatTo
    | Action
)
"""One match or one statement of a rule."""


# Rules and chains.


@dataclass(frozen=True, slots=True, kw_only=True)
class LegalRule:
    """One nft rule. ``calls`` are the chains that control may go to."""

    parts: tuple[Part, ...]
    calls: tuple[str, ...] = ()
    origin: Origin


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseHook:
    """Where a base chain stands, and what becomes of packets that leave it undecided."""

    type: str
    hook: Hook
    priority: int
    policy: Policy


@dataclass(slots=True, kw_only=True)
class LegalChain:
    """A chain as it is filled; ``name`` is nft's, and ``note`` says what the chain stands for."""

    name: str
    note: str
    origin: Origin
    base: BaseHook | None = None
    rules: list[LegalRule] = field(default_factory=list)


# Containers.


@dataclass(frozen=True, slots=True)
class Target:
    """The data of a map of DNAT targets: an address, and a port where ``ported`` says so."""

    ported: bool


@dataclass(frozen=True, slots=True)
class Element:
    """One entry of a container: its key and origin, and the verdict or DNAT that a map holds for it."""

    entry: Entry
    data: Action | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LegalMap:
    """A verdict map, a map of DNAT targets (``data`` is a :class:`Target`), or a set (``data`` is None).

    ``elements`` are those of the entries of ``lookup``, which is None where no lookup of the Program stands
    behind the container.
    """

    name: str
    key: Key
    data: Literal["verdict"] | Target | None
    interval: bool
    elements: tuple[Element, ...]
    lookup: Lookup | None = None
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FilledSet:
    """A set that packets fill. ``timeout`` is in seconds; None keeps keys for ever."""

    name: str
    key: Key
    size: int
    timeout: int | None
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedCounter:
    """A counter that rules share, by its own name; ``note`` says what it stands for."""

    name: str
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LegalProgram:
    """A Program as nftables takes it. ``called`` gives nft's name of each chain that actions name."""

    family: Family
    chains: tuple[LegalChain, ...]
    called: Mapping[str, str]
    maps: tuple[LegalMap, ...]
    sets: tuple[FilledSet, ...]
    counters: tuple[SharedCounter, ...]
    notes: tuple[Note, ...] = ()
