"""Expansion of rules with a test that takes more than one nft rule.

Each expansion keeps the meaning of the rule.

*An* :class:`AnyOf`: the rule's other tests jump to a new chain. If the AnyOf is negated, each of its parts
returns from that chain, and the actions follow (the ``return`` form). The parts cannot be negated one by one,
because a match on conntrack data fails for a packet without an entry, negated or not. If the AnyOf is not
negated, the new chain has one rule per part. An action after which the packet would come back is replaced by
one that leaves the new chain, so that at most one part acts. A rule that ends in ``Return`` or ``Goto``
cannot be moved, because these actions leave the rule's own chain. It is repeated for every alternative; at
most one repetition acts, because the action ends the walk through the chain.

*Chance, counters or lists after an* :class:`AnyOf` must see only packets that passed it. If a rule changes a
list after chance or a counter, these must not be evaluated twice. In both cases the rule is cut: the tests
before the cut jump to a new chain with the rest of the rule. If the rule ends in ``Return`` or ``Goto``, the
jump is a goto; the statements after the rule are then in a second new chain, to which a packet goes when it
fails one of the tests.

*A negated* ``--update`` *or* ``--remove`` of ``-m recent`` changes the list (``recent_mt``): ``--remove``
removes a listed address, and ``--update`` refreshes a listed address without enough hits in time. The rule is
cut here, too, with rules for these changes before the rest.

*A test that accepts packets for which its nft match fails*: the packet is not in an ipset with ports (it may
have no transport header), does not have the bytes of ``-m u32``, has no socket or none of a cgroup, did not
come in through a bridge (its device may have no kind), or came in by another device than that of the route
back (which takes two matches). The rule's other tests jump to a new chain, where a packet for which the
opposite is true returns, and the actions follow. If the rule ends in ``Return`` or ``Goto``, the jump is a
goto, and the statements after the rule are in a second new chain.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Final

from translate.dataclass import replace
from translate.ir import (
    REVERSE_PATHS,
    Account,
    Action,
    AnyOf,
    Apply,
    CgroupTest,
    ConnectionState,
    ConnLabel,
    Family,
    Field,
    FieldTest,
    Goto,
    Interval,
    Jump,
    Recent,
    RecentMode,
    Return,
    SetTest,
    SetUpdate,
    Test,
    WordTest,
)
from translate.nft.legal import LegalChain
from translate.nft.legalise.draft import DraftProgram
from translate.nft.legalise.headers import CT_PORTS, PORTS
from translate.nft.legalise.ipsets import ends_the_rule
from translate.nft.legalise.natports import transport_again
from translate.nft.legalise.ordinary import is_ordinary
from translate.nft.legalise.rules import negated_recent, write_rule
from translate.passes.control import terminal
from translate.passes.facts import ALWAYS_PRESENT
from translate.passes.normalise import canonical

__all__ = ["takes_rules", "write_apply"]

_YES_OR_NO: Final = REVERSE_PATHS | {Field.BRIDGED, Field.SOCKET, Field.TAKER}
"""Fields of one bit for which a single nft rule can match the value 1, but not the value 0."""


_STATELESS: Final = (FieldTest, AnyOf, SetTest, WordTest, CgroupTest)
"""Tests that may be evaluated again."""


def write_apply(draft: DraftProgram, chain: LegalChain, apply: Apply) -> LegalChain:
    """Write a rule into ``chain``; return the chain for the statements after it. Raises CannotSay."""
    if is_ordinary(apply):
        draft.write(chain, [*draft.ordinary_matches(apply.tests), *apply.actions], apply.origin)
        return chain
    several = [i for i, test in enumerate(apply.tests) if takes_rules(draft, test)]
    cut = _cut(draft, apply.tests, several)
    if cut is not None:
        return _stages(draft, chain, apply, cut)
    if not several:
        write_rule(draft, chain, apply)
        return chain
    leaves = _leaves(apply)
    index = next((i for i in several if leaves and not isinstance(apply.tests[i], AnyOf)), several[0])
    special = apply.tests[index]
    counts = _last_counts(apply.tests)
    behind = apply.tests[index + 1 : len(apply.tests) - len(counts)]
    rest = (*apply.tests[:index], *behind)
    if leaves and isinstance(special, AnyOf):
        choices = _combinations(apply.tests, draft.family)
        if choices is None:
            return _stages(draft, chain, apply, several[0])
        for tests in choices:
            write_rule(draft, chain, replace(apply, tests=tests))
        return chain
    if leaves:
        return _opposite_stays(draft, chain, apply, _opposite(special), rest, counts)
    subchain = draft.subchain(chain, apply.origin)
    chain = write_apply(draft, chain, replace(apply, tests=rest, actions=(draft.jump(subchain),)))
    if isinstance(special, AnyOf):
        _any_of(draft, subchain, special, apply, counts)
    else:
        write_rule(draft, subchain, replace(apply, tests=(_opposite(special),), actions=(Return(),)))
        write_rule(draft, subchain, replace(apply, tests=(*transport_again(apply), *counts)))
    return chain


def _leaves(apply: Apply) -> bool:
    """Return whether the rule ends in an action that cannot be moved to another chain."""
    return bool(apply.actions) and isinstance(apply.actions[-1], Return | Goto)


def _cut(draft: DraftProgram, tests: tuple[Test, ...], several: Sequence[int]) -> int | None:
    """Return the index of the test before which the rule must be cut, or None."""
    before_counts = tests[: len(tests) - len(_last_counts(tests))]
    stateful = [i for i, t in enumerate(before_counts) if not isinstance(t, _STATELESS)]
    if several and stateful and stateful[-1] > several[0]:
        return several[0]
    return draft.recent.cut(tests)


def _stages(draft: DraftProgram, chain: LegalChain, apply: Apply, index: int) -> LegalChain:
    """Write a rule that is cut before ``index``; return the chain for the statements after it."""
    special, behind = apply.tests[index], apply.tests[index + 1 :]
    leaves = _leaves(apply)
    subchain = draft.subchain(chain, apply.origin)
    last = draft.subchain(chain, apply.origin) if leaves else chain
    failed: Action = Goto(draft.jump(last).chain) if leaves else Return()
    to_subchain: Action = Goto(draft.jump(subchain).chain) if leaves else draft.jump(subchain)
    rules = [subchain]
    begun = write_apply(draft, chain, replace(apply, tests=apply.tests[:index], actions=(to_subchain,)))
    if leaves:
        rules.append(begun)
    rest = replace(apply, tests=(*_protocol_again(apply, behind), *behind))
    match special:
        case AnyOf(negated=False):
            passed = draft.subchain(chain, apply.origin)
            for part in special.tests:
                tests = (*transport_again(apply, part), part)
                write_rule(
                    draft, subchain, replace(apply, tests=tests, actions=(Goto(draft.jump(passed).chain),))
                )
            rules.append(write_apply(draft, passed, rest))
        case AnyOf():
            for part in special.tests:
                tests = (*transport_again(apply, part), part)
                write_rule(draft, subchain, replace(apply, tests=tests, actions=(failed,)))
            rules[0] = write_apply(draft, subchain, rest)
        case Recent(negated=True, mode=RecentMode.UPDATE | RecentMode.REMOVE):
            negated_recent(draft, subchain, replace(apply, tests=(special,), actions=(failed,)))
            rules[0] = write_apply(draft, subchain, rest)
        case Recent():
            rules[0] = write_apply(draft, subchain, replace(rest, tests=(special, *rest.tests)))
        case _:
            write_rule(draft, subchain, replace(apply, tests=(_opposite(special),), actions=(failed,)))
            rules[0] = write_apply(draft, subchain, rest)
    if leaves:
        for each in rules:
            write_rule(draft, each, replace(apply, tests=(), actions=(failed,)))
    return last if leaves else begun


def takes_rules(draft: DraftProgram, test: Test) -> bool:
    """Return whether a test takes more than one rule."""
    match test:
        case AnyOf():
            return True
        case SetTest():
            return ends_the_rule(test, draft.ipsets)
        case ConnLabel(negated=negated, add=add):
            return negated and not add
        case WordTest() | CgroupTest():
            return test.negated
        case FieldTest(field=field) if field in _YES_OR_NO:
            return any(0 in v for v in test.values if isinstance(v, Interval)) is not test.negated
        case _:
            return False


def _protocol_again(apply: Apply, behind: Sequence[Test]) -> tuple[Test, ...]:
    """Return the protocol test to repeat before the rest of a rule, or none."""
    parts = [test for test in behind if isinstance(test, FieldTest) and test.field in PORTS | CT_PORTS]
    return transport_again(apply, parts[0] if parts else None)


def _opposite_stays(
    draft: DraftProgram,
    chain: LegalChain,
    apply: Apply,
    opposite: Test,
    rest: tuple[Test, ...],
    counts: tuple[Test, ...],
) -> LegalChain:
    """Write a rule whose last test holds unless ``opposite`` does, and whose actions leave the chain.

    Return a new chain for the statements after the rule. Packets that the rule does not match go to this
    chain.
    """
    behind, subchain = draft.subchain(chain, apply.origin), draft.subchain(chain, apply.origin)
    onward = Goto(draft.jump(behind).chain)
    decide = replace(apply, tests=rest, actions=(Goto(draft.jump(subchain).chain),))
    chain = write_apply(draft, chain, decide)
    write_rule(draft, chain, replace(apply, tests=(), actions=(onward,)))
    write_rule(draft, subchain, replace(apply, tests=(opposite,), actions=(onward,)))
    write_rule(
        draft, subchain, replace(apply, tests=(*transport_again(apply), *counts), actions=apply.actions)
    )
    return behind


def _any_of(
    draft: DraftProgram, subchain: LegalChain, any_of: AnyOf, apply: Apply, counts: tuple[Test, ...]
) -> None:
    """Fill the chain to which the rule's other tests jump; ``counts`` count packets that pass all tests."""
    if any_of.negated:
        for part in any_of.tests:
            write_rule(
                draft,
                subchain,
                replace(apply, tests=(*transport_again(apply, part), part), actions=(Return(),)),
            )
        write_rule(draft, subchain, replace(apply, tests=(*transport_again(apply), *counts)))
        return
    actions = _leaving(apply.actions)
    for part in any_of.tests:
        tests = (*transport_again(apply, part), part, *counts)
        write_rule(draft, subchain, replace(apply, tests=tests, actions=actions))


