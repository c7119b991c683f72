"""Refusals of NFQUEUE where nftables treats a queued packet differently.

* In nat, the connection stays unbound at the hook (``nf_nat_inet_fn``), which no backend models.
* In OUTPUT of mangle, x_tables routes a changed packet again before it is queued (``ipt_mangle_out``);
  nftables routes only accepted packets again (``nf_route_table_hook4``).
"""

from __future__ import annotations

from collections.abc import Iterator

from translate.errors import Refusal
from translate.ir import Hook, LoweredChain, Origin, Queue, TableName, alternatives
from translate.nft.limits.refusal import CannotSay
from translate.passes.calls import callees_first
from translate.passes.inventory import Inventory

__all__ = ["refused_queues"]


def refused_queues(inventory: Inventory) -> Iterator[Refusal]:
    """Yield a refusal for each NFQUEUE that nftables has no exact form for."""
    if Queue not in inventory.actions:
        return
    program = inventory.program
    for chain in program.chains:
        if chain.table is TableName.NAT:
            reason = "if NFQUEUE takes a packet in nat, its connection gets no NAT binding at this hook"
            yield from (CannotSay("queue-nat", reason).at(origin) for origin in _queueing(chain))
    routed = [c for c in program.chains if c.table is TableName.MANGLE and c.hook is Hook.OUTPUT]
    reason = "nftables does not reroute a packet that comes back from a queue in OUTPUT of mangle"
    for chain in callees_first(program, routed):
        yield from (CannotSay("queue-route", reason).at(origin) for origin in _queueing(chain))


def _queueing(chain: LoweredChain) -> Iterator[Origin]:
    for statement in chain.statements:
        for rule in alternatives(statement):
            if any(isinstance(action, Queue) for action in rule.actions):
                yield rule.origin
