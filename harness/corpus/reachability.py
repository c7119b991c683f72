"""Rules that no packet can reach, each with the proof.

A rule is proven unreachable if

- no rule jumps to its chain, or only rules of unreachable chains do;
- an earlier rule ends the walk of every packet, or of every packet that this rule matches: a rule of the same
  chain, of a chain called before, or of a caller;
- it needs a member of an empty ipset;
- it is of table nat, and no rule makes the kernel track connections;
- its tests contradict each other, or contradict the tests on every path into its chain.

Fields that can change inside a table (the mark) are not used in a proof. Other rules may still be
unreachable.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from harness.corpus.formats.ruletext import test_text
from harness.corpus.passing import passing
from translate.dataclass import dataclass, field
from translate.ir import (
    Accept,
    Action,
    Chain,
    ConnectionState,
    Dnat,
    Drop,
    Family,
    Field,
    FieldTest,
    Goto,
    Interval,
    Jump,
    Masquerade,
    Netmap,
    Proxy,
    Queue,
    Redirect,
    Reject,
    Return,
    Rule,
    Ruleset,
    SetTest,
    Snat,
    Table,
    TableName,
    Test,
)
from translate.ir.intervals import intersection, intervals, subtraction
from translate.ir.tracking import tracks_connections

__all__ = ["RuleId", "WalkEnds", "dead_ends", "unreachable_rules"]

RuleId = tuple[str, str, int]
"""Table, chain, and index in the chain, from 0."""

_Context = tuple[FieldTest, ...]
_MOST_CONTEXTS = 64  # paths into one chain; with more, no proof uses them
_MOST_FACTS = 64  # tests on the path into a chain; further tests are ignored
_SHOWN = 20
_MOST_TAKERS = 64  # rules that end the walk before a called chain; with more, no proof uses them


@dataclass(frozen=True, slots=True)
class _Taker:
    """A rule that ends the walk of all packets that pass ``tests``, which include its callers' tests."""

    tests: tuple[Test, ...]
    rule: Rule
    chain: str


_Takers = tuple[_Taker, ...]


def unreachable_rules(ruleset: Ruleset) -> dict[RuleId, str]:
    """Return every rule that provably no packet matches, with the reason."""
    empty = frozenset(ipset.name for ipset in ruleset.sets if all(e.nomatch for e in ipset.elements))
    reasons: dict[RuleId, str] = {}
    tracked = any(True for _ in ruleset.unknowns()) or tracks_connections(ruleset)
    for table in ruleset.tables:
        if table.name is TableName.NAT and not tracked:
            reasons.update(_untracked(table))
        else:
            reasons.update(_Table(table, ruleset.family, empty).unreachable())
    return reasons


def _untracked(table: Table) -> Iterator[tuple[RuleId, str]]:
    reason = "no rule needs conntrack, without which no packet reaches table nat"
    for chain in table.chains:
        for index in range(len(chain.rules)):
            yield (table.name.value, chain.name, index), reason


def dead_ends(ruleset: Ruleset) -> dict[RuleId, str]:
    """Return rules that change nothing when they match, because they jump into an empty chain."""
    reasons: dict[RuleId, str] = {}
    for table in ruleset.tables:
        empty = {c.name for c in table.chains if c.hook is None and not c.rules}
        for chain in table.chains:
            for index, rule in enumerate(chain.rules):
                target = rule.callee
                if target in empty and isinstance(rule.actions[0], Jump):
                    reasons[table.name.value, chain.name, index] = f"chain {target} is empty"
    return reasons


