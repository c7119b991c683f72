"""``flatten``: Ruleset → Program, rule by rule.

*Before*: the Ruleset as read. Every jump names a chain of the same table, and no live chain reaches itself
(``translate.read`` refuses both, as ``mark_source_chains`` in ``x_tables`` does).

*After*: a chain for each chain and an :class:`Apply` for each rule, in the same order, and before it one for
the packets that ``-m mh`` drops (:mod:`translate.passes.mobility`); jumps have qualified
names; a built-in chain has its hook, priority and policy. A bucket of ``-m limit`` has the name of its chain
and a number, so that copies of its rule share it. Tables come in the order of ``TABLE_HOOKS``, whatever the
order of the input.

*Why the meaning is preserved*: nothing is merged or moved. Dead chains and rules are dropped only from a
table in which a dead chain reaches itself (:mod:`translate.ir.live`). The order of tables in the input has no
effect in the kernel, which runs built-in chains by hook priority.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from typing import Final, assert_never

from translate.dataclass import replace
from translate.errors import Refusal, UnsupportedError
from translate.ir import (
    TABLE_HOOKS,
    Action,
    AddTtl,
    Apply,
    Chain,
    ConnectionLimit,
    Goto,
    HashMark,
    Jump,
    Limit,
    LoweredChain,
    Policy,
    Program,
    Quota,
    Rule,
    Ruleset,
    SetTcpFlags,
    SetTos,
    SetTtl,
    SynProxy,
    Table,
    TableName,
    Test,
    TranslatePrefix,
    has_loop,
    live_chains,
    qualified,
)
from translate.ir.actions import (
    Accept,
    Dnat,
    Drop,
    LimitMss,
    Masquerade,
    Netmap,
    NoTrack,
    Proxy,
    Queue,
    Redirect,
    RestoreMark,
    RestoreSocketMark,
    Return,
    SaveMark,
    SetConnmark,
    SetMark,
    Snat,
    StripOptions,
    Template,
)
from translate.ir.rejects import Reject
from translate.ir.sideeffects import SideEffect
from translate.ir.tracking import reassembles_fragments, tracks_connections
from translate.passes.calls import CALLS
from translate.passes.mobility import dropped_first, order_refused

__all__ = ["flatten"]

_WITH_STATE: Final = frozenset({Limit, ConnectionLimit, Quota})
"""Tests whose state gets a name."""


def flatten(ruleset: Ruleset) -> Program:
    """Return the Program that has one statement per rule.

    Raises UnsupportedError with every rule that has unknown parts or tests an ipset that was not given.
    """
    refusals = [
        Refusal(rule.origin, "translate", unknown.feature, unknown.reason)
        for rule, unknown in ruleset.unknowns()
    ]
    refusals += [
        Refusal(rule.origin, "translate", "ipset", f"the members of ipset {name} are not known")
        for rule, name in ruleset.sets_not_given()
    ]
    refusals += [refusal for rule in ruleset.rules() if (refusal := order_refused(rule)) is not None]
    if refusals:
        raise UnsupportedError(tuple(refusals))
    chains = [
        _chain(table.name, chain)
        for name in TABLE_HOOKS
        for table in ruleset.tables
        if table.name is name
        for chain in _without_loops(table)
    ]
    return Program(
        family=ruleset.family,
        chains=tuple(chains),
        source=ruleset.source,
        sets=ruleset.sets,
        tracked=tracks_connections(ruleset),
        reassembled=reassembles_fragments(ruleset),
    )


def _without_loops(table: Table) -> Sequence[Chain]:
    """Return the chains of a table: all, or only the live ones if a chain reaches itself."""
    if not has_loop(table.chains):
        return table.chains
    live = live_chains(table.chains)
    return [replace(chain, rules=live[chain.name]) for chain in table.chains if chain.name in live]


def _chain(table: TableName, chain: Chain) -> LoweredChain:
    hook = chain.hook
    name = qualified(table, chain.name)
    states = (f"{name} {number}" for number in count(1))
    return LoweredChain(
        name=name,
        table=table,
        statements=tuple([each for rule in chain.rules for each in _statements(table, rule, states)]),
        hook=hook,
        priority=None if hook is None else TABLE_HOOKS[table][hook],
        policy=None if hook is None else chain.policy or Policy.ACCEPT,
        origin=chain.origin,
    )


def _statements(table: TableName, rule: Rule, names: Iterator[str]) -> Iterator[Apply]:
    first = dropped_first(rule)
    if first is not None:
        yield first
    yield _apply(table, rule, names)


def _apply(table: TableName, rule: Rule, names: Iterator[str]) -> Apply:
    tests, actions = rule.tests, rule.actions
    if not _WITH_STATE.isdisjoint(map(type, tests)):
        tests = tuple(_named(test, names) for test in tests)
    if actions and isinstance(actions[-1], CALLS):
        actions = (*actions[:-1], _action(table, actions[-1]))
    return Apply(tests=tests, actions=actions, origin=rule.origin)


def _named(test: Test, names: Iterator[str]) -> Test:
    """Return a test with a name for the state that copies of the rule share."""
    match test:
        case Limit():
            return replace(test, bucket=next(names))
        case ConnectionLimit() | Quota():
            return replace(test, state=next(names))
        case _:
            return test


def _action(table: TableName, action: Action) -> Action:
    match action:
        case Jump(chain=chain):
            return Jump(qualified(table, chain))
        case Goto(chain=chain):
            return Goto(qualified(table, chain))
        case (
            Accept()
            | Drop()
            | Return()
            | Reject()
            | SetMark()
            | HashMark()
            | LimitMss()
            | StripOptions()
            | SynProxy()
            | Proxy()
            | Queue()
            | SetConnmark()
            | SaveMark()
            | RestoreMark()
            | RestoreSocketMark()
            | SetTos()
            | SetTcpFlags()
            | TranslatePrefix()
            | SetTtl()
            | AddTtl()
            | Dnat()
            | Snat()
            | Masquerade()
            | Redirect()
            | Netmap()
            | NoTrack()
            | Template()
            | SideEffect()
        ):
            return action
        case _:
            assert_never(action)
