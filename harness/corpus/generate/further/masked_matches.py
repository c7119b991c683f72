"""Packets that match the tests of a rule, but fail one test of the jumps that lead to it.

A jump may test the connection state or an address, and the rules of the called chain test other fields. If a
translation loses the test of the jump, only a packet that matches one of these rules shows it.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Final

from backends.model.flow import Flow, Send
from harness.corpus.generate.candidates.candidates import Steps
from harness.corpus.generate.candidates.constraints import opposite
from harness.corpus.generate.goals import FlowGoals, holds
from harness.corpus.generate.rule_paths import RulePath, paths_to_rules
from harness.corpus.generate.selection import Place
from translate.dataclass import dataclass
from translate.ir import (
    Accept,
    Field,
    FieldTest,
    Goto,
    Hook,
    Jump,
    Return,
    Rule,
    SetTest,
    Table,
    TableName,
    Test,
)

if TYPE_CHECKING:
    from harness.corpus.generate.search import Search

__all__ = ["MaskedMatch", "masked_match_flows"]

_SITUATION: Final = frozenset({Field.CT_STATE, Field.SADDR, Field.FIB_SADDR_TYPE, Field.FIB_DADDR_TYPE})
_TRIES: Final = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskedMatch:
    """A flow and the goals that it meets; ``visible``: its rule has another action than ACCEPT or RETURN."""

    flow: Flow
    goals: FlowGoals
    visible: bool


def masked_match_flows(
    search: Search, taken: set[str], rules: Collection[Place] | None = None
) -> Iterator[MaskedMatch]:
    """Yield a flow for each rule and each test of an address, state or set on the path to it: the flow fails
    only this test.

    ``taken`` are the ids in use. ``rules``: only for these.
    """
    tried: set[Steps] = set()
    for table in search.job.ruleset.tables:
        for (hook, name, index), into in paths_to_rules(table, search.places.family, search.chosen).items():
            chain = table.chain(name)
            assert chain is not None
            rule = chain.rules[index]
            if not rule.tests or not rule.actions or _leads_on(table, rule):
                continue
            if rules is not None and (table.name, name, index) not in rules:
                continue
            for what, tests in _variants(rule, into):
                flow_id = f"line{rule.origin.line}-{hook.value.lower()}-stray-{what}"
                if flow_id in taken:
                    continue
                stray = _first_masked(search, table.name, hook, tests)
                if stray is not None and stray[0] not in tried:
                    taken.add(flow_id)
                    tried.add(stray[0])
                    why = f"matches {rule.origin.place}, but not {what} of the rules that lead there"
                    flow = Flow(id=flow_id, steps=stray[0], why=why)
                    visible = not isinstance(rule.actions[-1], Accept | Return)
                    yield MaskedMatch(flow=flow, goals=stray[1], visible=visible)


def _leads_on(table: Table, rule: Rule) -> bool:
    """Return whether the rule jumps to rules with tests, which have flows of their own."""
    last = rule.actions[-1]
    callee = table.chain(last.chain) if isinstance(last, Jump | Goto) else None
    return callee is not None and any(rule.tests for rule in callee.rules)


def _variants(rule: Rule, into: list[RulePath]) -> Iterator[tuple[str, tuple[Test, ...]]]:
    """Yield the name of each test on the path (its field or set), and all tests with this test negated."""
    for path in into:
        for at, test in enumerate(path.tests):
            if isinstance(test, SetTest) and test.negated:
                yield test.name, (*path.tests[:at], opposite(test), *path.tests[at + 1 :], *rule.tests)
            if not isinstance(test, FieldTest) or test.field not in _SITUATION:
                continue
            if path.table is TableName.NAT and test.field is Field.CT_STATE:
                continue  # not a test of a rule: only packets that begin a connection walk the chains
            yield test.field.text, (*path.tests[:at], opposite(test), *path.tests[at + 1 :], *rule.tests)


def _first_masked(
    search: Search, table: TableName, hook: Hook, tests: tuple[Test, ...]
) -> tuple[Steps, FlowGoals] | None:
    usable = search.places.usable
    for steps in itertools.islice(search.candidates(tests, hook), _TRIES):
        if not all(usable(s.packet.dst) and usable(s.packet.src) for s in steps if isinstance(s, Send)):
            continue
        goals = search.observe(steps)
        if goals is None:
            continue
        for sighting in goals.sightings:
            if sighting.table is table and sighting.hook is hook:
                values: dict[Field, object] = {}
                if all(holds(test, sighting, search.places, values) is not False for test in tests):
                    return steps, goals
    return None