@dataclass(slots=True)
class _Table:
    """Walks the calls of one table from its built-in chains."""

    table: Table
    family: Family
    empty_sets: frozenset[str] = frozenset()
    _ends: WalkEnds = field(init=False)
    _callers: dict[str, list[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._ends = WalkEnds(self.table)
        for chain in self.table.chains:
            for rule in chain.rules:
                target = rule.callee
                if target is not None:
                    place = f"{chain.name} (line {rule.origin.line})"
                    self._callers.setdefault(target, []).append(place)

    def unreachable(self) -> dict[RuleId, str]:
        """Return the unreachable rules of this table."""
        contexts: dict[str, set[tuple[_Context, tuple[tuple[Test, ...], ...]]] | None] = {}
        start: _Context = ()
        if self.table.name is TableName.NAT:
            # nf_nat_inet_fn: only packets that begin a connection walk the chains
            states = (ConnectionState.NEW, ConnectionState.RELATED)
            values = tuple(Interval.point(s) for s in states)
            start = (FieldTest(field=Field.CT_STATE, values=values),)
        reached: dict[tuple[str, int], bool] = {}
        reasons: dict[tuple[str, int], str] = {}
        bases = [c for c in self.table.chains if c.hook is not None]
        pending: list[tuple[Chain, _Context, _Takers]] = [(c, start, ()) for c in bases]
        while pending:
            chain, context, takers = pending.pop()
            visited = contexts.setdefault(chain.name, set())
            path = context, tuple(t.tests for t in takers)
            if visited is None or path in visited:
                continue
            visited.add(path)
            if len(visited) > _MOST_CONTEXTS:
                contexts[chain.name], context, takers = None, start, ()
            walked = zip(chain.rules, self._walk(chain, context, takers), strict=True)
            for index, (rule, (reason, before)) in enumerate(walked):
                key = chain.name, index
                if reason is not None:
                    reasons.setdefault(key, reason)
                    continue
                reached[key] = True
                target = rule.callee
                callee = None if target is None else self.table.chain(target)
                if callee is not None:
                    inherited = tuple(before) if len(before) <= _MOST_TAKERS else ()
                    pending.append((callee, _context(context, rule.tests), inherited))
        unreachable: dict[RuleId, str] = {}
        for chain in self.table.chains:
            for index in range(len(chain.rules)):
                key = chain.name, index
                if key not in reached:
                    reason = reasons.get(key) or self._uncalled(chain.name)
                    unreachable[self.table.name.value, chain.name, index] = reason
        return unreachable

    def _uncalled(self, name: str) -> str:
        callers = self._callers.get(name)
        if callers is None:
            return f"no rule jumps to chain {name}"
        more = f" and {len(callers) - _SHOWN} more" if len(callers) > _SHOWN else ""
        return f"only unreachable rules jump to chain {name}: {', '.join(callers[:_SHOWN])}{more}"

    def _walk(
        self, chain: Chain, context: _Context, inherited: _Takers
    ) -> Iterator[tuple[str | None, list[_Taker]]]:
        """Yield each rule with the reason why no packet of this context matches it (or None), and earlier
        takers.
        """
        takers = list(inherited)
        for rule in chain.rules:
            known = _merged(context, rule.tests)
            reason = self._contradiction(known, rule, context)
            if reason is None:
                all_known = (*known, *_others(rule))
                wider = next((t for t in takers if _implies(all_known, t.tests, self.family)), None)
                if wider is not None:
                    what = "every packet" if not wider.tests else "every such packet"
                    where = "out of the chain" if wider.chain == chain.name else f"in {wider.chain}"
                    reason = f"line {wider.rule.origin.line}, which comes first, takes {what} {where}"
            yield reason, takers
            takers += self._takers(rule, chain)

    def _takers(self, rule: Rule, chain: Chain) -> Iterator[_Taker]:
        """Yield the sets of packets whose walk ends at this rule."""
        if self._ends.at(rule):
            yield _Taker(rule.tests, rule, chain.name)
            return
        target = rule.callee
        callee = None if target is None else self.table.chain(target)
        if callee is None or not isinstance(rule.actions[0], Jump) or rule.unknown:
            return
        for inner in callee.rules[:_MOST_TAKERS]:
            action = inner.actions[0] if inner.actions else None
            if isinstance(action, Return | Goto):
                return  # packets that leave the chain here do not reach the rules below
            if not isinstance(action, Jump) and self._ends.at(inner):
                yield _Taker((*rule.tests, *inner.tests), inner, callee.name)

    def _contradiction(self, known: _Context, rule: Rule, context: _Context) -> str | None:
        for test in rule.tests:
            if isinstance(test, SetTest) and _is_never(test) and test.name in self.empty_sets:
                return f"ipset {test.name} is empty"
        for tested in {t.field for t in known}:
            if passing(known, tested, self.family):
                continue
            own = [test_text(t, self.family) for t in rule.tests if t in known and _on(t, tested)]
            inherited = [test_text(t, self.family) for t in context if t.field is tested]
            if not passing(tuple(t for t in known if t not in context), tested, self.family):
                return f"its own tests contradict each other: {' and '.join(own)}"
            return f"{' and '.join(own)}, but it is only reached where {' and '.join(inherited)}"
        return None


class WalkEnds:
    """The rules of a table that end the walk of every packet that they match.

    A jump is such a rule if every packet's walk ends in the called chain or in the chains that it calls.
    """

    def __init__(self, table: Table) -> None:
        self._table = table
        self._never_returns: dict[str, bool] = {}

    def at(self, rule: Rule) -> bool:
        """Return whether ``rule`` ends the walk of every packet that it matches."""
        action: Action | None = rule.actions[0] if rule.actions else None
        if rule.unknown:
            return False
        if isinstance(action, Jump):
            if action.chain not in self._never_returns:
                self._settle(action.chain)
            return self._never_returns[action.chain]
        return isinstance(action, _ENDING)

    def _settle(self, name: str) -> None:
        """Determine whether a packet can return from a chain, after doing so for the chains that it calls."""
        pending = [name]
        while pending:
            chain = pending[-1]
            if chain not in self._never_returns:
                self._never_returns[chain] = False  # also where a chain calls itself
                pending += self._callees(chain)
            else:
                self._never_returns[pending.pop()] = self._takes_all(chain)

    def _callees(self, name: str) -> list[str]:
        chain = self._table.chain(name)
        called = (rule.callee for rule in (() if chain is None else chain.rules) if not rule.tests)
        return [callee for callee in called if callee is not None and callee not in self._never_returns]

    def _takes_all(self, name: str) -> bool:
        chain = self._table.chain(name)
        for rule in () if chain is None else chain.rules:
            action = rule.actions[0] if rule.actions else None
            if isinstance(action, Return | Goto):
                return False
            if (
                not rule.tests
                and not rule.unknown
                and (
                    self._never_returns.get(action.chain, False)
                    if isinstance(action, Jump)
                    else isinstance(action, _ENDING)
                )
            ):
                return True
        return False


_ENDING = (
    Accept | Drop | Return | Reject | Proxy | Queue | Goto | Dnat | Snat | Masquerade | Redirect | Netmap
)


def _on(test: Test, field: Field) -> bool:
    return isinstance(test, FieldTest) and test.field is field


def _is_never(test: SetTest) -> bool:
    """Return whether the test never holds if the set was empty when it was read."""
    return not (test.negated or test.filled)


def _stable(test: Test) -> bool:
    """Return whether the result of a test cannot change while the packet is in one table."""
    if isinstance(test, SetTest):
        return not test.filled
    return isinstance(test, FieldTest) and test.field not in (Field.MARK, Field.CT_MARK)


def _merged(context: _Context, tests: Iterable[Test]) -> _Context:
    """Return the context, extended by the tests of plain intervals."""
    more = tuple(
        t for t in tests if isinstance(t, FieldTest) and _stable(t) and t.mask is None and not t.field.is_name
    )
    return tuple(dict.fromkeys((*context, *more)))


def _context(context: _Context, tests: Iterable[Test]) -> _Context:
    """Return the tests that hold for packets that enter a chain by a rule with these tests."""
    return context if len(context) >= _MOST_FACTS else _merged(context, tests)


def _others(rule: Rule) -> tuple[Test, ...]:
    """Return the stable tests of the rule, including those that :func:`_merged` leaves out."""
    return tuple(t for t in rule.tests if _stable(t))


def _implies(known: tuple[Test, ...], tests: tuple[Test, ...], family: Family) -> bool:
    """Return whether ``known`` implies every one of ``tests``."""
    plain = tuple(t for t in known if isinstance(t, FieldTest) and t.mask is None and not t.field.is_name)
    for test in tests:
        if not _stable(test):
            return False
        if test in known:
            continue
        if isinstance(test, SetTest):
            return False
        assert isinstance(test, FieldTest)
        # An absent field passes no test, so a test of it in ``known`` proves that the field is present.
        if test.mask is not None or test.field.is_name or not any(_on(t, test.field) for t in plain):
            return False
        left = passing(plain, test.field, family)
        values = intervals(test.values)
        outside = intersection(left, values) if test.negated else subtraction(left, values)
        if outside:
            return False
    return True
