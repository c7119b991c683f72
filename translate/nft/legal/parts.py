"""Matches and statements of a rule that are not tests or actions of :mod:`translate.ir`."""

from __future__ import annotations

from typing import Literal

from translate.dataclass import dataclass
from translate.ir import Action, FieldTest, NatPorts, Nth, Random
from translate.ir.intervals import IntervalSet
from translate.nft.legal.containers import Key
from translate.nft.legal.objects import SharedHelper, SharedLabel

__all__ = [
    "AddLabel",
    "AnyProtocol",
    "Count",
    "CountedInSet",
    "DnatTo",
    "ForThisMachine",
    "HasLabel",
    "HasTransport",
    "HashedTo",
    "InSet",
    "OfCgroup",
    "Part",
    "PortOf",
    "SetChange",
    "SetHelper",
    "SetLabel",
    "TakenInSet",
    "TransportByte",
    "VerdictOf",
    "WithinLimit",
    "WithinQuota",
    "WordMatch",
]


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
class OfCgroup:
    """The packet's socket belongs to the cgroup ``path`` or to one below it.

    The rule ends for a packet without a full socket, or whose socket belongs to a cgroup of fewer levels
    (``nft_sock_get_eval_cgroupv2``).
    """

    path: str


@dataclass(frozen=True, slots=True)
class HasTransport:
    """True if the packet has a transport header of at least 3 bytes: it is no later fragment.

    The match loads 3 bytes, because ``nft_payload_fast_eval`` takes loads of 1, 2 and 4 bytes and would read
    the data of a later fragment.
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
class SetLabel:
    """Give the packet a label (``nft_secmark_obj_eval``)."""

    label: SharedLabel


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
    | OfCgroup
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
    | SetLabel
    | TakenInSet
    | CountedInSet
    | VerdictOf
    | DnatTo
    | Action
)
"""One match or one statement of a rule."""
