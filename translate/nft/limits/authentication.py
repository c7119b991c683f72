"""Refusals of rules of IPv6 that test AH and what is behind it.

iptables finds the transport protocol behind AH (``ipv6_find_hdr``), nftables takes AH for it. So beside a
test of AH, no other test may read the protocol or a transport header.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from translate.errors import Refusal
from translate.ir import (
    AUTHENTICATION,
    Family,
    Field,
    FieldTest,
    HashLimit,
    Lookup,
    SetTest,
    SetUpdate,
    Statement,
    alternatives,
    flat,
)
from translate.nft.limits.refusal import CannotSay
from translate.passes.inventory import Inventory

__all__ = ["refused_behind_authentication"]

_LAYERS: Final = ("l4", "icmp", "tcp", "esp", "ipcomp", "dccp", "mh", "sctp")
_TRANSPORT: Final = frozenset(field for field in Field if field.text.partition(".")[0] in _LAYERS)
_PORTS: Final = (SetTest, SetUpdate, HashLimit)
"""Tests that may read ports."""


def refused_behind_authentication(inventory: Inventory) -> Iterator[Refusal]:
    """Yield a refusal for each rule that looks behind an AH header of IPv6."""
    program = inventory.program
    if program.family is not Family.IP6:
        return
    refusal = CannotSay("ah6", "beside -m ah, nftables finds no protocol and no ports: AH is the protocol")
    for chain in program.chains:
        for statement in chain.statements:
            if _looks_behind(statement):
                yield from (refusal.at(each.origin) for each in alternatives(statement))


def _looks_behind(statement: Statement) -> bool:
    tests = list(flat(statement.tests))
    fields = {test.field for test in tests if isinstance(test, FieldTest)}
    if isinstance(statement, Lookup):
        fields.update(statement.fields)
    if fields.isdisjoint(AUTHENTICATION):
        return False
    return not fields.isdisjoint(_TRANSPORT) or any(isinstance(test, _PORTS) for test in tests)
