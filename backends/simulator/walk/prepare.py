"""Preparation of a Ruleset for simulation, once per job: chains by name, and refusals."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from backends.simulator.conntrack.reassembly import reassembles, tracks
from backends.simulator.matching.conditions import Condition, condition, hidden_condition
from backends.simulator.matching.fields import reader
from backends.simulator.matching.hashlimits import first_of_each
from backends.simulator.matching.ipsets import Members, members_of
from backends.simulator.matching.memory import Memory, leaves_state
from backends.simulator.matching.recent import remembered_times
from backends.simulator.matching.view import View
from backends.simulator.walk.chainmemo import ChainMemo, Decision, memo_of
from backends.simulator.walk.effects import EFFECTS
from backends.simulator.walk.index import ChainIndex, index_of
from translate.dataclass import dataclass, field
from translate.errors import Refusal, UnsupportedError
from translate.ir import (
    Accept,
    Action,
    AddressType,
    AnyOf,
    Chain,
    ClusterShare,
    ConnLabel,
    Drop,
    Family,
    Field,
    FieldTest,
    Goto,
    HashLimit,
    Hook,
    Interval,
    Jump,
    Policy,
    Proxy,
    Queue,
    Random,
    Recent,
    Return,
    Rule,
    Ruleset,
    SetUpdate,
    SideEffect,
    SynProxy,
    TableName,
    Test,
    TranslatePrefix,
    tables_at,
)

__all__ = ["NAME", "Control", "Prepared", "PreparedChain", "PreparedRule", "PreparedTable", "prepare"]

NAME = "simulator"

Control = Jump | Goto | Return | Decision
"""The actions of a matching rule that direct or end the walk."""


@dataclass(frozen=True, slots=True)
class PreparedRule:
    """A rule with its tests as functions. ``number`` counts from 1 in ``chain``.

    ``tests`` are the tests of the conditions; None stands for the hidden part of the rule.
    """

    rule: Rule
    chain: str
    number: int
    tests: tuple[Test | None, ...]
    conditions: tuple[Condition, ...]
    effect: Action | None
    """The action on the packet, after which the next rule follows."""
    control: Control | None
    """The action that directs or ends the walk."""
    draws: bool
    """True if a test draws a random number."""


@dataclass(frozen=True, slots=True)
class PreparedChain:
    """A chain's rules, the policy if it is built-in, and its index and memo if it has them."""

    rules: tuple[PreparedRule, ...]
    policy: Policy
    index: ChainIndex | None
    memo: ChainMemo | None


@dataclass(frozen=True, slots=True)
class PreparedTable:
    """A table's chains by name; ``prepared`` has the chains that were needed so far."""

    name: TableName
    _written: dict[str, Chain]
    _moves: bool
    """True if a rule changes addresses.

    Then no rule may be skipped because of the addresses that a packet has at the beginning of a chain.
    """
    prepared: dict[str, PreparedChain] = field(default_factory=dict)

    def chain(self, name: str) -> PreparedChain:
        """Return a chain; an undeclared built-in chain is empty."""
        chain = self.prepared.get(name)
        if chain is None:
            written = self._written.get(name)
            rules = () if written is None else written.rules
            memo = memo_of(name, self._written)
            policy = _policy(written)
            index = None if self._moves else index_of(rules)
            chain = PreparedChain(_prepared(self.name, name, rules), policy, index, memo)
            self.prepared[name] = chain
        return chain

    def called(self, name: str) -> list[str]:
        """Return the chains to which rules of a chain jump."""
        written = self._written.get(name)
        return [] if written is None else [rule.callee for rule in written.rules if rule.callee is not None]

    def idle(self, hook: Hook) -> bool:
        """Return whether the table at ``hook`` has no rules and accepts."""
        written = self._written.get(hook)
        return (written is None or not written.rules) and _policy(written) is Policy.ACCEPT


def _policy(chain: Chain | None) -> Policy:
    """Return the policy of a chain; an undeclared built-in chain accepts."""
    return Policy.ACCEPT if chain is None or chain.policy is None else chain.policy


