"""A node's state as one object."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from backends.model.node import Node
from backends.model.variant import Variant
from translate.errors import InputError
from translate.ir import Family, Policy, Rules, Ruleset

__all__ = ["Snapshot", "holds_rules"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The captured state of a node, or the contents of a bare file of rules.

    ``name`` is as given. ``rules`` has the rules of each variant and family that was captured, also one
    with empty tables, each with its ipsets; it may read them only when they are asked for, and raises
    ParseError then. ``nft`` is the text of ``nft -j list ruleset``, ``objects`` the API objects as JSON
    text. ``meta`` is what capture says of itself. What the node cannot say of what was captured stands in
    :attr:`backends.model.node.Node.assumed`, which every report prints.
    """

    name: str
    rules: Mapping[tuple[Variant, Family], Rules]
    node: Node
    nft: str | None = None
    meta: Mapping[str, object] = field(default_factory=dict)
    objects: str | None = None

    @property
    def families(self) -> tuple[Family, ...]:
        """The families with rules."""
        return tuple(f for f in Family if any(family is f for _, family in self.rules))

    @property
    def main_family(self) -> Family:
        """The default family: IPv4, unless there are rules for IPv6 alone."""
        for family in self.families:
            if any(holds_rules(one) for (_, f), one in self.rules.items() if f is family):
                return family
        return Family.IP

    def ruleset(self, family: Family, variant: Variant | None = None) -> Ruleset:
        """Return :meth:`rules_in_force` with every rule."""
        return self.rules_in_force(family, variant).whole()

    def rules_in_force(self, family: Family, variant: Variant | None = None) -> Rules:
        """Return the rules in force: those of ``variant``, or of the only one that holds any.

        Raises InputError when both variants hold rules and nobody chose, and when there are none.
        """
        version = f"IPv{family.version}"
        found = {s: self.rules[s, f] for s, f in self.rules if f is family and variant in (None, s)}
        if not found:
            others = " and ".join(f"IPv{f.version}" for f in self.families) or "none"
            of = f" of the {variant.value} variant" if variant is not None else ""
            raise InputError(f"{self.name}: no {version} rules{of} in this snapshot (it has: {others})")
        held = found if len(found) == 1 else {s: one for s, one in found.items() if holds_rules(one)}
        if len(held) > 1:
            raise InputError(
                f"{self.name}: both iptables-legacy and iptables-nft hold {version} rules, and a packet "
                "meets both; choose whose to look at with --variant legacy or --variant nft"
            )
        return next(iter((held or found).values()))


def holds_rules(rules: Rules) -> bool:
    """Return whether rules have an effect: a rule, or a policy that does not accept."""
    return any(
        chain.rules or chain.policy not in (None, Policy.ACCEPT)
        for table in rules.sample.tables
        for chain in table.chains
    )
