"""Timeouts of conntrack, from a node's sysctls."""

from __future__ import annotations

from typing import Final

from backends.model.node import Node
from translate.dataclass import dataclass
from translate.errors import InputError

__all__ = ["TIMEOUT_DEFAULTS", "Timeouts", "timeouts_of"]

_PREFIX: Final = "net.netfilter.nf_conntrack_"

TIMEOUT_DEFAULTS: Final = {
    "tcp_timeout_syn_sent": 120,
    "tcp_timeout_syn_recv": 60,
    "tcp_timeout_established": 432000,
    "tcp_timeout_fin_wait": 120,
    "tcp_timeout_close_wait": 60,
    "tcp_timeout_last_ack": 30,
    "tcp_timeout_time_wait": 120,
    "tcp_timeout_close": 10,
    "tcp_timeout_max_retrans": 300,
    "tcp_timeout_unacknowledged": 300,
    "tcp_max_retrans": 3,
    "udp_timeout": 30,
    "udp_timeout_stream": 120,
    "icmp_timeout": 30,
    "icmpv6_timeout": 30,
    "gre_timeout": 30,
    "gre_timeout_stream": 180,
    "generic_timeout": 600,
    "sctp_timeout_heartbeat_sent": 30,
    "sctp_timeout_established": 210,
    "dccp_timeout_request": 240,
    "dccp_timeout_open": 43200,
}
"""The kernel's defaults by sysctl name without ``net.netfilter.nf_conntrack_``.

In seconds, except ``tcp_max_retrans`` (``tcp_timeouts``, ``udp_timeouts``, ``sctp_timeouts`` …).
"""

_SYN_SENT2: Final = 120
"""``tcp_timeouts[TCP_CONNTRACK_SYN_SENT2]`` has no sysctl."""

_TCP_STATES: Final = (
    "syn_sent",
    "syn_recv",
    "established",
    "fin_wait",
    "close_wait",
    "last_ack",
    "time_wait",
    "close",
)
"""The states of TCP in the order of ``enum tcp_conntrack``, which begins at 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """The timeouts in seconds; ``tcp_max_retrans`` is a number of segments.

    ``tcp`` is indexed by the number of the state (``enum tcp_conntrack``); a connection in state NONE counts
    as SYN_SENT.
    """

    tcp: tuple[int, ...]
    tcp_max_retrans: int
    tcp_retransmitted: int
    tcp_unacknowledged: int
    udp: int
    udp_stream: int
    icmp: int
    icmpv6: int
    gre: int
    gre_stream: int
    generic: int
    sctp: int
    sctp_established: int
    dccp: int
    dccp_open: int


def timeouts_of(node: Node) -> Timeouts:
    """Return the timeouts from the node's sysctls, with the kernel's defaults for the others.

    Raises InputError for a value that is not a non-negative number.
    """

    def seconds(name: str) -> int:
        value = node.sysctls.get(_PREFIX + name)
        if value is None:
            return TIMEOUT_DEFAULTS[name]
        text = value.strip()
        if not (text.isascii() and text.isdigit() and int(text) < 1 << 31):
            raise InputError(f"sysctl {_PREFIX}{name}: {value!r} is not a number of seconds")
        return int(text)

    states = [seconds(f"tcp_timeout_{state}") for state in _TCP_STATES]
    return Timeouts(
        tcp=(states[0], *states, _SYN_SENT2),
        tcp_max_retrans=seconds("tcp_max_retrans"),
        tcp_retransmitted=seconds("tcp_timeout_max_retrans"),
        tcp_unacknowledged=seconds("tcp_timeout_unacknowledged"),
        udp=seconds("udp_timeout"),
        udp_stream=seconds("udp_timeout_stream"),
        icmp=seconds("icmp_timeout"),
        icmpv6=seconds("icmpv6_timeout"),
        gre=seconds("gre_timeout"),
        gre_stream=seconds("gre_timeout_stream"),
        generic=seconds("generic_timeout"),
        sctp=seconds("sctp_timeout_heartbeat_sent"),
        sctp_established=seconds("sctp_timeout_established"),
        dccp=seconds("dccp_timeout_request"),
        dccp_open=seconds("dccp_timeout_open"),
    )
