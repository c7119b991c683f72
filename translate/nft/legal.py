"""The legal form of a Program: a statement is exactly one nft rule, a container exactly one map or set.

``legalise`` makes it and ``printer`` prints it part by part, without decisions. A test or action of
:mod:`translate.ir` that is one match or one statement of nft is used as it is. The types here are for the
rest: a header that a match implies, a test of a set, a lookup in a map.
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
from translate.ir.intervals import IntervalSet

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
    "LegalMap",
    "LegalProgram",
    "LegalRule",
    "Masked",
    "Part",
    "PortOf",
    "SetChange",
    "SetHelper",
    "SharedCounter",
    "SharedHelper",
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
"""The key of a map or set: its parts, in order."""


# Parts of a rule, in addition to tests and actions of the IR.


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
class WordMatch:
    """The word at ``offset`` of a header (``nh`` or ``th``) under ``mask`` is in ``values``.

    The rule ends for a packet that does not have the whole word (``nft_payload_eval``).
    """

    header: Literal["nh", "th"]
    offset: int
    mask: int
    values: IntervalSet


@dataclass(frozen=True, slots=True)
class HasTransport:
    """True if the packet has a transport header of at least 3 bytes: it is no later fragment.

    A load of 3 bytes is not one of ``nft_payload_fast_eval``, which would read such a fragment.
    """


@dataclass(frozen=True, slots=True)
class AnyProtocol:
    """A match on the transport protocol that is true of every packet.

    nft accepts a match on a connection's port only after such a match. It then also assumes that the packet
    is TCP (``relational_expr_pctx_update`` looks at single values in the set): it adds no protocol match for
    a following match on TCP, and refuses one that implies another protocol.
    """


@dataclass(frozen=True, slots=True)
class InSet:
    """True if the packet's key is in a set."""

    set: str
    key: Key
    negated: bool = False


@dataclass(frozen=True, slots=True)
class SetChange:
    """Put the packet's key into a set or restart its timeout; with ``delete``, remove it.

    With ``add``, a key that is in the set stays as it is. ``timeout`` is in seconds.
    """

    set: str
    key: Key
    delete: bool = False
    add: bool = False
    timeout: int | None = None


@dataclass(frozen=True, slots=True)
class HasLabel:
    """True if the packet's connection has the label."""

    number: int


@dataclass(frozen=True, slots=True)
class AddLabel:
    """Give the packet's connection the label."""

    number: int


@dataclass(frozen=True, slots=True)
class HashedTo:
    """True if a hash of the connection's original source, from 0 below ``total``, is one of ``values``."""

    total: int
    seed: int
    values: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ForThisMachine:
    """Change the type of the packet's frame to that of a frame to this machine (``PACKET_HOST``)."""


@dataclass(frozen=True, slots=True)
class Count:
    """Count the packet in a shared counter; the rule always continues (``nft_counter_eval``)."""

    counter: str


@dataclass(frozen=True, slots=True)
class WithinLimit:
    """Take a token from a shared bucket; the rule ends if there is none (``nft_limit_eval``)."""

    limit: str


@dataclass(frozen=True, slots=True)
class WithinQuota:
    """Count the packet's bytes in a shared quota; the rule ends if they exceed it (``nft_quota_eval``).

    If the quota is ``over``, the rule ends if they do not exceed it.
    """

    quota: str


@dataclass(frozen=True, slots=True)
class SetHelper:
    """Assign a helper to a new connection that has none (``nft_ct_helper_obj_eval``)."""

    helper: SharedHelper


@dataclass(frozen=True, slots=True)
class TakenInSet:
    """Take a token from the bucket of the key in a set, which is created if it is missing.

    The rule continues if the bucket had a token; with ``above``, if it had none.
    """

    set: str
    key: Key
    rate: int
    unit: str
    burst: int
    above: bool


