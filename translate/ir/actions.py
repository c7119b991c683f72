"""Actions: what a rule does to a packet that matches.

*Verdicts* end the rule, the chain or the table; *effects* change the packet, its mark or its
connection. A rule of x_tables has at most one action; lowered rules may have several effects and
then one verdict.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from translate.ir.values import Interval

__all__ = [
    "Accept",
    "Action",
    "Dnat",
    "Drop",
    "Goto",
    "Jump",
    "Log",
    "LogDetail",
    "Masquerade",
    "NatPorts",
    "NfLog",
    "NoTrack",
    "Redirect",
    "Reject",
    "RejectKind",
    "RestoreMark",
    "Return",
    "SaveMark",
    "SetConnmark",
    "SetMark",
    "Snat",
]


@dataclass(frozen=True, slots=True)
class Accept:
    """The packet passes this table's hook; later tables still see it."""


@dataclass(frozen=True, slots=True)
class Drop:
    """The packet is gone."""


@dataclass(frozen=True, slots=True)
class Return:
    """Back to the rule after the jump; from a built-in chain, its policy."""


@dataclass(frozen=True, slots=True)
class Jump:
    """Go through ``chain``, and come back here when it ends or returns."""

    chain: str


@dataclass(frozen=True, slots=True)
class Goto:
    """Go through ``chain``, and return from it to where *this* chain was jumped to from."""

    chain: str


class RejectKind(StrEnum):
    """What REJECT answers with, spelled as ``--reject-with`` prints it."""

    ICMP_NET_UNREACHABLE = "icmp-net-unreachable"
    ICMP_HOST_UNREACHABLE = "icmp-host-unreachable"
    ICMP_PROTO_UNREACHABLE = "icmp-proto-unreachable"
    ICMP_PORT_UNREACHABLE = "icmp-port-unreachable"
    ICMP_NET_PROHIBITED = "icmp-net-prohibited"
    ICMP_HOST_PROHIBITED = "icmp-host-prohibited"
    ICMP_ADMIN_PROHIBITED = "icmp-admin-prohibited"
    ICMP6_NO_ROUTE = "icmp6-no-route"
    ICMP6_ADM_PROHIBITED = "icmp6-adm-prohibited"
    ICMP6_ADDR_UNREACHABLE = "icmp6-addr-unreachable"
    ICMP6_PORT_UNREACHABLE = "icmp6-port-unreachable"
    ICMP6_POLICY_FAIL = "icmp6-policy-fail"
    ICMP6_REJECT_ROUTE = "icmp6-reject-route"
    TCP_RESET = "tcp-reset"


@dataclass(frozen=True, slots=True)
class Reject:
    """Answer with an error and drop; where no answer is due, just drop (``nf_reject_ipv4``)."""

    kind: RejectKind


@dataclass(frozen=True, slots=True)
class SetMark:
    """``mark = (mark & ~mask) ^ value`` (``xt_mark``, ``--set-xmark value/mask``)."""

    value: int
    mask: int


@dataclass(frozen=True, slots=True)
class SetConnmark:
    """``ctmark = (ctmark & ~mask) ^ value`` (``connmark_tg``, ``--set-xmark value/mask``).

    This and the two that copy marks do nothing to a packet without a conntrack entry.
    """

    value: int
    mask: int


@dataclass(frozen=True, slots=True)
class SaveMark:
    """``ctmark = (ctmark & ~ctmask) ^ (mark & nfmask)`` (``connmark_tg``, ``--save-mark``)."""

    nfmask: int
    ctmask: int


@dataclass(frozen=True, slots=True)
class RestoreMark:
    """``mark = (mark & ~nfmask) ^ (ctmark & ctmask)`` (``connmark_tg``, ``--restore-mark``)."""

    nfmask: int
    ctmask: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NatPorts:
    """How a port is chosen: the range given, if any, and the randomness asked for.

    ``interval`` is None when no port was given. Without ``random`` or ``fully_random`` the
    kernel keeps the port that the packet has if it is in range and free
    (``get_unique_tuple``, ``nf_nat_core.c``). ``persistent`` picks the address by source alone.
    With a ``base``, which a range alone has, the port moves as far into the range as it is above the base,
    and round where the range ends (``NF_NAT_RANGE_PROTO_OFFSET``). Of ICMP the identifier is meant.
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
    """Bind the connection's source to the out-device's address for the next hop.

    That is ``inet_select_addr(out, nexthop, RT_SCOPE_UNIVERSE)``, not the route's preferred source
    (``nf_nat_masquerade_ipv4``).
    """

    ports: NatPorts


@dataclass(frozen=True, slots=True)
class Redirect:
    """Bind the destination to the in-device's address, or to 127.0.0.1 for packets made here."""

    ports: NatPorts


@dataclass(frozen=True, slots=True)
class NoTrack:
    """Keep the packet out of connection tracking (``-j CT --notrack``, ``-j NOTRACK``)."""


class LogDetail(StrEnum):
    """What else LOG writes of a packet, spelled as the option behind ``--log-``."""

    TCP_SEQUENCE = "tcp-sequence"
    TCP_OPTIONS = "tcp-options"
    IP_OPTIONS = "ip-options"
    UID = "uid"
    MACDECODE = "macdecode"


@dataclass(frozen=True, slots=True)
class Log:
    """Write the packet to the kernel's log at ``level`` (0 to 7); it goes on as it is (``log_tg``)."""

    prefix: str
    level: int
    details: tuple[LogDetail, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NfLog:
    """Send the packet to listeners of a netlink ``group``; it goes on as it is (``nflog_tg``).

    ``size`` is how many bytes of it are sent, ``threshold`` how many packets are gathered; None when
    not given.
    """

    prefix: str
    group: int
    size: int | None = None
    threshold: int | None = None


Action = (
    Accept
    | Drop
    | Return
    | Jump
    | Goto
    | Reject
    | SetMark
    | SetConnmark
    | SaveMark
    | RestoreMark
    | Dnat
    | Snat
    | Masquerade
    | Redirect
    | NoTrack
    | Log
    | NfLog
)
