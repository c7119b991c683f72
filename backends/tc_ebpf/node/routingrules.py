"""The limits of the tc program on a node with routing rules.

The kernel routes received packets after the program has set their marks, so routing rules by mark apply to
them. The program itself looks up routes for packets that are changed in OUTPUT, for answers of REJECT, and
for reverse path checks. It knows the local and the main table only. So a ruleset that needs one of these
lookups is refused on a node whose routing rules could select another route.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from backends.model.node import Node
from backends.model.routes import LOCAL, RoutingRule
from translate.bpf import BACKEND
from translate.dataclass import replace
from translate.errors import Refusal, UnsupportedError
from translate.ir import (
    NOWHERE,
    REVERSE_PATHS,
    AddressType,
    AnyOf,
    Dnat,
    Family,
    FieldTest,
    HashMark,
    Hook,
    Masquerade,
    Netmap,
    Reject,
    RestoreMark,
    Rule,
    Ruleset,
    SetMark,
    SetTos,
    Snat,
    Table,
    TableName,
    Test,
)

__all__ = ["FEATURE", "check_routing"]

FEATURE: Final = "routing-rules"
_BY_ITSELF: Final = "for which the tc program looks up a route without the routing rules of the node"


def check_routing(node: Node, ruleset: Ruleset) -> None:
    """Raise UnsupportedError if the program could route a packet differently from the node's routing rules.

    A node without rules of its own is never refused. ``ruleset`` may be a sample of the rules.
    """
    family = ruleset.family
    refusals = [Refusal(NOWHERE, BACKEND, FEATURE, reason) for reason in _of_node(node, family)]
    if node.has_own_rules(family):
        refusals += [
            Refusal(rule.origin, BACKEND, FEATURE, f"{what}, {_BY_ITSELF}")
            for rule, what in _lookups(ruleset, node)
        ]
    if refusals:
        raise UnsupportedError(tuple(refusals))


def _of_node(node: Node, family: Family) -> Iterator[str]:
    for route in node.routes:
        if route.family is family and route.type is AddressType.LOCAL:
            yield f"the route {route} delivers packets whose addresses are not the node's"
    if not node.has_own_rules(family):
        return
    first = next(iter(node.rules_of(family)), None)
    if first is None or replace(first, priority=0) != RoutingRule(family=family, priority=0, table=LOCAL):
        yield "the first routing rule is not the one for the local table"
    if family is Family.IP:
        for name, value in sorted(node.sysctls.items()):
            if name.startswith("net.ipv4.conf.") and name.endswith(".rp_filter") and value != "0":
                yield f"{name} is {value}: a check of sources, {_BY_ITSELF}"


def _lookups(ruleset: Ruleset, node: Node) -> Iterator[tuple[Rule, str]]:
    """Yield the rules that make the program look up a route, each with a description of its effect."""
    networks = any(
        len({a.network for a in i.addresses if a.family is Family.IP}) > 1 for i in node.interfaces
    )
    for table in ruleset.tables:
        in_output, in_input = _chains_from(table, Hook.OUTPUT), _chains_from(table, Hook.INPUT)
        for name, rule in ((chain.name, rule) for chain in table.chains for rule in chain.rules):
            made_here = name in in_output
            for action in rule.actions:
                match action:
                    case Reject():
                        yield rule, "REJECT makes an answer"
                    case SetMark() | HashMark() | RestoreMark() | SetTos() if (
                        made_here and table.name is TableName.MANGLE
                    ):
                        yield rule, "OUTPUT changes a packet that is then routed again"
                    case Dnat() | Netmap() if made_here:
                        yield rule, "OUTPUT changes the destination of a packet"
                    case Snat() | Netmap() if name in in_input:
                        yield rule, "INPUT changes the source of a packet, and OUTPUT that of its answers"
                    case Masquerade() if networks and ruleset.family is Family.IP:
                        yield rule, "MASQUERADE selects among addresses by the next hop of a packet"
                    case _:
                        pass
            if any(test.field in REVERSE_PATHS for test in _field_tests(rule.tests)):
                yield rule, "a test looks up the route back to the sender of a packet"


def _chains_from(table: Table, hook: Hook) -> set[str]:
    """Return the names of the chains that a packet can reach from one hook of a table."""
    pending = [chain for chain in table.chains if chain.hook is hook]
    known = {chain.name for chain in pending}
    while pending:
        chain = pending.pop()
        for rule in chain.rules:
            callee = None if rule.callee is None else table.chain(rule.callee)
            if callee is not None and callee.name not in known:
                known.add(callee.name)
                pending.append(callee)
    return known


def _field_tests(tests: tuple[Test, ...]) -> Iterator[FieldTest]:
    for test in tests:
        match test:
            case FieldTest():
                yield test
            case AnyOf():
                yield from _field_tests(test.tests)
            case _:
                pass
