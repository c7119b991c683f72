"""Actions: the effects and verdicts of a rule on a packet that matches.

*Verdicts* end the rule, the chain or the table; *effects* change the packet, its mark or its
connection. A rule of x_tables has at most one action; lowered rules may have several effects and
then one verdict.
"""

from __future__ import annotations

from enum import StrEnum

from translate.dataclass import dataclass
from translate.ir.hashmark import HashMark
from translate.ir.matches import SetDirection
from translate.ir.rejects import Reject
from translate.ir.sideeffects import (
    Audit,
    Classify,
    ConnSecmark,
    Duplicate,
    External,
    FillChecksum,
    Log,
    NfLog,
    Secmark,
    Trace,
)
from translate.ir.values import Interval

__all__ = [
    "Accept",
    "Action",
    "AddTtl",
    "Dnat",
    "Drop",
    "Goto",
    "Jump",
    "LimitMss",
    "Masquerade",
    "NatPorts",
    "Netmap",
    "NoTrack",
    "Proxy",
    "Queue",
    "Redirect",
    "RestoreMark",
    "RestoreSocketMark",
    "Return",
    "SaveMark",
    "SetConnmark",
    "SetMark",
    "SetTcpFlags",
    "SetTos",
    "SetTtl",
    "Snat",
    "StripOptions",
    "SynProxy",
    "Template",
    "TranslatePrefix",
    "ZoneSide",
]


@dataclass(frozen=True, slots=True)
class Accept:
    """Let the packet pass this table's hook; later tables still see it."""


@dataclass(frozen=True, slots=True)
class Drop:
    """Discard the packet."""


@dataclass(frozen=True, slots=True)
class Return:
    """Continue after the rule that jumped here; in a built-in chain, apply its policy."""


@dataclass(frozen=True, slots=True)
class Jump:
    """Go through ``chain``, and continue after this rule when it ends or returns."""

    chain: str


@dataclass(frozen=True, slots=True)
class Goto:
    """Go through ``chain``, and return from it to the caller of *this* chain."""

    chain: str


@dataclass(frozen=True, slots=True)
class SetMark:
    """``mark = (mark & ~mask) ^ value`` (``xt_mark``, ``--set-xmark value/mask``)."""

    value: int
    mask: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Proxy:
    """Hand the packet to a transparent socket of the node, or drop it if there is none (``tproxy_tg4``).

    The socket is looked up by ``address`` (None: that of the input interface) and ``port`` (0: the packet's
    own). If there is such a socket, ``mark = (mark & ~mask) ^ value``, and the table accepts the packet.
    """

    address: int | None
    port: int
    value: int = 0
    mask: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """Hand the packet to a queue from ``first`` to ``last``; the program that reads the queue decides about
    it.

    ``by_processor``: the processor's number chooses the queue, otherwise a hash of the connection. Where no
    program reads it, the packet is dropped; with ``bypass`` it passes the table (``nf_queue``).
    """

    first: int
    last: int
    bypass: bool = False
    by_processor: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SynProxy:
    """Answer a SYN with a cookie, and connect to the server when the client returns it (``synproxy_tg4``).

    The packet ends here if it is a SYN or an ACK without any other of FIN, SYN, RST and ACK; an ACK without a
    cookie is dropped. Any other packet goes on. ``mss`` and ``wscale`` are those of the server, None if it
    has no such option; the flags are its other options.
    """

    mss: int | None = None
    wscale: int | None = None
    sack_perm: bool = False
    timestamp: bool = False
    ecn: bool = False


@dataclass(frozen=True, slots=True)
class StripOptions:
    """Overwrite the TCP options of these kinds with NOPs, in order (``tcpoptstrip_mangle_packet``)."""

    options: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class LimitMss:
    """Lower the MSS option of a SYN to ``mss``; None is the lower MTU of both directions minus the headers.

    A SYN without the option gets one of at most 536 (IPv6: 1220), unless it carries data
    (``tcpmss_mangle_packet``).
    """

    mss: int | None


@dataclass(frozen=True, slots=True)
class SetConnmark:
    """``ctmark = shifted((ctmark & ~mask) ^ value)`` (``connmark_tg``, ``--set-xmark value/mask``).

    SetConnmark, SaveMark and RestoreMark do nothing to a packet without a conntrack entry. ``shift`` is the
    number of bits by which a mark is shifted to the left, negative for the right (``connmark_tg_shift``).
    """

    value: int
    mask: int
    shift: int = 0


@dataclass(frozen=True, slots=True)
class SaveMark:
    """``ctmark = (ctmark & ~ctmask) ^ shifted(mark & nfmask)`` (``connmark_tg``, ``--save-mark``)."""

    nfmask: int
    ctmask: int
    shift: int = 0


@dataclass(frozen=True, slots=True)
class RestoreMark:
    """``mark = (mark & ~nfmask) ^ shifted(ctmark & ctmask)`` (``connmark_tg``, ``--restore-mark``)."""

    nfmask: int
    ctmask: int
    shift: int = 0


@dataclass(frozen=True, slots=True)
class RestoreSocketMark:
    """``mark`` = that of the socket that takes the packet (``socket_match``, ``--restore-skmark``).

    A socket of a request or in TIME-WAIT has none (``sk_fullsock``), so the packet keeps its mark.
    """


