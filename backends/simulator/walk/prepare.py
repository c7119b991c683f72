"""A Ruleset made ready to run, once per job: chains by name, rules that cannot be run refused."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from backends.simulator.matching.conditions import Condition, condition, hidden_condition
from backends.simulator.matching.ipsets import Members, members_of
from backends.simulator.matching.recent import remembered_times
from backends.simulator.walk.chainmemo import ChainMemo, memo_of
from backends.simulator.walk.effects import EFFECTS
from backends.simulator.walk.index import ChainIndex, index_of
from translate.errors import Refusal, UnsupportedError
from translate.ir import (
    Accept,
    Action,
    AddressType,
    AnyOf,
    Chain,
    Dnat,
    Drop,
    Family,
    FieldTest,
    Goto,
    Hook,
    Interval,
    Jump,
    Masquerade,
    Policy,
    Random,
    Recent,
    Redirect,
    Reject,
    Return,
    Rule,
    Ruleset,
    Snat,
    TableName,
    Test,
    tables_at,
)

__all__ = ["NAME", "Control", "Prepared", "PreparedChain", "PreparedRule", "PreparedTable", "prepare"]

NAME = "simulator"

Control = Jump | Goto | Return | Accept | Drop | Reject | Dnat | Snat | Masquerade | Redirect
"""What a matching rule can say about where to go on."""


@dataclass(frozen=True, slots=True)
class PreparedRule:
    """A rule with its tests as functions. ``number`` counts from 1 in ``chain``.

    ``tests`` are those of the conditions; None stands for what the input hides of the rule.
    """

    rule: Rule
    chain: str
    number: int
    tests: tuple[Test | None, ...]
    conditions: tuple[Condition, ...]
    effect: Action | None
    """What the rule does to the packet before the next rule sees it."""
    control: Control | None
    """Where the walk goes on, or what ends it."""
    draws: bool
    """Whether a test draws chance."""


@dataclass(frozen=True, slots=True)
class PreparedChain:
    """A chain's rules, the policy of a built-in one, and the index and the memo of them if there are any."""

    rules: tuple[PreparedRule, ...]
    policy: Policy
    index: ChainIndex | None
    memo: ChainMemo | None


@dataclass(frozen=True, slots=True)
class PreparedTable:
    """A table's chains by name, each prepared when it is first asked for and from then on in ``prepared``."""

    name: TableName
    _written: dict[str, Chain]
    prepared: dict[str, PreparedChain] = field(default_factory=dict)

    def chain(self, name: str) -> PreparedChain:
        """Return a chain; a built-in one that is not declared is empty."""
        found = self.prepared.get(name)
        if found is None:
            written = self._written.get(name)
            rules = () if written is None else written.rules
            memo = memo_of(name, self._written)
            policy = _policy(written)
            found = PreparedChain(_prepared(name, rules), policy, index_of(rules), memo)
            self.prepared[name] = found
        return found

    def idle(self, hook: Hook) -> bool:
        """Whether every packet passes the table at ``hook`` as it is."""
        written = self._written.get(hook)
        return (written is None or not written.rules) and _policy(written) is Policy.ACCEPT


def _policy(chain: Chain | None) -> Policy:
    """A built-in chain that is not declared accepts."""
    return Policy.ACCEPT if chain is None or chain.policy is None else chain.policy


def _prepared(name: str, rules: tuple[Rule, ...]) -> tuple[PreparedRule, ...]:
    prepared = []
    for number, rule in enumerate(rules, 1):
        tests = _tests(rule)
        conditions = tuple(
            hidden_condition(rule) if test is None else condition(test, (id(rule), i))
            for i, test in enumerate(tests)
        )
        action = rule.actions[0] if rule.actions else None
        effect, control = (action, None) if isinstance(action, EFFECTS) else (None, action)
        draws = any(isinstance(test, Random) for test in tests)
        prepared.append(PreparedRule(rule, name, number, tests, conditions, effect, control, draws))
    return tuple(prepared)


def _tests(rule: Rule) -> tuple[Test | None, ...]:
    """The tests in the order in which they are asked; None stands for what is hidden.

    Hidden tests are the rule's own (interfaces, addresses), which come before those that count or
    remember (``ipt_do_table``). What only looks at the packet comes first: it may settle the matter.
    """
    if not rule.is_undecided:
        return rule.tests
    looking = tuple(test for test in rule.tests if isinstance(test, FieldTest | AnyOf))
    return (*looking, None, *(test for test in rule.tests if not isinstance(test, FieldTest | AnyOf)))


@dataclass(frozen=True, slots=True)
class Prepared:
    """Which tables are at which hook with which priority, in the kernel's order, and their lists."""

    at: dict[Hook, tuple[tuple[PreparedTable, int], ...]]
    busy: dict[Hook, tuple[tuple[PreparedTable, int], ...]]
    """The same without tables that let every packet pass as it is; NAT binds one in any case."""
    recent: dict[str, int]
    """How many times each list of ``-m recent`` keeps per address."""
    sets: dict[str, Members]
    """The ipsets by name."""


def prepare(ruleset: Ruleset, *, assuming: bool = False) -> Prepared:
    """Make a ruleset ready to run.

    Raises UnsupportedError that names every rule with a test that is not simulated or whose ipset was
    not given, and, unless ``assuming``, every one of which something is unknown that may change where a
    packet goes.
    """
    refusals = []
    tables = {}
    for table in ruleset.tables:
        tables[table.name] = PreparedTable(table.name, {c.name: c for c in table.chains})
        refusals += [r for c in table.chains for rule in c.rules for r in _refusals(rule, ruleset.family)]
    refusals += _other_masks(ruleset)
    if not assuming:
        refusals += [
            Refusal(rule.origin, NAME, unknown.feature, unknown.reason)
            for rule, unknown in ruleset.unknowns()
            if rule.is_undecided
        ]
    refusals += [
        Refusal(rule.origin, NAME, "ipset", f"the members of ipset {name} are not known")
        for rule, name in ruleset.sets_not_given()
    ]
    if refusals:
        raise UnsupportedError(tuple(sorted(refusals, key=lambda r: r.origin.line)))
    at, busy = {}, {}
    for hook in Hook:
        found = [(tables[name], priority) for name, priority in tables_at(hook) if name in tables]
        at[hook] = tuple(found)
        busy[hook] = tuple(f for f in found if f[0].name is TableName.NAT or not f[0].idle(hook))
    times = remembered_times(test for _, test in _recents(ruleset))
    return Prepared(at, busy, times, members_of(ruleset.sets, ruleset.family))


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
            case FieldTest(field=tested, values=values) if (
                family is Family.IP6 and tested.name.startswith("FIB_") and values != _LOCAL
            ):
                reason = "of the types of an IPv6 address, only LOCAL alone is simulated"
                found.append(Refusal(rule.origin, NAME, "addrtype6", reason))
            case _:
                pass
    return found


_LOCAL = (Interval.point(AddressType.LOCAL),)
"""``match_type6`` takes the other types apart from what the routing table says: any address that is
no multicast one is UNICAST, of the node or not."""
