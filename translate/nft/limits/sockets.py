"""Refusals of ``-m cgroup`` in POSTROUTING, where nft has no match for a full socket."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from translate.errors import Refusal
from translate.ir import (
    CgroupTest,
    Field,
    FieldTest,
    Hook,
    Interval,
    LoweredChain,
    Program,
    Protocol,
    Statement,
)
from translate.nft.limits.refusal import CannotSay
from translate.passes.calls import callees_first
from translate.passes.inventory import Inventory

__all__ = ["leaving_chains", "refused_sockets"]

_REQUESTS: Final = frozenset({Protocol.TCP, Protocol.DCCP})
"""Protocols whose sockets answer with the socket of a request."""


def leaving_chains(program: Program) -> tuple[LoweredChain, ...]:
    """Return the chains that packets reach from POSTROUTING."""
    starts = [chain for chain in program.chains if chain.hook is Hook.POSTROUTING]
    return callees_first(program, starts)


def refused_sockets(inventory: Inventory) -> Iterator[Refusal]:
    """Yield a refusal for each rule about a cgroup that nftables cannot express in POSTROUTING."""
    if Field.SOCKET_CLASS not in inventory.fields:
        return
    reason = (
        "in POSTROUTING nftables takes the answer to a SYN for a packet of the listening socket; xt_cgroup"
        " does not. Test for another protocol than TCP in the same rule, or use OUTPUT"
    )
    for chain in leaving_chains(inventory.program):
        for statement in chain.statements:
            if _tests_class(statement) and not _is_exact(statement):
                yield CannotSay("cgroup-hook", reason).at(statement.origin)


def _tests_class(statement: Statement) -> bool:
    return any(isinstance(t, FieldTest) and t.field is Field.SOCKET_CLASS for t in statement.tests)


def _is_exact(statement: Statement) -> bool:
    """Return whether no answer to a SYN passes the tests, and none of them is of a path."""
    if any(isinstance(test, CgroupTest) for test in statement.tests):
        return False
    protocols = [t for t in statement.tests if isinstance(t, FieldTest) and t.field is Field.L4PROTO]
    return all(any(not _allows(t, protocol) for t in protocols) for protocol in _REQUESTS)


def _allows(test: FieldTest, protocol: int) -> bool:
    return any(protocol in v for v in test.values if isinstance(v, Interval)) is not test.negated