def _prepared(table: TableName, name: str, rules: tuple[Rule, ...]) -> tuple[PreparedRule, ...]:
    prepared = []
    for number, rule in enumerate(rules, 1):
        tests = _tests(rule)
        idle = _is_idle(rule)
        conditions = tuple(
            hidden_condition(rule, (table, name, number))
            if test is None
            else condition(test, (table, name, number, i), idle=idle)
            for i, test in enumerate(tests)
        )
        action = rule.actions[0] if rule.actions else None
        if isinstance(action, Proxy):
            action = Drop()  # a node under test has no listening sockets
        if isinstance(action, Queue):
            action = Accept() if action.bypass else Drop()  # no program reads queues there
        if isinstance(action, SynProxy):
            tests = (*tests, _ANSWERED)
            conditions = (*conditions, _is_answered)
        effect, control = (action, None) if isinstance(action, EFFECTS) else (None, action)
        draws = any(isinstance(test, Random) for test in tests)
        prepared.append(PreparedRule(rule, name, number, tests, conditions, effect, control, draws))
    return tuple(prepared)


_ANSWERED: Final = FieldTest(
    field=Field.TCP_FLAGS, mask=0x17, values=(Interval.point(0x02), Interval.point(0x10))
)
"""The test of a packet that SYNPROXY takes from the stack: a SYN or an ACK (``synproxy_tg4``)."""


def _is_answered(view: View, _memory: Memory) -> bool:
    """Return whether SYNPROXY takes the packet: a SYN, an ACK, or any segment with a wrong checksum."""
    flags = reader(Field.TCP_FLAGS)(view)
    return view.skb.packet.bad_checksum or (isinstance(flags, int) and flags & 0x17 in (0x02, 0x10))


_LASTING: Final = (Recent, HashLimit, SetUpdate, ConnLabel, ClusterShare)
"""Tests that may change the result of a later test, or the fate of the packet."""


def _is_idle(rule: Rule) -> bool:
    """Return whether the rule cannot change an outcome: it has only side effects and changes no list."""
    does = rule.is_undecided or any(not isinstance(action, SideEffect) for action in rule.actions)
    return not (does or any(isinstance(test, _LASTING) for test in rule.tests))


def _tests(rule: Rule) -> tuple[Test | None, ...]:
    """Return the tests in order of evaluation; None represents the hidden part.

    Hidden tests are the rule's own (interfaces, addresses), which come before tests with state
    (``ipt_do_table``). Tests that read only the packet come first: if one fails, no assumption is needed.
    """
    if not rule.is_undecided:
        return rule.tests
    looking = tuple(test for test in rule.tests if isinstance(test, FieldTest | AnyOf))
    return (*looking, None, *(test for test in rule.tests if not isinstance(test, FieldTest | AnyOf)))


@dataclass(frozen=True, slots=True)
class Prepared:
    """The tables at each hook with their priorities, in the kernel's order, and their lists."""

    at: dict[Hook, tuple[tuple[PreparedTable, int], ...]]
    busy: dict[Hook, tuple[tuple[PreparedTable, int], ...]]
    """The tables at each hook without those that accept every packet; nat stays, because it always binds."""
    recent: dict[str, int]
    """The number of times that each list of ``-m recent`` keeps per address."""
    hashed: dict[str, HashLimit]
    """The rule of each table of ``-m hashlimit`` that is loaded first."""
    sets: dict[str, Members]
    """The ipsets by name."""
    ruleset: Ruleset
    tracked: bool
    """True if the rules make the kernel track connections; otherwise no packet reaches table nat."""
    keeps_state: bool
    """True if a rule may leave state in a :class:`Memory`."""
    _hooks: dict[TableName, dict[str, frozenset[Hook]]] = field(default_factory=dict)
    """The hooks from which each chain is reached, for the tables in earlier calls of :meth:`hooks_of`."""

    _reassembles: list[bool | None] = field(default_factory=list)

    @property
    def reassembles(self) -> bool | None:
        """True if the rules make the kernel reassemble fragments; computed for the first fragment."""
        if not self._reassembles:
            self._reassembles.append(reassembles(self.ruleset))
        return self._reassembles[0]

    def hooks_of(self, chains: Iterable[tuple[TableName, str]]) -> frozenset[Hook]:
        """Return the hooks from which packets may come to any of the chains."""
        hooks: set[Hook] = set()
        for table, chain in chains:
            if table not in self._hooks:
                self._hooks[table] = self._reached(table)
            hooks |= self._hooks[table].get(chain, frozenset())
        return frozenset(hooks)

    def _reached(self, name: TableName) -> dict[str, frozenset[Hook]]:
        reached: dict[str, set[Hook]] = {}
        for hook in Hook:
            for table, _ in self.at[hook]:
                pending = [hook.value] if table.name is name else []
                while pending:
                    chain = pending.pop()
                    if hook not in reached.setdefault(chain, set()):
                        reached[chain].add(hook)
                        pending += table.called(chain)
        return {chain: frozenset(hooks) for chain, hooks in reached.items()}


