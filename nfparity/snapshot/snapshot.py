"""A node's state as one object."""

from __future__ import annotations

from collections.abc import Mapping

from backends.model.node import Node
from backends.model.variant import Variant
from translate.dataclass import dataclass, field
from translate.errors import InputError
from translate.ir import Family, Policy, Rules, Ruleset

__all__ = ["Snapshot", "holds_rules"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The captured state of a node, or the contents of a bare file of rules.

    ``name`` is as given by the user. ``rules`` are the captured rules by variant and family, with their
    ipsets; they may be read on first use, and raise ParseError then. ``nft`` is the output of ``nft -j list
    ruleset``, ``ipvs`` that of ``ipvsadm-save -n``, ``objects`` the API objects as JSON text, and ``meta``
    the content of ``meta.json``. Captured facts that a Node cannot represent are in
    :attr:`backends.model.node.Node.assumed`, which every report prints.
    """

    name: str
    rules: Mapping[tuple[Variant, Family], Rules]
    node: Node
    nft: str | None = None
    meta: Mapping[str, object] = field(default_factory=dict)
    objects: str | None = None
    ipvs: str | None = None

    @property
    def families(self) -> tuple[Family, ...]:
        """The families with rules."""
        return tuple(f for f in Family if any(family is f for _, family in self.rules))

    @property
    def main_family(self) -> Family:
        """The default family: IPv4, unless there are only rules for IPv6."""
        for family in self.families:
            if any(holds_rules(rules) for (_, f), rules in self.rules.items() if f is family):
                return family
        return Family.IP

    def ruleset(self, family: Family, variant: Variant | None = None) -> Ruleset:
        """Return :meth:`loaded_rules` with every rule."""
        return self.loaded_rules(family, variant).whole()

    def loaded_rules(self, family: Family, variant: Variant | None = None) -> Rules:
        """Return the loaded rules: those of ``variant``, or of the only variant with rules.

        Raises InputError if both variants have rules and none was chosen, and if there are none.
        """
        version = f"IPv{family.version}"
        candidates = {s: self.rules[s, f] for s, f in self.rules if f is family and variant in (None, s)}
        if not candidates:
            others = " and ".join(f"IPv{f.version}" for f in self.families) or "none"
            of = f" of the {variant.value} variant" if variant is not None else ""
            raise InputError(f"{self.name}: no {version} rules{of} in this snapshot (it has: {others})")
        filled = (
            candidates if len(candidates) == 1 else {s: r for s, r in candidates.items() if holds_rules(r)}
        )
        if len(filled) > 1:
            raise InputError(
                f"{self.name}: both iptables-legacy and iptables-nft have {version} rules, and packets "
                "pass both; choose one with --variant legacy or --variant nft"
            )
        return next(iter((filled or candidates).values()))


def holds_rules(rules: Rules) -> bool:
    """Return whether the ruleset contains a rule, or a policy that does not accept."""
    return any(
        chain.rules or chain.policy not in (None, Policy.ACCEPT)
        for table in rules.sample.tables
        for chain in table.chains
    )
