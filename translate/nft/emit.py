"""Program → nftables table: one chain per chain, one rule per statement where that can be.

What takes more than one rule, and why the meaning stays:

*A rule with an* :class:`AnyOf`. Negated, its parts cannot be negated one by one, because a match on
conntrack data fails for a packet without an entry either way. So the rule's other tests jump to a
chain of its own, where every part returns and the actions follow (``return`` form). Not negated, the
chain has one rule per part; an action that would come back is turned into one that leaves that
chain, so that at most one part acts. ``Return`` and ``Goto`` leave the rule's own chain and cannot
stand in another one; there the rule is repeated for every alternative, which is the same because
control never comes back to the next one.

*A rule with effects on the connection's mark* that would end it for some packets, or that take several
rules: its other tests jump to a chain in which each action has rules of its own.

*A lookup or draw whose actions are no plain verdict*. An element jumps to a chain that holds the
actions; when they end in ``Return`` or ``Goto`` it goes there instead, so that the return is the
lookup's chain's own.

*A rule with a test that holds where nftables ends the rule*: whether a packet is not in an ipset with ports
(it may have no transport header), or did not come in by a bridge (its device may be of no kind). So the
rule's other tests jump to a chain of its own, where a packet of which the opposite is true returns and the
actions follow. With ``Return`` or ``Goto`` as its end the rule goes to that chain instead, and so does all
else that stands behind it.

*A rule that writes into a list of* ``-m recent``. A list is a set with a timeout, one for each different
``--seconds`` of its checks. Where a set is full ``update`` ends the rule, which must not keep the packet
from its action; so ``--set`` is written apart, behind the tests before it, and then the rule without
it. That is the same, because those tests say the same again. What is in a set already is updated or
deleted in the rule itself.

Maps have names: an anonymous map costs the kernel a search through all others for a free name, which
makes a thousand of them take minutes (``nf_tables_set_alloc_name``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Final

from translate.errors import Note, Refusal, UnsupportedError
from translate.ir import (
    PORT_PROTOCOLS,
    RANDOM_RANGE,
    Account,
    Action,
    AnyOf,
    Apply,
    Choose,
    ConnectionState,
    Entry,
    Family,
    Field,
    FieldTest,
    Goto,
    Hook,
    Interval,
    IpSet,
    Jump,
    Lookup,
    LoweredChain,
    Origin,
    Program,
    Recent,
    RecentMode,
    RestoreMark,
    Return,
    SaveMark,
    SetConnmark,
    SetTest,
    Statement,
    TableName,
    Test,
)
from translate.nft.accounts import counters_of, notes_on
from translate.nft.bridges import asks_no_bridge, from_bridge, notes_on_bridges
from translate.nft.connmarks import connmark_rules, stands_apart
from translate.nft.datamaps import dnat_map, same_actions
from translate.nft.depth import too_deep
from translate.nft.ipsets import NamedSets, ends_the_rule
from translate.nft.matches import CT_PORTS, expression, keys, matches, protocols, transports
from translate.nft.model import BaseHook, NftChain, NftCounter, NftElement, NftMap, NftRule, NftSet, NftTable
from translate.nft.names import NameGiver
from translate.nft.recent import address_key, notes_about, sets_of
from translate.nft.refusal import CannotSay
from translate.nft.statements import comes_back, needs_transport, statement, verdict
from translate.passes.accounts import account_origins
from translate.passes.facts import ALWAYS_PRESENT
from translate.passes.normalise import canonical
from translate.passes.recents import RecentList, changes_list, inexact, recent_lists

__all__ = ["TABLE", "build"]

TABLE: Final = "nfparity"
"""The table that nfparity owns, one per family; it touches no other."""

_PORTS: Final = frozenset({Field.SPORT, Field.DPORT})
_FIB: Final = frozenset({Field.FIB_SADDR_TYPE, Field.FIB_DADDR_TYPE})


def build(program: Program) -> tuple[NftTable, tuple[Note, ...]]:
    """Return the table that means what ``program`` means, and where it knows other limits.

    Raises UnsupportedError with every rule that nftables cannot express.
    """
    lists = recent_lists(program)
    builder = _Builder(program.family, lists, {one.name: one for one in program.sets})
    for chain in program.chains:
        builder.declare(chain)
    for known in lists.values():
        builder.sets |= sets_of(known, builder.names, program.family)
    accounts = account_origins(program)
    builder.counters |= counters_of(accounts, builder.names)
    for chain in program.chains:
        builder.fill(chain)
    table = NftTable(
        family=program.family.value,
        name=TABLE,
        sets=tuple(builder.sets.values()),
        counters=tuple(builder.counters.values()),
        maps=[*builder.named.made.values(), *builder.maps],
        chains=builder.chains,
    )
    refusals = [*builder.refusals, *too_deep(table)]
    if refusals:
        raise UnsupportedError(tuple(sorted(refusals, key=lambda r: r.origin.line)))
    notes = (*notes_about(lists.values()), *notes_on(accounts, builder.counters), *notes_on_bridges(program))
    return table, notes


@dataclass(slots=True)
class _Builder:
    family: Family
    lists: dict[str, RecentList]
    ipsets: dict[str, IpSet]
    names: NameGiver = field(default_factory=NameGiver)
    known: dict[str, NftChain] = field(default_factory=dict)
    called: dict[str, str] = field(default_factory=dict)
    chains: list[NftChain] = field(default_factory=list)
    sets: dict[tuple[str, int | None], NftSet] = field(default_factory=dict)
    counters: dict[str, NftCounter] = field(default_factory=dict)
    maps: list[NftMap] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    named: NamedSets = field(init=False)

    def __post_init__(self) -> None:
        self.named = NamedSets(self.ipsets, self.family, self.names)

    def declare(self, chain: LoweredChain) -> None:
        """Name the chain; all are named before the first jump is written."""
        table, _, original = chain.name.partition("/")
        name = self.names.give(f"{table}_{original}")
        self.called[chain.name] = name
        note = f"{table} {original}"
        made = NftChain(name=name, note=note, origin=chain.origin, base=_base(chain))
        self.known[chain.name] = made
        self.chains.append(made)

    def fill(self, chain: LoweredChain) -> None:
        """Write the chain's statements as rules, and what cannot be written as refusals."""
        made = self.known[chain.name]
        for each in chain.statements:
            tests = canonical(each.tests, self.family)
            if tests is None:
                continue  # no packet passes these tests
            try:
                made = self._statement(made, each if tests is each.tests else replace(each, tests=tests))
            except CannotSay as e:
                self.refusals.append(e.at(each.origin))

    def _statement(self, chain: NftChain, each: Statement) -> NftChain:
        """Write a statement; return the chain that takes what stands behind it."""
        match each:
            case Apply():
                return self._apply(chain, each)
            case Lookup():
                self._lookup(chain, each)
            case Choose():
                self._choose(chain, each)
        return chain

    # Rules.

    def _apply(self, chain: NftChain, apply: Apply) -> NftChain:
        several = [i for i, test in enumerate(apply.tests) if self._takes_rules(test)]
        if not several:
            self._rule(chain, apply)
            return chain
        leaves = bool(apply.actions) and isinstance(apply.actions[-1], Return | Goto)
        index = next((i for i in several if leaves and not isinstance(apply.tests[i], AnyOf)), several[0])
        special = apply.tests[index]
        counts = _last_counts(apply.tests)
        behind = apply.tests[index + 1 : len(apply.tests) - len(counts)]
        rest = (*apply.tests[:index], *behind)
        if leaves and isinstance(special, AnyOf):
            self._repeat(chain, apply)
            return chain
        if any(not isinstance(test, FieldTest | AnyOf | SetTest) for test in behind):
            # Chance and counters behind the AnyOf must see only what passed it.
            raise CannotSay("any-of-then-state", "a test with state follows a list of alternatives")
        if leaves:
            return self._opposite_stays(chain, apply, _opposite(special), rest, counts)
        aside = self._aside(chain, apply.origin)
        chain = self._apply(chain, replace(apply, tests=rest, actions=(self._jump(aside),)))
        if isinstance(special, AnyOf):
            self._any_of(aside, special, apply, counts)
        else:
            self._rule(aside, replace(apply, tests=(_opposite(special),), actions=(Return(),)))
            self._rule(aside, replace(apply, tests=(*_transport(apply), *counts), actions=apply.actions))
        return chain

    def _takes_rules(self, test: Test) -> bool:
        """Whether a test takes more than one rule."""
        match test:
            case AnyOf():
                return True
            case SetTest():
                return ends_the_rule(test, self.ipsets)
            case FieldTest(field=Field.BRIDGED):
                return asks_no_bridge(test)
            case _:
                return False

    def _opposite_stays(
        self,
        chain: NftChain,
        apply: Apply,
        opposite: Test,
        rest: tuple[Test, ...],
        counts: tuple[Test, ...],
    ) -> NftChain:
        """Write a rule that leaves its chain unless ``opposite`` is true; return where to go on.

        What stands behind the rule is put into a chain of its own, that the other packets go to.
        """
        behind, aside = self._aside(chain, apply.origin), self._aside(chain, apply.origin)
        onward = Goto(self._jump(behind).chain)
        decide = replace(apply, tests=rest, actions=(Goto(self._jump(aside).chain),))
        chain = self._apply(chain, decide)
        self._rule(chain, replace(apply, tests=(), actions=(onward,)))
        self._rule(aside, replace(apply, tests=(opposite,), actions=(onward,)))
        self._rule(aside, replace(apply, tests=(*_transport(apply), *counts), actions=apply.actions))
        return behind

    def _any_of(self, aside: NftChain, any_of: AnyOf, apply: Apply, counts: tuple[Test, ...]) -> None:
        """Fill the chain that the rule's other tests jump to; ``counts`` see what has passed them all."""
        if any_of.negated:
            for part in any_of.tests:
                self._rule(aside, replace(apply, tests=(*_transport(apply, part), part), actions=(Return(),)))
            self._rule(aside, replace(apply, tests=(*_transport(apply), *counts)))
            return
        actions = _leaving(apply.actions)
        for part in any_of.tests:
            tests = (*_transport(apply, part), part, *counts)
            self._rule(aside, replace(apply, tests=tests, actions=actions))

    def _repeat(self, chain: NftChain, apply: Apply) -> None:
        """Write the rule once for every way in which its alternatives can hold."""
        counts = _last_counts(apply.tests)
        asked = apply.tests[: len(apply.tests) - len(counts)]
        plain = tuple(test for test in asked if not isinstance(test, AnyOf))
        if any(not isinstance(test, FieldTest | SetTest) for test in plain):
            raise CannotSay("any-of-with-state", "a list of alternatives stands beside a test with state")
        ways = [_ways(test) for test in asked if isinstance(test, AnyOf)]
        for way in product(*ways):
            tests = canonical((*plain, *(test for part in way for test in part)), self.family)
            if tests is not None:
                self._rule(chain, replace(apply, tests=(*tests, *counts)))

    def _rule(self, chain: NftChain, apply: Apply) -> None:
        if stands_apart(apply.actions):
            apply = self._effects_aside(chain, apply)
        writes = next(
            (i for i, t in enumerate(apply.tests) if isinstance(t, Recent) and changes_list(t)), None
        )
        if writes is not None:
            self._recent(chain, apply, writes)
            return
        parts = self._parts(apply.tests)
        if any(needs_transport(action) for action in apply.actions) and not transports(apply.tests):
            parts.insert(0, protocols(sorted(PORT_PROTOCOLS)))
        targets: list[str] = []
        for action in apply.actions:
            parts.append(statement(action, self.family, self.called))
            if isinstance(action, Jump | Goto):
                targets.append(self.called[action.chain])
        if parts:
            chain.rules.append(NftRule(parts=tuple(parts), targets=tuple(targets), origin=apply.origin))

    def _parts(self, tests: Sequence[Test]) -> list[str]:
        """The matches of a rule, in the order of its tests."""
        parts: list[str] = []
        start = 0
        for index, test in enumerate(tests):
            if isinstance(test, Recent | Account):
                said = self._seen(test) if isinstance(test, Recent) else self._counted(test)
                parts += [*matches(tests[start:index], self.family, self.named), said]
                start = index + 1
        return parts + matches(tests[start:], self.family, self.named)

    def _counted(self, test: Account) -> str:
        """The statement that counts; it always lets the rule go on (``nft_counter_eval``)."""
        return f"counter name {self.counters[test.name].name}"

    def _seen(self, test: Recent) -> str:
        """The match that asks whether an address is in a list."""
        problem = inexact(test, self.lists[test.name])
        if problem is not None:
            raise CannotSay(*problem)
        name = self.sets[test.name, test.seconds].name
        return f"{address_key(test, self.family)} {'!= ' if test.negated else ''}@{name}"

    def _recent(self, chain: NftChain, apply: Apply, index: int) -> None:
        """Write a rule whose test number ``index`` changes a list."""
        test, before, behind = apply.tests[index], apply.tests[:index], apply.tests[index + 1 :]
        assert isinstance(test, Recent)
        problem = inexact(test, self.lists[test.name])
        if problem is not None:
            raise CannotSay(*problem)
        if test.negated and test.mode is not RecentMode.SET:
            raise CannotSay("recent-negated", f"! --{test.mode.value} changes a list that does not match")
        operation = "delete" if test.mode is RecentMode.REMOVE else "update"
        key = address_key(test, self.family)
        sets = [self.sets[test.name, s].name for s in self.lists[test.name].seconds]
        changes = [f"{operation} @{name} {{ {key} }}" for name in sets]
        seen = replace(test, mode=RecentMode.RCHECK)
        if test.mode is RecentMode.SET or (test.mode is RecentMode.UPDATE and len(changes) > 1):
            if not all(_says_it_again(one, test.name) for one in before):
                reason = f"--{test.mode.value} stands behind a test that says it only once"
                raise CannotSay("recent-after-state", reason)
            asked = before if test.mode is RecentMode.SET else (*before, seen)
            for change in changes:
                parts = (*self._parts(asked), change)
                chain.rules.append(NftRule(parts=parts, origin=apply.origin))
            if not test.negated:
                self._rule(chain, replace(apply, tests=(*asked, *behind)))
            return
        if any(isinstance(one, Recent) and changes_list(one) for one in behind):
            raise CannotSay(
                "recent-twice", f"--{test.mode.value} stands before another test that changes a list"
            )
        targets = tuple(self.called[a.chain] for a in apply.actions if isinstance(a, Jump | Goto))
        actions = [statement(action, self.family, self.called) for action in apply.actions]
        parts = (*self._parts((*before, seen)), *changes, *self._parts(behind), *actions)
        chain.rules.append(NftRule(parts=parts, targets=targets, origin=apply.origin))

    def _effects_aside(self, chain: NftChain, apply: Apply) -> Apply:
        """Put the rule's actions into a chain, in rules of their own; return the rule that leads there."""
        aside = self._aside(chain, apply.origin)
        for action in apply.actions:
            if isinstance(action, SetConnmark | SaveMark | RestoreMark):
                aside.rules += [NftRule(parts=p, origin=apply.origin) for p in connmark_rules(action)]
                continue
            tests = _transport(apply) if needs_transport(action) else ()
            self._rule(aside, replace(apply, tests=tests, actions=(action,)))
        jump = self._jump(aside)
        leaves = isinstance(apply.actions[-1], Return | Goto)
        return replace(apply, actions=(Goto(jump.chain) if leaves else jump,))

    def _aside(self, chain: NftChain, origin: Origin) -> NftChain:
        """A new chain for a part of ``chain``, named after it."""
        made = NftChain(name=self.names.give(chain.name), note=f"part of {chain.note}", origin=origin)
        self.chains.append(made)
        return made

    def _jump(self, aside: NftChain) -> Jump:
        """A jump to a chain that only the nftables side has."""
        key = f"nft/{aside.name}"
        self.called[key] = aside.name
        return Jump(key)

    # Maps.

    def _lookup(self, chain: NftChain, lookup: Lookup) -> None:
        self._no_alternatives(lookup.tests)
        parts = matches(lookup.tests, self.family, self.named)
        known = transports(lookup.tests)
        ports = _PORTS & set(lookup.fields)
        if ports and Field.L4PROTO not in lookup.fields and not (known and set(known) <= PORT_PROTOCOLS):
            parts.insert(0, protocols(sorted(PORT_PROTOCOLS)))
        entries: list[tuple[Entry, tuple[int, ...], str]] = []
        for entry in lookup.entries:
            asked = dict(zip(lookup.fields, entry.key, strict=True))
            proto = asked.get(Field.L4PROTO)
            if ports and isinstance(proto, Interval) and proto.low not in PORT_PROTOCOLS:
                continue  # a packet of this protocol has no ports, whatever stands in their place
            over = (proto.low,) if isinstance(proto, Interval) and proto.is_point else known
            texts = [keys(f, value, self.family) for f, value in asked.items()]
            entries += [(entry, over, " . ".join(key)) for key in product(*texts)]
        wide = any(isinstance(v, Interval) and not v.is_point for e in lookup.entries for v in e.key)
        key = " . ".join(expression(f, self.family) for f in lookup.fields)
        same = same_actions(lookup.entries)
        same = () if same is None or stands_apart(same) else same
        # The grammar has no fib expression behind "dnat to" (primary_stmt_expr, nft 1.0.6).
        asks_fib = not _FIB.isdisjoint(lookup.fields)
        nat = None if same or asks_fib else dnat_map(lookup.entries, self.family)
        if not same and nat is None:
            cells = _Cells(self, chain, lookup.origin)
            for entry, over, text in entries:
                cells.add(text, entry.actions, over, entry.origin)
            self._map_rule(chain, cells, parts, key, interval=wide)
            return
        name = self.names.give(chain.name)
        # A port bound by a map counts as one of the key's; a constant one asks for a match of its own.
        asks = nat.ported and not ports if nat is not None else any(map(needs_transport, same))
        if asks and not known:
            parts.insert(0, protocols(sorted({n for _, over, _ in entries for n in over} or PORT_PROTOCOLS)))
        if nat is not None:
            parts.append(nat.statement(key, name))
        else:
            parts += [f"{key} @{name}", *(statement(a, self.family, self.called) for a in same)]
        elements = tuple(
            NftElement(key=text, data=None if nat is None else nat.of(entry), origin=entry.origin)
            for entry, _, text in entries
        )
        data = None if nat is None else nat.data
        self.maps.append(NftMap(name=name, key=key, data=data, interval=wide, elements=elements))
        targets = tuple(self.called[a.chain] for a in same if isinstance(a, Jump | Goto))
        chain.rules.append(NftRule(parts=tuple(parts), targets=targets, origin=lookup.origin))

    def _choose(self, chain: NftChain, choose: Choose) -> None:
        self._no_alternatives(choose.tests)
        parts = matches(choose.tests, self.family, self.named)
        known = transports(choose.tests)
        cells = _Cells(self, chain, choose.origin)
        low = 0
        for index, branch in enumerate(choose.branches):
            high = low + branch.weight - 1
            key = str(index) if choose.equal else str(low) if low == high else f"{low}-{high}"
            cells.add(key, branch.actions, known, branch.origin)
            low = high + 1
        share = len(choose.branches) if choose.equal else RANDOM_RANGE
        self._map_rule(chain, cells, parts, f"numgen random mod {share}", interval=not choose.equal)

    def _map_rule(
        self, chain: NftChain, cells: _Cells, parts: Sequence[str], key: str, *, interval: bool
    ) -> None:
        name = self.names.give(chain.name)
        self.maps.append(
            NftMap(name=name, key=key, data="verdict", interval=interval, elements=tuple(cells.elements))
        )
        chain.rules.append(
            NftRule(
                parts=(*parts, f"{key} vmap @{name}"),
                targets=tuple(dict.fromkeys(cells.targets)),
                origin=cells.origin,
            )
        )

    def _no_alternatives(self, tests: Sequence[Test]) -> None:
        if any(map(self._takes_rules, tests)):
            raise CannotSay("any-of-with-map", "a map cannot stand behind a test of several rules")


