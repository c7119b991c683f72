"""Refusal of rules in raw that read a template of ``-j CT`` as if it were a connection.

x_tables reads a template's fields (``conntrack_mt``, ``connmark_mt``): its direction is the original one, its
mark and status are 0, it has no counters and no labels. nf_tables reads only its state. Other fields are
absent or 0, depending on the version of Linux (``nft_ct_get_eval``).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from translate.errors import Refusal
from translate.ir import (
    ConnLabel,
    Field,
    FieldTest,
    Lookup,
    LoweredChain,
    Origin,
    RestoreMark,
    TableName,
    Template,
    alternatives,
    flat,
)
from translate.nft.limits.refusal import CannotSay
from translate.passes.calls import callees_first
from translate.passes.inventory import Inventory

__all__ = ["refused_template_reads"]

_READ: Final = frozenset(field for field in Field if field.is_connection or field is Field.CT_HELPER)
_REASON: Final = "after -j CT in raw, iptables reads fields of the template, and nftables only its state"


def refused_template_reads(inventory: Inventory) -> Iterator[Refusal]:
    """Yield a refusal for each rule of raw that could read a template's fields."""
    if Template not in inventory.actions:
        return
    program = inventory.program
    refused: dict[Origin, None] = {}
    for base in program.chains:
        if base.table is TableName.RAW and base.hook is not None:
            chains = callees_first(program, (base,))
            if any(map(_attaches, chains)):
                refused.update(dict.fromkeys(origin for chain in chains for origin in _reading(chain)))
    for origin in refused:
        yield CannotSay("template-fields", _REASON).at(origin)


def _attaches(chain: LoweredChain) -> bool:
    rules = (rule for statement in chain.statements for rule in alternatives(statement))
    return any(isinstance(action, Template) for rule in rules for action in rule.actions)


def _reading(chain: LoweredChain) -> Iterator[Origin]:
    """Yield the rules of a chain that read fields of connections."""
    for statement in chain.statements:
        tests = list(flat(statement.tests))
        fields = {test.field for test in tests if isinstance(test, FieldTest)}
        fields.update(statement.fields if isinstance(statement, Lookup) else ())
        reads = not fields.isdisjoint(_READ) or any(isinstance(test, ConnLabel) for test in tests)
        for rule in alternatives(statement):
            if reads or any(isinstance(action, RestoreMark) for action in rule.actions):
                yield rule.origin
