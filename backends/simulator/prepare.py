"""A Ruleset made ready to run, once per job: chains by name, rules that cannot be run refused."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from backends.simulator.recent import remembered_times
from translate.errors import Refusal, UnsupportedError
from translate.ir import (
    TABLE_HOOKS,
    AddressType,
    Chain,
    Family,
    FieldTest,
    Hook,
    Interval,
    Policy,
    Recent,
    Rule,
    Ruleset,
    SetTest,
    TableName,
    tables_at,
)

__all__ = ["NAME", "Prepared", "PreparedTable", "prepare"]

NAME = "simulator"


@dataclass(frozen=True, slots=True)
class PreparedTable:
    """A table's chains by name, and its built-in chains by hook."""

    name: TableName
    chains: dict[str, Chain]
    base: dict[Hook, Chain]

    def policy(self, hook: Hook) -> Policy:
        """Return the policy of the built-in chain at ``hook``; ACCEPT when it is not declared."""
        chain = self.base.get(hook)
        return Policy.ACCEPT if chain is None or chain.policy is None else chain.policy


@dataclass(frozen=True, slots=True)
class Prepared:
    """Which tables are at which hook with which priority, in the kernel's order, and their lists."""

    at: dict[Hook, tuple[tuple[PreparedTable, int], ...]]
    recent: dict[str, int]
    """How many times each list of ``-m recent`` keeps per address."""


def prepare(ruleset: Ruleset) -> Prepared:
    """Make a ruleset ready to run.

    Raises UnsupportedError that names every rule with a test that is not simulated, or of which
    the input hides something.
    """
    refusals = []
    tables = {}
    for table in ruleset.tables:
        chains = {c.name: c for c in table.chains}
        base = {hook: chains[hook.value] for hook in TABLE_HOOKS[table.name] if hook.value in chains}
        tables[table.name] = PreparedTable(table.name, chains, base)
        refusals += [r for c in table.chains for rule in c.rules for r in _refusals(rule, ruleset.family)]
    refusals += _other_masks(ruleset)
    refusals += [Refusal(rule.origin, NAME, "unknown", reason) for rule, reason in ruleset.unknowns()]
    if refusals:
        raise UnsupportedError(tuple(refusals))
    at = {}
    for hook in Hook:
        found = [(tables[name], priority) for name, priority in tables_at(hook) if name in tables]
        at[hook] = tuple(found)
    return Prepared(at, remembered_times(test for _, test in _recents(ruleset)))


def _recents(ruleset: Ruleset) -> Iterator[tuple[Rule, Recent]]:
    for table in ruleset.tables:
        for chain in table.chains:
            for rule in chain.rules:
                for test in rule.tests:
                    if isinstance(test, Recent):
                        yield rule, test


def _other_masks(ruleset: Ruleset) -> Iterator[Refusal]:
    """A list has the mask of the rule that was loaded first (``recent_mt_check``)."""
    masks: dict[str, int] = {}
    for rule, test in _recents(ruleset):
        if masks.setdefault(test.name, test.mask) != test.mask:
            reason = f"the list {test.name} has another mask in an earlier rule, which may count for both"
            yield Refusal(rule.origin, NAME, "recent-mask", reason)


def _refusals(rule: Rule, family: Family) -> list[Refusal]:
    found = []
    for test in rule.tests:
        match test:
            case SetTest():
                reason = f"the members of ipset {test.name} are not known"
                found.append(Refusal(rule.origin, NAME, "set", reason))
            case FieldTest(field=field, values=values) if (
                family is Family.IP6 and field.name.startswith("FIB_") and values != _LOCAL
            ):
                reason = "of the types of an IPv6 address, only LOCAL alone is simulated"
                found.append(Refusal(rule.origin, NAME, "addrtype6", reason))
            case _:
                pass
    return found


_LOCAL = (Interval.point(AddressType.LOCAL),)
"""``match_type6`` takes the other types apart from what the routing table says: any address that is
no multicast one is UNICAST, of the node or not."""