def _combinations(tests: tuple[Test, ...], family: Family) -> list[tuple[Test, ...]] | None:
    """Return the tests of a rule for each combination of alternatives under which it matches.

    None if rules cannot express it: a test that draws or counts must be evaluated once.
    """
    counts = _last_counts(tests)
    before_counts = tests[: len(tests) - len(counts)]
    plain = tuple(test for test in before_counts if not isinstance(test, AnyOf))
    if any(not isinstance(test, FieldTest | SetTest | WordTest | CgroupTest) for test in plain):
        return None
    choices = [_conjunctions(test) for test in before_counts if isinstance(test, AnyOf)]
    combinations = []
    for choice in product(*(choice for choice in choices if choice is not None)):
        tried = canonical((*plain, *(test for part in choice for test in part)), family)
        if tried is not None:
            combinations.append((*tried, *counts))
    return None if None in choices else combinations


def _opposite(test: Test) -> Test:
    """Return the opposite of a test that also holds for packets for which its nft match would fail."""
    if isinstance(test, SetTest | WordTest | CgroupTest | ConnLabel):
        return replace(test, negated=False)
    assert isinstance(test, FieldTest)
    return FieldTest(field=test.field, values=(Interval.point(1),))


def _last_counts(tests: tuple[Test, ...]) -> tuple[Test, ...]:
    """Return the ``-m nfacct`` tests and changes of sets after all other tests: every packet passes them."""
    start = len(tests)
    while start and isinstance(tests[start - 1], Account | SetUpdate):
        start -= 1
    return tests[start:]


