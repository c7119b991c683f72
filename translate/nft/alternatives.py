"""Rules with a test that takes more than one nft rule, and why the meaning stays.

*A rule with an* :class:`AnyOf`. Negated, its parts cannot be negated one by one, because a match on
conntrack data fails for a packet without an entry either way. So the rule's other tests jump to a
chain of its own, where every part returns and the actions follow (``return`` form). Not negated, the
chain has one rule per part; an action that would come back is turned into one that leaves that
chain, so that at most one part acts. ``Return`` and ``Goto`` leave the rule's own chain and cannot
stand in another one; there the rule is repeated for every alternative, which is the same because
control never comes back to the next one.

*A rule with a test that holds where nftables ends the rule*: whether a packet is not in an ipset with ports
(it may have no transport header), did not come in by a bridge (its device may be of no kind), or came by
another way than the one back (which takes two matches to say). So the rule's other tests jump to a chain of
its own, where a packet of which the opposite is true returns and the actions follow. With ``Return`` or
``Goto`` as its end the rule goes to that chain instead, and so does all else that stands behind it.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Final

from translate.ir import (
    Account,
    Action,
    AnyOf,
    Apply,
    ConnectionState,
    Field,
    FieldTest,
    Goto,
    Interval,
    Jump,
    Return,
    SetTest,
    Test,
)
from translate.nft.draft import Draft
from translate.nft.ipsets import ends_the_rule
from translate.nft.matches import REVERSE_PATHS
from translate.nft.model import NftChain
from translate.nft.refusal import CannotSay
from translate.nft.rules import transport_again, write_rule
from translate.nft.statements import comes_back
from translate.passes.facts import ALWAYS_PRESENT
from translate.passes.normalise import canonical

__all__ = ["takes_rules", "write_apply"]

_YES_OR_NO: Final = REVERSE_PATHS | {Field.BRIDGED}
"""Fields of one bit, of which the matches of one rule say "yes" alone."""


def write_apply(draft: Draft, chain: NftChain, apply: Apply) -> NftChain:
    """Write a rule into ``chain``; return the chain that takes what stands behind it. Raises CannotSay."""
    several = [i for i, test in enumerate(apply.tests) if takes_rules(draft, test)]
    if not several:
        write_rule(draft, chain, apply)
        return chain
    leaves = bool(apply.actions) and isinstance(apply.actions[-1], Return | Goto)
    index = next((i for i in several if leaves and not isinstance(apply.tests[i], AnyOf)), several[0])
    special = apply.tests[index]
    counts = _last_counts(apply.tests)
    behind = apply.tests[index + 1 : len(apply.tests) - len(counts)]
    rest = (*apply.tests[:index], *behind)
    if leaves and isinstance(special, AnyOf):
        _repeat(draft, chain, apply)
        return chain
    if any(not isinstance(test, FieldTest | AnyOf | SetTest) for test in behind):
        # Chance and counters behind the AnyOf must see only what passed it.
        raise CannotSay("any-of-then-state", "a test with state follows a list of alternatives")
    if leaves:
        return _opposite_stays(draft, chain, apply, _opposite(special), rest, counts)
    aside = draft.aside(chain, apply.origin)
    chain = write_apply(draft, chain, replace(apply, tests=rest, actions=(draft.jump(aside),)))
    if isinstance(special, AnyOf):
        _any_of(draft, aside, special, apply, counts)
    else:
        write_rule(draft, aside, replace(apply, tests=(_opposite(special),), actions=(Return(),)))
        write_rule(draft, aside, replace(apply, tests=(*transport_again(apply), *counts)))
    return chain


def takes_rules(draft: Draft, test: Test) -> bool:
    """Return whether a test takes more than one rule."""
    match test:
        case AnyOf():
            return True
        case SetTest():
            return ends_the_rule(test, draft.ipsets)
        case FieldTest(field=field) if field in _YES_OR_NO:
            return any(0 in v for v in test.values if isinstance(v, Interval)) is not test.negated
        case _:
            return False


def _opposite_stays(
    draft: Draft,
    chain: NftChain,
    apply: Apply,
    opposite: Test,
    rest: tuple[Test, ...],
    counts: tuple[Test, ...],
) -> NftChain:
    """Write a rule that leaves its chain unless ``opposite`` is true; return where to go on.

    What stands behind the rule is put into a chain of its own, that the other packets go to.
    """
    behind, aside = draft.aside(chain, apply.origin), draft.aside(chain, apply.origin)
    onward = Goto(draft.jump(behind).chain)
    decide = replace(apply, tests=rest, actions=(Goto(draft.jump(aside).chain),))
    chain = write_apply(draft, chain, decide)
    write_rule(draft, chain, replace(apply, tests=(), actions=(onward,)))
    write_rule(draft, aside, replace(apply, tests=(opposite,), actions=(onward,)))
    write_rule(draft, aside, replace(apply, tests=(*transport_again(apply), *counts), actions=apply.actions))
    return behind


def _any_of(draft: Draft, aside: NftChain, any_of: AnyOf, apply: Apply, counts: tuple[Test, ...]) -> None:
    """Fill the chain that the rule's other tests jump to; ``counts`` see what has passed them all."""
    if any_of.negated:
        for part in any_of.tests:
            write_rule(
                draft, aside, replace(apply, tests=(*transport_again(apply, part), part), actions=(Return(),))
            )
        write_rule(draft, aside, replace(apply, tests=(*transport_again(apply), *counts)))
        return
    actions = _leaving(apply.actions)
    for part in any_of.tests:
        tests = (*transport_again(apply, part), part, *counts)
        write_rule(draft, aside, replace(apply, tests=tests, actions=actions))


def _repeat(draft: Draft, chain: NftChain, apply: Apply) -> None:
    """Write the rule once for every way in which its alternatives can hold."""
    counts = _last_counts(apply.tests)
    asked = apply.tests[: len(apply.tests) - len(counts)]
    plain = tuple(test for test in asked if not isinstance(test, AnyOf))
    if any(not isinstance(test, FieldTest | SetTest) for test in plain):
        raise CannotSay("any-of-with-state", "a list of alternatives stands beside a test with state")
    ways = [_ways(test) for test in asked if isinstance(test, AnyOf)]
    for way in product(*ways):
        tests = canonical((*plain, *(test for part in way for test in part)), draft.family)
        if tests is not None:
            write_rule(draft, chain, replace(apply, tests=(*tests, *counts)))


def _opposite(test: Test) -> Test:
    """The opposite of a test that holds where nftables would end the rule."""
    if isinstance(test, SetTest):
        return replace(test, negated=False)
    assert isinstance(test, FieldTest)
    return FieldTest(field=test.field, values=(Interval.point(1),))


def _last_counts(tests: tuple[Test, ...]) -> tuple[Test, ...]:
    """The ``-m nfacct`` behind every other test: they count just what the rule acts on."""
    start = len(tests)
    while start and isinstance(tests[start - 1], Account):
        start -= 1
    return tests[start:]


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
