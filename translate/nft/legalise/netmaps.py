"""The side that NETMAP maps: in x_tables it depends on the hook, in nftables on the statement.

NETMAP of one address is DNAT or SNAT to it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import assert_never

from translate.dataclass import replace
from translate.errors import Refusal
from translate.ir import (
    Action,
    Apply,
    Choose,
    Dnat,
    Hook,
    Interval,
    Lookup,
    LoweredChain,
    NatPorts,
    Netmap,
    Program,
    SetDirection,
    Snat,
    Statement,
    TableName,
    alternatives,
)
from translate.nft.limits.refusal import CannotSay
from translate.passes.calls import callees_first
from translate.passes.inventory import Inventory

__all__ = ["with_sides"]

_Actions = tuple[Action, ...]


def with_sides(inventory: Inventory) -> tuple[Inventory, tuple[Refusal, ...]]:
    """Return the Program with a side for each NETMAP, and a refusal for each NETMAP that needs both sides."""
    if Netmap not in inventory.actions:
        return inventory, ()
    program = inventory.program
    chains = [chain for chain in program.chains if any(map(_mapping, chain.statements))]
    sides: defaultdict[str, set[SetDirection]] = defaultdict(set)
    for base in program.chains:
        if base.table is TableName.NAT and base.hook is not None:
            source = base.hook in (Hook.INPUT, Hook.POSTROUTING)
            for chain in callees_first(program, (base,)):
                sides[chain.name].add(SetDirection.SRC if source else SetDirection.DST)
    refusals = tuple(r for chain in chains if len(sides[chain.name]) > 1 for r in _refused(chain))
    changed = {
        chain.name: _sided(chain, next(iter(sorted(sides[chain.name])), SetDirection.DST), program)
        for chain in chains
    }
    program = replace(program, chains=tuple(changed.get(c.name, c) for c in program.chains))
    return Inventory.of(program), refusals


def _mapping(statement: Statement) -> bool:
    return any(isinstance(a, Netmap) for rule in alternatives(statement) for a in rule.actions)


def _refused(chain: LoweredChain) -> Iterator[Refusal]:
    reason = "this chain is reached from hooks where NETMAP maps the source and where it maps the destination"
    for statement in chain.statements:
        for rule in alternatives(statement):
            if any(isinstance(action, Netmap) for action in rule.actions):
                yield CannotSay("netmap-sides", reason).at(rule.origin)


def _sided(chain: LoweredChain, side: SetDirection, program: Program) -> LoweredChain:
    whole = (1 << program.family.bits) - 1

    def changed(actions: _Actions) -> _Actions:
        return tuple(_of_side(a, side, whole) if isinstance(a, Netmap) else a for a in actions)

    statements: list[Statement] = []
    for statement in chain.statements:
        match statement:
            case Apply():
                statements.append(replace(statement, actions=changed(statement.actions)))
            case Lookup():
                entries = tuple(replace(e, actions=changed(e.actions)) for e in statement.entries)
                statements.append(replace(statement, entries=entries))
            case Choose():
                branches = tuple(replace(b, actions=changed(b.actions)) for b in statement.branches)
                statements.append(replace(statement, branches=branches))
            case _:
                assert_never(statement)
    return replace(chain, statements=tuple(statements))


def _of_side(action: Netmap, side: SetDirection, whole: int) -> Action:
    if action.mask != whole:
        return replace(action, side=side)
    address = Interval.point(action.network)
    return Snat(address, NatPorts()) if side is SetDirection.SRC else Dnat(address, NatPorts())
