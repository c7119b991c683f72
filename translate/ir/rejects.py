"""REJECT: the answers to a dropped packet, and their ICMP codes."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from translate.dataclass import dataclass
from translate.ir.family import Family

__all__ = ["REJECT_ICMP_CODES", "Reject", "RejectKind"]


class RejectKind(StrEnum):
    """The answers of REJECT, spelled as ``--reject-with`` prints them."""

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


REJECT_ICMP_CODES: Final[Mapping[Family, Mapping[RejectKind, int]]] = {
    Family.IP: {
        RejectKind.ICMP_NET_UNREACHABLE: 0,
        RejectKind.ICMP_HOST_UNREACHABLE: 1,
        RejectKind.ICMP_PROTO_UNREACHABLE: 2,
        RejectKind.ICMP_PORT_UNREACHABLE: 3,
        RejectKind.ICMP_NET_PROHIBITED: 9,
        RejectKind.ICMP_HOST_PROHIBITED: 10,
        RejectKind.ICMP_ADMIN_PROHIBITED: 13,
    },
    Family.IP6: {
        RejectKind.ICMP6_NO_ROUTE: 0,
        RejectKind.ICMP6_ADM_PROHIBITED: 1,
        RejectKind.ICMP6_ADDR_UNREACHABLE: 3,
        RejectKind.ICMP6_PORT_UNREACHABLE: 4,
        RejectKind.ICMP6_POLICY_FAIL: 5,
        RejectKind.ICMP6_REJECT_ROUTE: 6,
    },
}
"""ICMP codes of the destination unreachable messages that REJECT sends: all its answers except the RST.

From ``reject_tg``, ``reject_tg6``, linux/icmp.h and linux/icmpv6.h.
"""


@dataclass(frozen=True, slots=True)
class Reject:
    """Drop the packet and answer with an error, if an answer may be sent (``nf_reject_ipv4``)."""

    kind: RejectKind
