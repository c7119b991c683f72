"""Drops the TCP resets of the stack itself, by a table of nftables before all others.

Nobody listens on the node, so the stack answers each TCP segment that is delivered with a RST. It
passes OUTPUT, and conntrack (priority -200) closes the connection for it: the reply that the test
sends next would be INVALID. A chain before everything else drops it, and leaves other resets
alone, by their socket:

* packets that the replay makes belong to a socket that somebody opened, hence with an owner
  (``nft_meta_get_eval_skugid``);
* the stack's belong to its control socket (``ip_send_unicast_reply``), which has a cgroup like
  any socket, but no owner;
* REJECT's belong to no socket at all (``nf_send_reset``), and a test of the cgroup does not
  match them.

IPv6 sends the stack's resets without a socket, too (``tcp_v6_send_response``), but with the flow label
of the packet that they answer, if ``net.ipv6.flowlabel_reflect`` requests it (bit 1). Every packet of
the harness has one, and REJECT's resets have none (``nf_reject_ip6hdr_put``).

A kernel without ``CONFIG_CGROUP_NET_CLASSID`` cannot ask for the cgroup. There the state of the
connection must do: REJECT's RST has that of the rejected packet attached before it is sent
(``nf_ct_attach``), the stack's has none yet, which nft calls ``invalid``. That is not exact for a
REJECT of packets without a connection, and it switches conntrack on; so it is not used for rules
that must do without conntrack.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from backends.testbed.command import run
from translate.errors import MachineError
from translate.ir import Family

__all__ = ["ResetFallback", "suppress_stack_rst"]


class ResetFallback(Enum):
    """A condition for the stack's resets, for kernels that cannot match the cgroup of a socket."""

    UNTRACKED = "ct state invalid"
    """Resets without a connection; this switches conntrack on."""
    ALL = ""
    """All resets; for rules that reject in another place than netfilter's OUTPUT."""


_BY_SOCKET: Final = "meta cgroup 0"
_BY_LABEL: Final = "ip6 flowlabel != 0"


def suppress_stack_rst(fallback: ResetFallback, family: Family) -> None:
    """Load the table into the current network namespace. Raises MachineError."""
    tests = (_BY_LABEL,) if family is Family.IP6 else (_BY_SOCKET, fallback.value)
    for test in tests:
        done = run(("nft", "-f", "-"), _text(test, family))
        if not done.returncode:
            return
    raise MachineError(f"nft does not accept the table that drops the stack's resets: {done.stderr.strip()}")


def _text(test: str, family: Family) -> str:
    return (
        f"table {family.value} nfparity_stack_rst {{\n"
        "  chain output {\n"
        "    type filter hook output priority -400; policy accept;\n"
        "    meta skuid 0 return\n"
        f"    tcp flags & rst == rst {test} drop\n"
        "  }\n"
        "}\n"
    )