@dataclass(frozen=True, slots=True)
class CountedInSet:
    """Add the packet's connection to those of the key in a set, which is created if it is missing.

    The rule continues if the key then has at most ``limit`` connections; with ``above``, if it has more
    (``nft_connlimit_do_eval``).
    """

    set: str
    key: Key
    limit: int
    above: bool


@dataclass(frozen=True, slots=True)
class VerdictOf:
    """Apply the verdict that a map has for the packet's key; without an element, the next rule follows."""

    map: str
    key: Key


@dataclass(frozen=True, slots=True)
class DnatTo:
    """Translate to the target that a map has for the packet's key; without an element, the next rule
    follows.
    """

    map: str
    key: Key
    ports: NatPorts


Part = (
    FieldTest
    | Random
    | Nth
    | PortOf
    | WordMatch
    | TransportByte
    | HasTransport
    | AnyProtocol
    | InSet
    | SetChange
    | HasLabel
    | AddLabel
    | HashedTo
    | ForThisMachine
    | Count
    | WithinLimit
    | WithinQuota
    | SetHelper
    | TakenInSet
    | CountedInSet
    | VerdictOf
    | DnatTo
    | Action
)
"""One match or one statement of a rule."""


# Rules and chains.


@dataclass(frozen=True, slots=True, kw_only=True)
class LegalRule:
    """One nft rule. ``calls`` are the chains that it can jump or go to."""

    parts: tuple[Part, ...]
    calls: tuple[str, ...] = ()
    origin: Origin


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseHook:
    """The hook and priority of a base chain, and its policy."""

    type: str
    hook: Hook
    priority: int
    policy: Policy


@dataclass(slots=True, kw_only=True)
class LegalChain:
    """A chain under construction; ``name`` is nft's, and ``note`` describes the chain."""

    name: str
    note: str
    origin: Origin
    base: BaseHook | None = None
    rules: list[LegalRule] = field(default_factory=list)


# Containers.


@dataclass(frozen=True, slots=True)
class DnatTarget:
    """The data of a map of DNAT targets: an address, and a port if ``ported``."""

    ported: bool


@dataclass(frozen=True, slots=True)
class Element:
    """One entry of a container: its key, its origin, and its verdict or DNAT target in a map."""

    entry: Entry
    data: Action | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LegalMap:
    """A verdict map, a map of DNAT targets (``data`` is a :class:`DnatTarget`), or a set (``data`` is None).

    ``elements`` are made from the entries of ``lookup``, which is None if there was no Lookup.
    """

    name: str
    key: Key
    data: Literal["verdict"] | DnatTarget | None
    interval: bool
    elements: tuple[Element, ...]
    lookup: Lookup | None = None
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FilledSet:
    """A set that packets fill. ``timeout`` is in seconds; None keeps keys forever, unless the rules that put
    them there give them a time, which needs ``ends``. The set begins with ``elements``.
    """

    name: str
    key: Key
    size: int
    timeout: int | None
    note: str
    ends: bool = False
    elements: tuple[Element, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedCounter:
    """A counter that rules share, with its name; ``note`` describes it."""

    name: str
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedLimit:
    """A token bucket that rules share: ``rate`` tokens per ``unit``, at most ``burst``, full at first."""

    name: str
    rate: int
    unit: str
    burst: int
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedQuota:
    """A quota that rules share: true up to ``size`` bytes, or only ``over`` them."""

    name: str
    size: int
    over: bool
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedHelper:
    """A helper of conntrack, by its name in the kernel and the ``protocol`` of its connections."""

    name: str
    helper: str
    protocol: str
    note: str


SharedObject = SharedCounter | SharedLimit | SharedQuota | SharedHelper
"""A named object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LegalProgram:
    """A Program in legal form. ``called`` maps qualified names of chains to nft's."""

    family: Family
    chains: tuple[LegalChain, ...]
    called: Mapping[str, str]
    maps: tuple[LegalMap, ...]
    sets: tuple[FilledSet, ...]
    objects: tuple[SharedObject, ...]
    notes: tuple[Note, ...] = ()
