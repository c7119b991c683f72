"""Drops the TCP resets of the stack itself, by a table of nftables before all others.

The node has no listening sockets, so the stack answers each delivered TCP segment with a RST. The RST passes
OUTPUT, where conntrack (priority -200) closes the connection, and the next reply of the flow would be
INVALID. A chain with an earlier priority drops the stack's resets. It distinguishes them from other resets by
their socket:

* packets of the replay belong to a socket that a process opened, so it has an owner
  (``nft_meta_get_eval_skugid``);
* resets of the stack belong to its control socket (``ip_send_unicast_reply``), which has a cgroup like any
  socket, but no owner;
* resets of REJECT have no socket (``nf_send_reset``), so a test of the cgroup does not match them.

IPv6 sends the stack's resets without a socket, too (``tcp_v6_send_response``), but with the flow label of the
packet that they answer, if ``net.ipv6.flowlabel_reflect`` requests it (bit 1). Every packet of the harness
has a flow label, and REJECT's resets have none (``nf_reject_ip6hdr_put``).

A kernel without ``CONFIG_CGROUP_NET_CLASSID`` cannot test the cgroup. There the connection is tested instead:
REJECT's RST has the connection of the rejected packet (``nf_ct_attach``), and the stack's RST has none yet,
which is ``invalid`` in nft. That is not exact for a REJECT of packets without a connection, and it switches
conntrack on, so it is not used for rules that must run without conntrack.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from backends.testbed.command import run
from backends.testbed.libnftables import NftHandle
from translate.errors import MachineError
from translate.ir import Family

__all__ = ["ResetFallback", "suppress_stack_rst"]


class ResetFallback(Enum):
    """A condition for the stack's resets, for kernels that cannot match the cgroup of a socket."""

    UNTRACKED = "ct state invalid"
    """Resets without a connection; this switches conntrack on."""
    ALL = ""
    """All resets, for rules whose own resets do not pass netfilter's OUTPUT."""


_BY_SOCKET: Final = "meta cgroup 0"
_BY_LABEL: Final = "ip6 flowlabel != 0"


def suppress_stack_rst(fallback: ResetFallback, family: Family) -> None:
    """Load the table into the current network namespace. Raises MachineError."""
    tests = (_BY_LABEL,) if family is Family.IP6 else (_BY_SOCKET, fallback.value)
    for test in tests:
        refusal = _refusal(_text(test, family))
        if refusal is None:
            return
    raise MachineError(f"nft does not accept the table that drops the stack's resets: {refusal}")


def _refusal(text: str) -> str | None:
    """Load a table; return the message if that is not possible."""
    try:
        handle = NftHandle()
    except MachineError:  # a process takes six times as long
        done = run(("nft", "-f", "-"), text)
        return done.stderr.strip() if done.returncode else None
    try:
        return handle.attempt(text)[0]
    finally:
        handle.close()


def _text(test: str, family: Family) -> str:
    return (
        f"table {family.value} nfparity_stack_rst {{\n"
        "  chain output {\n"
        "    type filter hook output priority -400; policy accept;\n"
        "    meta skuid >= 0 return\n"
        f"    tcp flags & rst == rst {test} drop\n"
        "  }\n"
        "}\n"
    )