def _leaving(actions: tuple[Action, ...]) -> tuple[Action, ...]:
    """Return the actions for a new chain, changed so that control does not reach its next rule."""
    match actions[-1:]:
        case (Jump(chain=name),):
            return (*actions[:-1], Goto(name))
        case (last,) if not _comes_back(last):
            return actions
        case _:
            return (*actions, Return())


def _comes_back(action: Action) -> bool:
    """Return whether the next rule of the chain can follow this action."""
    return not isinstance(action, Goto | Return) and not terminal(action)


_NO_ENTRY: Final = FieldTest(
    field=Field.CT_STATE,
    values=(Interval.point(ConnectionState.INVALID), Interval.point(ConnectionState.UNTRACKED)),
)
"""True of exactly the packets without a conntrack entry (``nf_ct_get`` in ``xt_conntrack``)."""


def _conjunctions(any_of: AnyOf) -> list[tuple[FieldTest, ...]] | None:
    """Return conjunctions of tests; ``any_of`` holds if one of them does. None if there is no such form."""
    if not any_of.negated:
        return [(part,) for part in any_of.tests]
    opposites: list[list[FieldTest]] = []
    for part in any_of.tests:
        negated = replace(part, negated=not part.negated)
        if part.field in ALWAYS_PRESENT:
            opposites.append([negated])
        elif part.field.is_connection:
            opposites.append([negated, _NO_ENTRY])
        else:
            return None  # no test of this field holds for a packet without it
    return list(product(*opposites))