@dataclass(slots=True)
class _Cells:
    """The elements of one map as they are made, with a chain for every action list that needs one."""

    builder: _Builder
    chain: NftChain
    origin: Origin
    elements: list[NftElement] = field(default_factory=list)
    targets: list[str] = field(default_factory=list)
    _made: dict[tuple[tuple[Action, ...], tuple[int, ...]], str] = field(default_factory=dict)

    def add(self, key: str, actions: tuple[Action, ...], over: tuple[int, ...], origin: Origin) -> None:
        """Add an element; ``over`` are the transport protocols that its packets can have."""
        if not actions:
            return  # what a map does not hold goes on with the next rule
        last = actions[-1]
        text = verdict(last, self.builder.called) if len(actions) == 1 else None
        if text is None:
            text = self._chain_of(actions, over, origin)
        elif isinstance(last, Jump | Goto):
            self.targets.append(self.builder.called[last.chain])
        self.elements.append(NftElement(key=key, data=text, origin=origin))

    def _chain_of(self, actions: tuple[Action, ...], over: tuple[int, ...], origin: Origin) -> str:
        wants = over if any(needs_transport(action) for action in actions) else ()
        name = self._made.get((actions, wants))
        if name is None:
            aside = self.builder._aside(self.chain, origin)
            tests: tuple[Test, ...] = ()
            if wants:
                values = tuple(Interval.point(n) for n in wants)
                tests = (FieldTest(field=Field.L4PROTO, values=values),)
            self.builder._rule(aside, Apply(tests=tests, actions=actions, origin=origin))
            name = self._made[actions, wants] = aside.name
        self.targets.append(name)
        return f"{'goto' if isinstance(actions[-1], Return | Goto) else 'jump'} {name}"


