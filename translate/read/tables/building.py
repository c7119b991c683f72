"""Tables and chains under construction."""

from __future__ import annotations

from typing import Final

from translate.dataclass import dataclass, field
from translate.ir import TABLE_HOOKS, Chain, Counters, Hook, Origin, Policy, Rule, Table, TableName
from translate.read.extensions import TARGETS, UNMODELLED_TARGETS
from translate.read.tables.faults import Faults

__all__ = ["ChainBuilder", "TableBuilder"]

_LONGEST_CHAIN: Final = 28  # XT_EXTENSION_MAXNAMELEN, less its NUL
_HOOKS: Final = {table: {hook.value: hook for hook in hooks} for table, hooks in TABLE_HOOKS.items()}


@dataclass(slots=True)
class ChainBuilder:
    """A chain with the rules read so far."""

    name: str
    origin: Origin
    hook: Hook | None
    policy: Policy | None
    counters: Counters | None
    rules: list[Rule] = field(default_factory=list)

    def freeze(self) -> Chain:
        """Return the chain in its present state."""
        return Chain(
            name=self.name,
            rules=tuple(self.rules),
            hook=self.hook,
            policy=self.policy,
            counters=self.counters,
            origin=self.origin,
        )


@dataclass(slots=True)
class TableBuilder:
    """A table with the chains read so far.

    ``whole`` is False once a declaration could not be read: then an undeclared chain is not a fault.
    """

    name: TableName
    origin: Origin
    preamble: list[str]
    chains: dict[str, ChainBuilder] = field(default_factory=dict)
    whole: bool = True

    def freeze(self) -> Table:
        """Return the table in its present state."""
        return Table(
            name=self.name,
            chains=tuple(chain.freeze() for chain in self.chains.values()),
            preamble=tuple(self.preamble),
            origin=self.origin,
        )

    def replaced_by(self, origin: Origin, preamble: list[str]) -> TableBuilder:
        """Return the table after a second ``*TABLE``: no rules, no user chains, the same policies."""
        kept = {
            chain.name: ChainBuilder(chain.name, chain.origin, chain.hook, chain.policy, None)
            for chain in self.chains.values()
            if chain.hook is not None
        }
        return TableBuilder(self.name, origin, preamble, kept, self.whole)

    def hook(self, chain: str) -> Hook | None:
        """Return the hook of the built-in chain with this name; None for a user chain."""
        return _HOOKS[self.name].get(chain)

    def declare(
        self,
        origin: Origin,
        column: int,
        name: str,
        policy_text: str,
        policy_column: int,
        counters: Counters | None,
        faults: Faults,
        *,
        empties: bool = False,
    ) -> None:
        """Add a chain, or report a fault. ``origin`` is the line, with the columns of name and policy.

        The last policy of a built-in chain counts. A user chain cannot be declared twice, unless the line
        ``empties`` it, as in ``iptables-restore --noflush``.
        """
        hook = self.hook(name)
        policy = None
        problem: tuple[Origin, str, str | None] | None = None
        existing = self.chains.get(name)
        if existing is not None and hook is None and empties:
            existing.rules.clear()
        elif existing is not None and hook is None:
            first = f"first in line {existing.origin.line}"
            problem = origin.at(column), f'chain "{name}" is declared twice', first
        elif hook is None:
            if name in TARGETS or name in UNMODELLED_TARGETS:
                problem = origin.at(column), f'a chain cannot be called "{name}": it is a target', None
            elif name[0] in "-!" or len(name.encode("utf-8", "surrogateescape")) > _LONGEST_CHAIN:
                hint = f"a name has 1 to {_LONGEST_CHAIN} bytes and starts with neither - nor !"
                problem = origin.at(column), f'a chain cannot be called "{name}"', hint
            elif policy_text != "-":
                place = origin.at(policy_column)
                problem = place, f'user chain "{name}" cannot have a policy', 'write "-"'
        elif policy_text != "-":  # iptables-restore does not change the policy
            try:
                policy = Policy(policy_text)
            except ValueError:
                problem = origin.at(policy_column), f'unknown policy "{policy_text}"', "ACCEPT or DROP"
        if problem is not None:
            faults.report(*problem)
        if existing is None:
            # also after a fault, so that its rules and jumps to it are not reported
            self.chains[name] = ChainBuilder(name, origin, hook, policy, counters)
        elif policy is not None:
            existing.policy, existing.counters = policy, counters
