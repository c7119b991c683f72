"""Lookups and draws as maps and sets, and the rules that ask them.

*Actions that are no plain verdict*: an element jumps to a chain that holds the actions; when they end in
``Return`` or ``Goto`` it goes there instead, so that the return is the lookup's chain's own.

Maps have names: an anonymous map costs the kernel a search through all others for a free name, which
makes a thousand of them take minutes (``nf_tables_set_alloc_name``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Final

from translate.ir import (
    PORT_PROTOCOLS,
    RANDOM_RANGE,
    Action,
    Apply,
    Choose,
    Entry,
    Field,
    FieldTest,
    Goto,
    Interval,
    Jump,
    Lookup,
    MemberEntries,
    Origin,
    Protocol,
    Reject,
    RejectKind,
    Return,
    Test,
)
from translate.nft.alternatives import takes_rules
from translate.nft.apart import kept_apart
from translate.nft.connmarks import stands_apart
from translate.nft.datamaps import dnat_map, same_actions
from translate.nft.draft import Draft
from translate.nft.matches import expression, keys, matches, protocols, transports
from translate.nft.members import all_elements
from translate.nft.model import NftChain, NftElement, NftMap, NftRule
from translate.nft.refusal import CannotSay
from translate.nft.rules import write_rule
from translate.nft.statements import needs_transport, statement, verdict

__all__ = ["write_choose", "write_lookup"]

_PORTS: Final = frozenset({Field.SPORT, Field.DPORT})
_FIB: Final = frozenset({Field.FIB_SADDR_TYPE, Field.FIB_DADDR_TYPE})


def write_lookup(draft: Draft, chain: NftChain, lookup: Lookup) -> None:
    """Write a lookup as a map or a set, and the rule that asks it. Raises CannotSay."""
    _no_alternatives(draft, lookup.tests)
    parts = matches(kept_apart(lookup.tests), draft.family, draft.named)
    known = transports(lookup.tests)
    ports = _PORTS & set(lookup.fields)
    if ports and Field.L4PROTO not in lookup.fields and not (known and set(known) <= PORT_PROTOCOLS):
        parts.append(protocols(sorted(PORT_PROTOCOLS)))
    # What a member of a family is, is seen from those that the sample has.
    shown = lookup.entries.sample if isinstance(lookup.entries, MemberEntries) else lookup.entries
    entries: list[tuple[Entry, tuple[int, ...], str]] = []
    for entry in shown:
        asked = dict(zip(lookup.fields, entry.key, strict=True))
        proto = asked.get(Field.L4PROTO)
        if ports and isinstance(proto, Interval) and proto.low not in PORT_PROTOCOLS:
            continue  # a packet of this protocol has no ports, whatever stands in their place
        over = (proto.low,) if isinstance(proto, Interval) and proto.is_point else known
        texts = [keys(f, value, draft.family) for f, value in asked.items()]
        entries += [(entry, over, " . ".join(key)) for key in product(*texts)]
    wide = any(isinstance(v, Interval) and not v.is_point for e in shown for v in e.key)
    key = " . ".join(expression(f, draft.family) for f in lookup.fields)
    same = same_actions(shown)
    same = () if same is None or stands_apart(same) or _resets_behind_others(same, known) else same
    # The grammar has no fib expression behind "dnat to" (primary_stmt_expr, nft 1.0.6).
    asks_fib = not _FIB.isdisjoint(lookup.fields)
    nat = None if same or asks_fib else dnat_map(shown, draft.family)
    if not same and nat is None:
        cells = _Cells(draft, chain, lookup.origin)
        made = [(e, cells.element(text, e.actions, over, e.origin)) for e, over, text in entries]
        elements = all_elements(lookup, made, draft.family)
        _map_rule(draft, chain, cells, parts, key, elements, interval=wide)
        return
    name = draft.names.give(chain.name)
    # A port bound by a map counts as one of the key's; a constant one asks for a match of its own.
    asks = nat.ported and not ports if nat is not None else any(map(needs_transport, same))
    if asks and not known:
        parts.append(protocols(sorted({n for _, over, _ in entries for n in over} or PORT_PROTOCOLS)))
    if nat is not None:
        parts.append(nat.statement(key, name))
    else:
        parts += [f"{key} @{name}", *(statement(a, draft.family, draft.called) for a in same)]
    made = [
        (entry, NftElement(key=text, data=None if nat is None else nat.of(entry), origin=entry.origin))
        for entry, _, text in entries
    ]
    elements = all_elements(lookup, made, draft.family, translated=nat is not None)
    data = None if nat is None else nat.data
    draft.maps.append(NftMap(name=name, key=key, data=data, interval=wide, elements=elements))
    targets = tuple(draft.called[a.chain] for a in same if isinstance(a, Jump | Goto))
    chain.rules.append(NftRule(parts=tuple(parts), targets=targets, origin=lookup.origin))


def _resets_behind_others(actions: Sequence[Action], known: Sequence[int]) -> bool:
    """Whether nft would refuse an answer that is for TCP alone, behind matches on other protocols."""
    resets = any(isinstance(a, Reject) and a.kind is RejectKind.TCP_RESET for a in actions)
    return resets and tuple(known) != (Protocol.TCP,)


def write_choose(draft: Draft, chain: NftChain, choose: Choose) -> None:
    """Write a draw as a map of numbers, and the rule that draws one. Raises CannotSay."""
    _no_alternatives(draft, choose.tests)
    parts = matches(kept_apart(choose.tests), draft.family, draft.named)
    known = transports(choose.tests)
    cells = _Cells(draft, chain, choose.origin)
    elements = []
    low = 0
    for index, branch in enumerate(choose.branches):
        high = low + branch.weight - 1
        key = str(index) if choose.equal else str(low) if low == high else f"{low}-{high}"
        elements.append(cells.element(key, branch.actions, known, branch.origin))
        low = high + 1
    share = len(choose.branches) if choose.equal else RANDOM_RANGE
    there = tuple(element for element in elements if element is not None)
    _map_rule(draft, chain, cells, parts, f"numgen random mod {share}", there, interval=not choose.equal)


def _map_rule(
    draft: Draft,
    chain: NftChain,
    cells: _Cells,
    parts: Sequence[str],
    key: str,
    elements: Sequence[NftElement],
    *,
    interval: bool,
) -> None:
    name = draft.names.give(chain.name)
    draft.maps.append(NftMap(name=name, key=key, data="verdict", interval=interval, elements=elements))
    chain.rules.append(
        NftRule(
            parts=(*parts, f"{key} vmap @{name}"),
            targets=tuple(dict.fromkeys(cells.targets)),
            origin=cells.origin,
        )
    )


def _no_alternatives(draft: Draft, tests: Sequence[Test]) -> None:
    if any(takes_rules(draft, test) for test in tests):
        raise CannotSay("any-of-with-map", "a map cannot stand behind a test of several rules")


@dataclass(slots=True)
class _Cells:
    """The elements of one map as they are made, with a chain for every action list that needs one."""

    draft: Draft
    chain: NftChain
    origin: Origin
    targets: list[str] = field(default_factory=list)
    _made: dict[tuple[tuple[Action, ...], tuple[int, ...]], str] = field(default_factory=dict)

    def element(
        self, key: str, actions: tuple[Action, ...], over: tuple[int, ...], origin: Origin
    ) -> NftElement | None:
        """Return an element; ``over`` are the transport protocols that its packets can have.

        None without actions: what a map does not hold goes on with the next rule.
        """
        if not actions:
            return None
        last = actions[-1]
        text = verdict(last, self.draft.called) if len(actions) == 1 else None
        if text is None:
            text = self._chain_of(actions, over, origin)
        elif isinstance(last, Jump | Goto):
            self.targets.append(self.draft.called[last.chain])
        return NftElement(key=key, data=text, origin=origin)

    def _chain_of(self, actions: tuple[Action, ...], over: tuple[int, ...], origin: Origin) -> str:
        wants = over if any(needs_transport(action) for action in actions) else ()
        name = self._made.get((actions, wants))
        if name is None:
            aside = self.draft.aside(self.chain, origin)
            tests: tuple[Test, ...] = ()
            if wants:
                values = tuple(Interval.point(n) for n in wants)
                tests = (FieldTest(field=Field.L4PROTO, values=values),)
            write_rule(self.draft, aside, Apply(tests=tests, actions=actions, origin=origin))
            name = self._made[actions, wants] = aside.name
        self.targets.append(name)
        return f"{'goto' if isinstance(actions[-1], Return | Goto) else 'jump'} {name}"
