"""Lookups and draws as one map or set each, with the rule that uses it.

*Entries with the same actions* become a set, with the actions in the rule. *Entries that differ only in the
target of a DNAT* become a map of targets (``datamaps``). All others become a verdict map.

*Actions that are not a plain verdict*: an element jumps to a new chain with the actions. If they end in
``Return`` or ``Goto``, the element goes to that chain, so that the return leaves the lookup's chain.

Maps have names: for an anonymous map the kernel searches all others for a free name, so a thousand of them
take minutes (``nf_tables_set_alloc_name``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from translate.dataclass import dataclass, field
from translate.ir import (
    PORT_PROTOCOLS,
    RANDOM_RANGE,
    Accept,
    Action,
    Apply,
    Branch,
    Choose,
    Drop,
    Entry,
    Family,
    Field,
    FieldTest,
    Goto,
    Interval,
    Jump,
    Lookup,
    Origin,
    Protocol,
    Reject,
    RejectKind,
    Return,
    Test,
)
from translate.nft.legal import (
    DnatTarget,
    DnatTo,
    Draw,
    Element,
    InSet,
    Key,
    LegalChain,
    LegalMap,
    Part,
    VerdictOf,
)
from translate.nft.legalise.alternatives import takes_rules
from translate.nft.legalise.connmarks import needs_separate_rules
from translate.nft.legalise.datamaps import dnat_targets, same_actions
from translate.nft.legalise.draft import DraftProgram
from translate.nft.legalise.headerchanges import is_single
from translate.nft.legalise.headers import CT_PORTS, PORTS, protocol_among, transports
from translate.nft.legalise.natports import needs_transport
from translate.nft.legalise.rules import statements, write_rule
from translate.nft.limits.inexpressible import check_field, check_key
from translate.nft.limits.refusal import CannotSay

__all__ = ["write_choose", "write_lookup"]

_FIB: Final = frozenset({Field.FIB_SADDR_TYPE, Field.FIB_DADDR_TYPE})


def write_lookup(draft: DraftProgram, chain: LegalChain, lookup: Lookup) -> None:
    """Write a lookup as a map or a set, with the rule that uses it. Raises CannotSay."""
    _no_alternatives(draft, lookup.tests)
    tests = _with_protocol(lookup, draft.family)
    parts = draft.matches(tests)
    protocols = transports(tests)
    ports = not PORTS.isdisjoint(lookup.fields)
    if ports and Field.L4PROTO not in lookup.fields and not (protocols and set(protocols) <= PORT_PROTOCOLS):
        parts.append(protocol_among(PORT_PROTOCOLS))
    entries = list(_possible(lookup, protocols))
    for entry, _ in entries:
        check_key(lookup.fields, entry.key, draft.family)
    for each in lookup.fields:
        check_field(each, draft.family)
    origin = _place(lookup.origin, lookup.entries)
    wide = any(isinstance(v, Interval) and not v.is_point for e in lookup.entries for v in e.key)
    same = same_actions(lookup.entries)
    same = (
        ()
        if same is None
        or needs_separate_rules(same)
        or not is_single(same, draft.family)
        or _resets_behind_others(same, protocols)
        else same
    )
    # The grammar has no fib expression after "dnat to" (primary_stmt_expr, nft 1.0.6).
    asks_fib = not _FIB.isdisjoint(lookup.fields)
    nat = None if same or asks_fib else dnat_targets(lookup.entries)
    if not same and nat is None:
        cells = _Cells(draft, chain, origin, lookup.entries)
        elements = [cells.element(entry, over) for entry, over in entries]
        cells.write(parts, lookup.fields, elements, interval=wide, lookup=lookup)
        return
    name = draft.names.give(f"{chain.name}_{'keys' if nat is None else 'targets'}")
    # A port bound by a map counts as a port of the key; a constant port needs a match on the protocol.
    asks = nat.ported and not ports if nat is not None else any(map(needs_transport, same))
    if asks and not protocols:
        parts.append(protocol_among({n for _, over in entries for n in over} or PORT_PROTOCOLS))
    if nat is not None:
        parts.append(DnatTo(name, lookup.fields, nat.ports))
    else:
        parts += [InSet(name, lookup.fields), *statements(same, draft.family)]
    draft.write(chain, parts, origin)
    draft.maps.append(
        LegalMap(
            name=name,
            key=lookup.fields,
            data=None if nat is None else DnatTarget(nat.ported),
            interval=wide,
            elements=tuple(Element(e, None if nat is None else e.actions[0]) for e, _ in entries),
            lookup=lookup,
        )
    )


def _with_protocol(lookup: Lookup, family: Family) -> tuple[Test, ...]:
    """Return the tests; if they test a port of the connection, the protocol that the key implies comes first.

    Otherwise the protocol match that nft requires before such a port would contradict the key.
    """
    if not transports(lookup.tests) and any(
        isinstance(t, FieldTest) and t.field in CT_PORTS for t in lookup.tests
    ):
        icmp = Protocol.ICMP if family is Family.IP else Protocol.ICMPV6
        for each in lookup.fields:
            if each in (Field.ICMP_TYPE, Field.ICMP_CODE):
                return (protocol_among((icmp,)), *lookup.tests)
            if each is Field.TCP_FLAGS:
                return (protocol_among((Protocol.TCP,)), *lookup.tests)
    return lookup.tests


def _possible(lookup: Lookup, protocols: tuple[int, ...]) -> Iterator[tuple[Entry, tuple[int, ...]]]:
    """Yield the entries that packets can match, each with the possible transport protocols."""
    ports = not PORTS.isdisjoint(lookup.fields)
    at = lookup.fields.index(Field.L4PROTO) if Field.L4PROTO in lookup.fields else None
    for entry in lookup.entries:
        protocol = None if at is None else entry.key[at]
        if ports and isinstance(protocol, Interval) and protocol.low not in PORT_PROTOCOLS:
            continue  # a packet of this protocol has no ports
        single = isinstance(protocol, Interval) and protocol.is_point
        yield entry, (protocol.low,) if isinstance(protocol, Interval) and single else protocols


def _resets_behind_others(actions: Sequence[Action], protocols: Sequence[int]) -> bool:
    """Return whether nft would refuse a TCP reset after matches on other protocols."""
    resets = any(isinstance(a, Reject) and a.kind is RejectKind.TCP_RESET for a in actions)
    return resets and tuple(protocols) != (Protocol.TCP,)


def write_choose(draft: DraftProgram, chain: LegalChain, choose: Choose) -> None:
    """Write a draw as a map of numbers, with the rule that draws one. Raises CannotSay."""
    _no_alternatives(draft, choose.tests)
    parts = draft.matches(choose.tests)
    protocols = transports(choose.tests)
    cells = _Cells(draft, chain, _place(choose.origin, choose.branches), choose.branches)
    elements = []
    low = 0
    for branch in choose.branches:
        high = low if choose.equal else low + branch.weight - 1
        entry = Entry(key=(Interval(low, high),), actions=branch.actions, origin=branch.origin)
        elements.append(cells.element(entry, protocols))
        low = high + 1
    draw = Draw(len(choose.branches) if choose.equal else RANDOM_RANGE)
    cells.write(parts, (draw,), elements, interval=not choose.equal)


def _place(origin: Origin, entries: Sequence[Entry | Branch]) -> Origin:
    """Return the origin of the nft rule for the rules of all entries."""
    return origin.of_several() if len({entry.origin.line for entry in entries}) > 1 else origin


def _no_alternatives(draft: DraftProgram, tests: Sequence[Test]) -> None:
    if any(takes_rules(draft, test) for test in tests):
        raise CannotSay("any-of-with-map", "a map cannot follow a test that takes several rules")


@dataclass(slots=True)
class _Cells:
    """The elements of one verdict map, with a chain for every action list that needs one.

    ``entries`` are the source of the elements; ``origin`` is the origin of the rule that uses the map.
    """

    draft: DraftProgram
    chain: LegalChain
    origin: Origin
    entries: Sequence[Entry | Branch]
    calls: list[str] = field(default_factory=list)
    _made: dict[tuple[tuple[Action, ...], tuple[int, ...]], Jump | Goto] = field(default_factory=dict)

    def element(self, entry: Entry, over: tuple[int, ...]) -> Element | None:
        """Return an element; ``over`` are the possible transport protocols of its packets.

        None for an entry without actions: a packet without an element continues with the next rule.
        """
        if not entry.actions:
            return None
        verdict = entry.actions[-1]
        if len(entry.actions) > 1 or not isinstance(verdict, Accept | Drop | Return | Jump | Goto):
            verdict = self._chain_of(entry.actions, over, entry.origin)
        if isinstance(verdict, Jump | Goto):
            self.calls.append(self.draft.called[verdict.chain])
        return Element(entry, verdict)

    def _chain_of(self, actions: tuple[Action, ...], over: tuple[int, ...], origin: Origin) -> Jump | Goto:
        protocols = over if any(map(needs_transport, actions)) else ()
        call = self._made.get((actions, protocols))
        if call is None:
            origin = _place(origin, [entry for entry in self.entries if entry.actions == actions])
            subchain = self.draft.subchain(self.chain, origin)
            tests = (protocol_among(protocols),) if protocols else ()
            write_rule(self.draft, subchain, Apply(tests=tests, actions=actions, origin=origin))
            call = self.draft.jump(subchain)
            call = Goto(call.chain) if isinstance(actions[-1], Return | Goto) else call
            self._made[actions, protocols] = call
        return call

    def write(
        self,
        parts: Sequence[Part],
        key: Key,
        elements: Sequence[Element | None],
        *,
        interval: bool,
        lookup: Lookup | None = None,
    ) -> None:
        """Write the map of these elements, and the rule that uses it after ``parts``."""
        name = self.draft.names.give(f"{self.chain.name}_{'draw' if lookup is None else 'verdicts'}")
        written = tuple(element for element in elements if element is not None)
        self.draft.maps.append(
            LegalMap(name=name, key=key, data="verdict", interval=interval, elements=written, lookup=lookup)
        )
        self.draft.write(self.chain, [*parts, VerdictOf(name, key)], self.origin, dict.fromkeys(self.calls))