def prepare(ruleset: Ruleset, *, assuming: bool = False) -> Prepared:
    """Prepare a ruleset for simulation.

    Raises UnsupportedError with every rule that has a test that is not simulated or an ipset that was not
    given and, unless ``assuming``, every rule with a hidden part that may change where a packet goes. Rules
    that are not modelled are followed both ways.
    """
    refusals = []
    tables = {}
    for table in ruleset.tables:
        rules = [rule for chain in table.chains for rule in chain.rules]
        moves = any(isinstance(action, TranslatePrefix) for rule in rules for action in rule.actions)
        tables[table.name] = PreparedTable(table.name, {c.name: c for c in table.chains}, moves)
        refusals += [r for c in table.chains for rule in c.rules for r in _refusals(rule, ruleset.family)]
        if table.name is TableName.NAT:
            refusals += map(_queued, (rule for c in table.chains for rule in c.rules if _queues(rule)))
    refusals += _other_masks(ruleset)
    if not assuming:
        refusals += [
            Refusal(rule.origin, NAME, unknown.feature, unknown.reason)
            for rule, unknown in ruleset.unknowns()
            if rule.is_undecided and not unknown.extension
        ]
    refusals += [
        Refusal(rule.origin, NAME, "ipset", f"the members of ipset {name} are not known")
        for rule, name in ruleset.sets_not_given()
    ]
    if refusals:
        raise UnsupportedError(tuple(sorted(refusals, key=lambda r: r.origin.line)))
    tracked = tracks(ruleset) is not False
    run = tables.keys() if tracked else tables.keys() - {TableName.NAT}
    at, busy = {}, {}
    for hook in Hook:
        tables_here = [(tables[name], priority) for name, priority in tables_at(hook) if name in run]
        at[hook] = tuple(tables_here)
        busy[hook] = tuple(f for f in tables_here if f[0].name is TableName.NAT or not f[0].idle(hook))
    times = remembered_times(test for _, test in _recents(ruleset))
    tests = (test for rule in ruleset.rules() for test in rule.tests if isinstance(test, HashLimit))
    members = members_of(ruleset.sets, ruleset.family)
    keeps_state = any(map(leaves_state, ruleset.rules()))
    return Prepared(at, busy, times, first_of_each(tests), members, ruleset, tracked, keeps_state)


def _recents(ruleset: Ruleset) -> Iterator[tuple[Rule, Recent]]:
    for rule in ruleset.rules():
        for test in rule.tests:
            if isinstance(test, Recent):
                yield rule, test


def _other_masks(ruleset: Ruleset) -> Iterator[Refusal]:
    """Refuse a mask that differs from that of the list's first rule, which counts (``recent_mt_check``)."""
    masks: dict[str, int] = {}
    for rule, test in _recents(ruleset):
        if masks.setdefault(test.name, test.mask) != test.mask:
            reason = f"an earlier rule gives the list {test.name} another mask, which may apply to both rules"
            yield Refusal(rule.origin, NAME, "recent-mask", reason)


def _queues(rule: Rule) -> bool:
    return any(isinstance(action, Queue) for action in rule.actions)


def _queued(rule: Rule) -> Refusal:
    """Refuse NFQUEUE in nat, after which the connection is not bound at this hook (``nf_nat_inet_fn``)."""
    reason = "NFQUEUE in nat is not simulated: the connection gets no NAT binding at this hook"
    return Refusal(rule.origin, NAME, "queue-nat", reason)


def _refusals(rule: Rule, family: Family) -> list[Refusal]:
    refusals = []
    for test in rule.tests:
        match test:
            case FieldTest(field=tested, values=values) if (
                family is Family.IP6 and tested.name.startswith("FIB_") and values != _LOCAL
            ):
                reason = (
                    "LOCAL is the only type of IPv6 addresses that is simulated, and only as the single"
                    " type of a test"
                )
                refusals.append(Refusal(rule.origin, NAME, "addrtype6", reason))
            case _:
                pass
    return refusals


_LOCAL = (Interval.point(AddressType.LOCAL),)
"""The only type of IPv6 addresses that is simulated.

``match_type6`` does not read other types from the routing table: every address that is not multicast counts
as UNICAST, even an address of the node.
"""