def _opposite(test: Test) -> Test:
    """The opposite of a test that holds where nftables would end the rule."""
    if isinstance(test, SetTest):
        return replace(test, negated=False)
    assert isinstance(test, FieldTest)
    return from_bridge()


def _last_counts(tests: tuple[Test, ...]) -> tuple[Test, ...]:
    """The ``-m nfacct`` behind every other test: they count just what the rule acts on."""
    start = len(tests)
    while start and isinstance(tests[start - 1], Account):
        start -= 1
    return tests[start:]


def _says_it_again(test: Test, written: str) -> bool:
    """Whether a test says the same when it is asked again, after the list ``written`` has changed."""
    return isinstance(test, FieldTest | SetTest) or (isinstance(test, Recent) and test.name != written)


def _base(chain: LoweredChain) -> BaseHook | None:
    if chain.hook is None or chain.priority is None or chain.policy is None:
        return None
    kind = "filter"
    if chain.table is TableName.NAT:
        kind = "nat"
    elif chain.table is TableName.MANGLE and chain.hook is Hook.OUTPUT:
        kind = "route"  # routes again when the mark or an address was changed, as ipt_mangle_out does
    return BaseHook(type=kind, hook=chain.hook, priority=chain.priority, policy=chain.policy)


def _transport(apply: Apply, part: FieldTest | None = None) -> tuple[Test, ...]:
    """The test on the protocol, repeated in another chain where a port or a NAT action needs it."""
    known = transports(apply.tests)
    wanted = any(needs_transport(action) for action in apply.actions) or (
        part is not None and part.field in _PORTS | CT_PORTS
    )
    if not wanted or not known:
        return ()
    return (FieldTest(field=Field.L4PROTO, values=tuple(Interval.point(n) for n in known)),)


