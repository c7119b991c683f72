"""Refusal of ``-m connbytes`` and ``-m connlabel`` in raw where rules attach templates.

A template has neither counters nor labels. ``xt_connbytes`` then never holds (``connbytes_mt``), negated or
not, and nftables reads counts of 0 (``nft_ct_get_eval``).
"""

from __future__ import annotations

from collections.abc import Iterator

from translate.errors import Refusal
from translate.ir import ACCOUNTS, ConnLabel, FieldTest, Lookup, TableName, Template, alternatives, flat
from translate.nft.limits.refusal import CannotSay
from translate.passes.inventory import Inventory

__all__ = ["refused_accounts"]


def refused_accounts(inventory: Inventory) -> Iterator[Refusal]:
    """Yield a refusal for each rule of raw that could read the counters of a template."""
    if Template not in inventory.actions:
        return
    chains = inventory.program.chains
    statements = [s for chain in chains if chain.table is TableName.RAW for s in chain.statements]
    rules = [rule for statement in statements for rule in alternatives(statement)]
    if not any(isinstance(action, Template) for rule in rules for action in rule.actions):
        return
    reason = "a template of -j CT has no counters: nftables reads 0 from it, and connbytes never matches"
    for statement in statements:
        fields = {test.field for test in flat(statement.tests) if isinstance(test, FieldTest)}
        fields.update(statement.fields if isinstance(statement, Lookup) else ())
        if not fields.isdisjoint(ACCOUNTS):
            for rule in alternatives(statement):
                yield CannotSay("connbytes-template", reason).at(rule.origin)
        if any(isinstance(test, ConnLabel) for test in statement.tests):
            for rule in alternatives(statement):
                yield CannotSay("connlabel-template", "a template of -j CT has no labels").at(rule.origin)