@dataclass(frozen=True, slots=True)
class SetTos:
    """``tos = (tos & ~mask) ^ value``, on TOS or traffic class (``tos_tg``; ``dscp_tg`` with 0xfc)."""

    value: int
    mask: int


@dataclass(frozen=True, slots=True)
class SetTcpFlags:
    """``flags = (flags & ~mask) ^ value``, on the flags of a segment, with its checksum (``set_ect_tcp``)."""

    value: int
    mask: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TranslatePrefix:
    """Replace the prefix of an IPv6 address and keep the checksums valid (RFC 6296, ``ip6t_NPT``).

    ``source`` selects the address. Its first ``bits`` bits become those of ``new``, whatever they were, and
    one later word of 16 bits is adjusted by the difference of the checksums of ``old`` and ``new``. In an
    ICMP error, the quoted address of the other side is translated if it has the prefix ``old``/``old_bits``.
    """

    source: bool
    old: int
    old_bits: int
    new: int
    bits: int


@dataclass(frozen=True, slots=True)
class SetTtl:
    """``ttl = value``, on TTL or hop limit (``ttl_tg``, ``hl_tg6``)."""

    value: int


@dataclass(frozen=True, slots=True)
class AddTtl:
    """``ttl = ttl + number``, limited to 0 to 255 (``ttl_tg``, ``hl_tg6``); ``number`` may be negative."""

    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NatPorts:
    """The ports that NAT may choose, and how it chooses.

    ``interval`` is None when no port was given. Without ``random`` or ``fully_random`` the kernel keeps the
    packet's port if it is in range and free (``get_unique_tuple``, ``nf_nat_core.c``). ``persistent`` picks
    the address by the source alone. With a ``base``, which requires a range, the new port is as far into the
    range as the old port is above the base, modulo the length of the range (``NF_NAT_RANGE_PROTO_OFFSET``).
    For ICMP the port is the identifier.
    """

    interval: Interval | None = None
    base: int | None = None
    random: bool = False
    fully_random: bool = False
    persistent: bool = False


@dataclass(frozen=True, slots=True)
class Dnat:
    """Bind the connection's destination; ``addresses`` is None when only the port changes."""

    addresses: Interval | None
    ports: NatPorts


@dataclass(frozen=True, slots=True)
class Snat:
    """Bind the connection's source; ``addresses`` is None when only the port changes."""

    addresses: Interval | None
    ports: NatPorts


@dataclass(frozen=True, slots=True)
class Masquerade:
    """Bind the connection's source to an address of the outgoing device, selected by the next hop.

    That is ``inet_select_addr(out, nexthop, RT_SCOPE_UNIVERSE)``, not the route's preferred source
    (``nf_nat_masquerade_ipv4``).
    """

    ports: NatPorts


@dataclass(frozen=True, slots=True)
class Redirect:
    """Bind the destination to an address of the input interface, or to 127.0.0.1 (``::1``) at OUTPUT."""

    ports: NatPorts


@dataclass(frozen=True, slots=True, kw_only=True)
class Netmap:
    """Bind an address of the connection: the bits under ``mask`` are replaced by those of ``network``.

    The other bits stay those of the packet's address (``netmap_tg4``). ``side`` is the source at INPUT and
    POSTROUTING, otherwise the destination; None leaves it to the hook.
    """

    network: int
    mask: int
    side: SetDirection | None = None


@dataclass(frozen=True, slots=True)
class NoTrack:
    """Keep the packet out of connection tracking (``-j CT --notrack``, ``-j NOTRACK``)."""


class ZoneSide(StrEnum):
    """The directions of a connection whose tuples are in its zone; the other direction is in zone 0."""

    BOTH = "both"
    ORIGINAL = "original"
    REPLY = "reply"


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """Attach a conntrack template with the zone and settings of a new connection (``xt_ct_target``).

    ``zone`` None takes the zone from the packet's mark when conntrack sees the packet. ``helper`` and
    ``timeout`` are names, empty for none; a helper is for one ``protocol``. ``events`` and
    ``expectation_events`` are the events to report, None for all. A packet that is UNTRACKED or already has a
    connection or a template is not changed.
    """

    zone: int | None = 0
    side: ZoneSide = ZoneSide.BOTH
    helper: str = ""
    protocol: int | None = None
    timeout: str = ""
    events: tuple[str, ...] | None = None
    expectation_events: tuple[str, ...] | None = None


Action = (
    Accept
    | Drop
    | Return
    | Jump
    | Goto
    | Reject
    | SetMark
    | HashMark
    | LimitMss
    | StripOptions
    | SynProxy
    | Proxy
    | Queue
    | SetConnmark
    | SaveMark
    | RestoreMark
    | RestoreSocketMark
    | SetTos
    | SetTcpFlags
    | TranslatePrefix
    | SetTtl
    | AddTtl
    | Dnat
    | Snat
    | Masquerade
    | Redirect
    | Netmap
    | NoTrack
    | Template
    | Log
    | NfLog
    | Audit
    | Trace
    | Classify
    | ConnSecmark
    | Duplicate
    | External
    | Secmark
    | FillChecksum
)
