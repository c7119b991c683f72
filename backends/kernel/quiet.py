"""The quiet table: keeps the stack's own resets out of what is being tested.

Nobody listens on the node, so the stack answers each TCP segment that is delivered with a RST. It
passes OUTPUT, and conntrack (priority -200) closes the connection for it: the reply that the test
sends next would be INVALID. A chain before everything else drops it. What tells it apart:

* packets that the replay makes belong to a socket with an owner, the stack's own to none with a
  file (``nft_meta_get_eval_skugid``);
* REJECT's RST has the connection of the rejected packet attached before it is sent
  (``nf_ct_attach`` in ``nf_send_reset``), so that its state is not ``invalid``, which in this
  place means "no connection" (``nft_ct_get_eval``).

A rule set that runs without conntrack gets the variant that never mentions ``ct``, since any such
expression would switch conntrack on in the namespace.
"""

from __future__ import annotations

from enum import Enum

from backends.kernel.command import run
from translate.errors import MachineError

__all__ = ["Quiet", "quiet_text", "quieten"]

TABLE = "nfparity_quiet"


class Quiet(Enum):
    """Which resets the quiet table drops."""

    UNTRACKED = "ct state invalid "
    """Those without a connection attached; switches conntrack on."""
    ALL = ""
    """All that the stack makes; for rules that reject in some other place than netfilter."""


def quiet_text(quiet: Quiet) -> str:
    """Return the table, as nft reads it."""
    return (
        f"table ip {TABLE} {{\n"
        "  chain output {\n"
        "    type filter hook output priority -400; policy accept;\n"
        "    meta skuid 0 return\n"
        f"    tcp flags & rst == rst {quiet.value}drop\n"
        "  }\n"
        "}\n"
    )


def quieten(quiet: Quiet) -> None:
    """Load the table into the current network namespace. Raises MachineError."""
    done = run(("nft", "-f", "-"), quiet_text(quiet))
    if done.returncode:
        raise MachineError(f"nft does not take the harness's own table: {done.stderr.strip()}")
