"""Random rules without those that need conntrack, which almost every random ruleset has."""

from __future__ import annotations

from translate.ir import Family
from translate.ir.tracking import needs_connections
from translate.read import read_ruleset

__all__ = ["untracked"]


def untracked(text: str, family: Family) -> list[str]:
    """Return the lines of input for ``iptables-restore`` without the rules that need conntrack."""
    ruleset = read_ruleset(text.encode(), name="rules", family=family)
    needing = {rule.origin.line for rule in ruleset.rules() if needs_connections(rule)}
    return [line for number, line in enumerate(text.split("\n"), 1) if number not in needing]
