"""Refusals of ``-m cgroup`` and ``-m owner`` in POSTROUTING, where nft has no match for a full socket."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
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
    Test,
)
from translate.nft.limits.refusal import CannotSay
from translate.passes.calls import callees_first
from translate.passes.inventory import Inventory

__all__ = ["LIVING_ON", "holds", "leaving_chains", "may_match", "refused_sockets"]

_REQUESTS: Final = frozenset({Protocol.TCP, Protocol.DCCP})
"""Protocols whose sockets answer with the socket of a request."""
LIVING_ON: Final = frozenset({*_REQUESTS, Protocol.SCTP})
"""Protocols whose sockets send packets before and after a process has them."""


def leaving_chains(program: Program) -> tuple[LoweredChain, ...]:
    """Return the chains that packets reach from POSTROUTING."""
    starts = [chain for chain in program.chains if chain.hook is Hook.POSTROUTING]
    return callees_first(program, starts)


def refused_sockets(inventory: Inventory) -> Iterator[Refusal]:
    """Yield a refusal for each rule about a socket that nftables cannot express in POSTROUTING."""
    if inventory.fields.isdisjoint((Field.SOCKET_CLASS, Field.SOCKET)):
        return
    of_class = (
        "in POSTROUTING nftables takes the answer to a SYN for a packet of the listening socket; xt_cgroup"
        " does not. Test for another protocol than TCP in the same rule, or use OUTPUT"
    )
    of_process = (
        "in POSTROUTING nftables cannot tell a packet of the kernel from one of a connection that no process"
        " has; xt_owner can. Test for UDP or ICMP in the same rule, or use OUTPUT"
    )
    for chain in leaving_chains(inventory.program):
        for statement in chain.statements:
            tests = statement.tests
            paths = any(isinstance(test, CgroupTest) for test in tests)
            if _asks(tests, Field.SOCKET_CLASS) and (paths or may_match(tests, _REQUESTS)):
                yield CannotSay("cgroup-hook", of_class).at(statement.origin)
            if _asks(tests, Field.SOCKET) and may_match(tests, LIVING_ON):
                yield CannotSay("owner-hook", of_process).at(statement.origin)


def _asks(tests: Iterable[Test], field: Field) -> bool:
    return any(isinstance(test, FieldTest) and test.field is field for test in tests)


def may_match(tests: Iterable[Test], protocols: Iterable[int]) -> bool:
    """Return whether a packet of one of the protocols may pass the tests."""
    tested = [test for test in tests if isinstance(test, FieldTest) and test.field is Field.L4PROTO]
    return any(all(holds(test, protocol) for test in tested) for protocol in protocols)


def holds(test: FieldTest, value: int) -> bool:
    """Return whether a test of numbers without a mask holds for a value."""
    return any(value in v for v in test.values if isinstance(v, Interval)) is not test.negated