def _leaving(actions: tuple[Action, ...]) -> tuple[Action, ...]:
    """The same actions in a chain of their own, from which control must not reach the next rule."""
    match actions[-1:]:
        case (Jump(chain=name),):
            return (*actions[:-1], Goto(name))
        case (last,) if not comes_back(last):
            return actions
        case _:
            return (*actions, Return())


_NO_ENTRY: Final = FieldTest(
    field=Field.CT_STATE,
    values=(Interval.point(ConnectionState.INVALID), Interval.point(ConnectionState.UNTRACKED)),
)
"""True of just the packets without a conntrack entry (``nf_ct_get`` in ``xt_conntrack``)."""


def _ways(any_of: AnyOf) -> list[tuple[FieldTest, ...]]:
    """The conjunctions of which one must hold for ``any_of`` to hold."""
    if not any_of.negated:
        return [(part,) for part in any_of.tests]
    not_each: list[list[FieldTest]] = []
    for part in any_of.tests:
        negated = replace(part, negated=not part.negated)
        if part.field in ALWAYS_PRESENT:
            not_each.append([negated])
        elif part.field.is_connection:
            not_each.append([negated, _NO_ENTRY])
        else:
            raise CannotSay("any-of-absent", f"a packet without {part.field.text} cannot be asked for")
    return list(product(*not_each))
