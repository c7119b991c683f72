"""Rules each of whose tests is one match, and what of their effects takes rules of its own.

*Effects on the connection's mark* that would end the rule for some packets, or that take several rules: the
tests jump to a chain in which each action has rules of its own.

*A NAT target that binds a port* beside no protocol, or beside one that the packet must not have: nft takes
ports behind a match on protocols that have some alone, so that the others are bound by a rule of their own.

*A rule that writes into a list of* ``-m recent``. A list is a set with a timeout, one for each different
``--seconds`` of its checks. Where a set is full ``update`` ends the rule, which must not keep the packet
from its action; so ``--set`` is written apart, behind the tests before it, and then the rule without
it. That is the same, because those tests say the same again. What is in a set already is updated or
deleted in the rule itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from translate.ir import (
    PORT_PROTOCOLS,
    Accept,
    Account,
    Action,
    Apply,
    Dnat,
    Family,
    Field,
    FieldTest,
    Goto,
    Interval,
    Jump,
    Masquerade,
    Protocol,
    Recent,
    RecentMode,
    Redirect,
    RestoreMark,
    Return,
    SaveMark,
    SetConnmark,
    SetTest,
    Snat,
    Test,
)
from translate.nft.apart import kept_apart
from translate.nft.connmarks import connmark_rules, stands_apart
from translate.nft.draft import Draft
from translate.nft.matches import CT_PORTS, matches, transports
from translate.nft.model import NftChain, NftRule
from translate.nft.recent import address_key
from translate.nft.refusal import CannotSay
from translate.nft.statements import needs_transport, statement
from translate.passes.recents import changes_list, inexact

__all__ = ["PORTS", "negated_recent", "recent_cut", "transport_again", "write_rule"]

PORTS: Final = frozenset({Field.SPORT, Field.DPORT}) | CT_PORTS
"""Fields that are ports, of a packet or of its connection."""


def write_rule(draft: Draft, chain: NftChain, apply: Apply) -> None:
    """Write a rule each of whose tests is one match. Raises CannotSay."""
    if stands_apart(apply.actions):
        apply = _effects_aside(draft, chain, apply)
    writes = next((i for i, t in enumerate(apply.tests) if isinstance(t, Recent) and changes_list(t)), None)
    if writes is not None:
        _recent(draft, chain, apply, writes)
        return
    if any(needs_transport(action) for action in apply.actions) and not transports(apply.tests):
        apply = _binding_aside(draft, chain, apply)
    parts = _parts(draft, apply.tests)
    targets: list[str] = []
    for action in apply.actions:
        parts.append(statement(action, draft.family, draft.called))
        if isinstance(action, Jump | Goto):
            targets.append(draft.called[action.chain])
    if parts:
        chain.rules.append(NftRule(parts=tuple(parts), targets=tuple(targets), origin=apply.origin))


def _parts(draft: Draft, tests: Sequence[Test], before: Sequence[Test] = ()) -> list[str]:
    """The matches of a rule, in the order of its tests; ``before`` are those that the rule has already."""
    parts: list[str] = []
    start = len(before)
    tests = kept_apart((*before, *tests))
    for index, test in enumerate(tests):
        if index >= start and isinstance(test, Recent | Account):
            said = _seen(draft, test) if isinstance(test, Recent) else _counted(draft, test)
            parts += [*matches(tests[start:index], draft.family, draft.named, tests[:start]), said]
            start = index + 1
    return parts + matches(tests[start:], draft.family, draft.named, tests[:start])


def _counted(draft: Draft, test: Account) -> str:
    """The statement that counts; it always lets the rule go on (``nft_counter_eval``)."""
    return f"counter name {draft.counters[test.name].name}"


def _seen(draft: Draft, test: Recent) -> str:
    """The match that asks whether an address is in a list."""
    problem = inexact(test, draft.lists[test.name])
    if problem is not None:
        raise CannotSay(*problem)
    name = draft.sets[test.name, test.seconds].name
    return f"{address_key(test, draft.family)} {'!= ' if test.negated else ''}@{name}"


def recent_cut(draft: Draft, tests: Sequence[Test]) -> int | None:
    """Return the first test on a list that must stand in a rule without those before it, or None.

    It changes its list in rules of its own, and these would ask them again; or one before it changes a list.
    """
    changed = False
    for index, test in enumerate(tests):
        if not isinstance(test, Recent) or not changes_list(test):
            continue
        if test.negated and test.mode is not RecentMode.SET:
            return index
        apart = test.mode is RecentMode.SET or _updates_several(draft, test)
        if changed or (apart and not all(_says_it_again(one, test.name) for one in tests[:index])):
            return index
        changed = changed or not apart
    return None


def _updates_several(draft: Draft, test: Recent) -> bool:
    """Whether a test refreshes more than one set."""
    return test.mode is RecentMode.UPDATE and len(draft.lists[test.name].seconds) > 1


def negated_recent(draft: Draft, chain: NftChain, apply: Apply) -> None:
    """Write what a negated ``--update`` or ``--remove``, the only test of a rule, does where it fails.

    That is the rule's action. Behind these rules are the packets that pass the test.
    """
    (test,) = apply.tests
    assert isinstance(test, Recent)
    if test.mode is RecentMode.REMOVE:
        write_rule(draft, chain, replace(apply, tests=(replace(test, negated=False),)))
        return
    asked = replace(test, mode=RecentMode.RCHECK, negated=False)
    write_rule(draft, chain, replace(apply, tests=(asked,)))
    if test.seconds is not None:  # what is there and too old is as new again
        write_rule(
            draft, chain, replace(apply, tests=(replace(test, negated=False, seconds=None),), actions=())
        )


def _recent(draft: Draft, chain: NftChain, apply: Apply, index: int) -> None:
    """Write a rule whose test number ``index`` changes a list."""
    test, before, behind = apply.tests[index], apply.tests[:index], apply.tests[index + 1 :]
    assert isinstance(test, Recent)
    problem = inexact(test, draft.lists[test.name])
    if problem is not None:
        raise CannotSay(*problem)
    operation = "delete" if test.mode is RecentMode.REMOVE else "update"
    key = address_key(test, draft.family)
    sets = [draft.sets[test.name, s].name for s in draft.lists[test.name].seconds]
    changes = [f"{operation} @{name} {{ {key} }}" for name in sets]
    seen = replace(test, mode=RecentMode.RCHECK)
    if test.mode is RecentMode.SET or _updates_several(draft, test):
        asked = before if test.mode is RecentMode.SET else (*before, seen)
        for change in changes:
            parts = (*_parts(draft, asked), change)
            chain.rules.append(NftRule(parts=parts, origin=apply.origin))
        if not test.negated and (behind or apply.actions):
            write_rule(draft, chain, replace(apply, tests=(*asked, *behind)))
        return
    targets = tuple(draft.called[a.chain] for a in apply.actions if isinstance(a, Jump | Goto))
    actions = [statement(action, draft.family, draft.called) for action in apply.actions]
    asked = (*before, test)
    parts = (*_parts(draft, (*before, seen)), *changes, *_parts(draft, behind, asked), *actions)
    chain.rules.append(NftRule(parts=parts, targets=targets, origin=apply.origin))


def _binding_aside(draft: Draft, chain: NftChain, apply: Apply) -> Apply:
    """Put a target that binds a port of whatever protocol into a chain; return the rule that goes there.

    What has no port and no identifier keeps to the address (``nf_nat_l4proto_unique_tuple``), and is bound.
    """
    aside = draft.aside(chain, apply.origin)
    (action,) = apply.actions
    assert isinstance(action, Dnat | Snat | Masquerade | Redirect)
    icmp = Protocol.ICMP if draft.family is Family.IP else Protocol.ICMPV6
    tests = (
        FieldTest(
            field=Field.L4PROTO, values=tuple(Interval.point(n) for n in sorted((icmp, *PORT_PROTOCOLS)))
        ),
    )
    write_rule(draft, aside, replace(apply, tests=tests))
    rest: Action = replace(action, ports=replace(action.ports, interval=None))
    if isinstance(rest, Dnat | Snat) and rest.addresses is None:
        rest = Accept()
    write_rule(draft, aside, replace(apply, tests=(), actions=(rest,)))
    return replace(apply, actions=(Goto(draft.jump(aside).chain),))


def _effects_aside(draft: Draft, chain: NftChain, apply: Apply) -> Apply:
    """Put the rule's actions into a chain, in rules of their own; return the rule that leads there."""
    aside = draft.aside(chain, apply.origin)
    for action in apply.actions:
        if isinstance(action, SetConnmark | SaveMark | RestoreMark):
            aside.rules += [NftRule(parts=p, origin=apply.origin) for p in connmark_rules(action)]
            continue
        tests = transport_again(apply) if needs_transport(action) else ()
        write_rule(draft, aside, replace(apply, tests=tests, actions=(action,)))
    jump = draft.jump(aside)
    leaves = isinstance(apply.actions[-1], Return | Goto)
    return replace(apply, actions=(Goto(jump.chain) if leaves else jump,))


def _says_it_again(test: Test, written: str) -> bool:
    """Whether a test says the same when it is asked again, after the list ``written`` has changed."""
    return isinstance(test, FieldTest | SetTest) or (isinstance(test, Recent) and test.name != written)


def transport_again(apply: Apply, part: FieldTest | None = None) -> tuple[Test, ...]:
    """Return the test on the protocol, for another chain where a port or a NAT action needs it, or none."""
    known = transports(apply.tests)
    wanted = any(needs_transport(action) for action in apply.actions) or (
        part is not None and part.field in PORTS
    )
    if not wanted or not known:
        return ()
    return (FieldTest(field=Field.L4PROTO, values=tuple(Interval.point(n) for n in known)),)
