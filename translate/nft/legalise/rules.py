"""Rules in which every test is one match.

*Effects on the connection's mark* that would end the rule for some packets, or that need several rules
(``connmarks``): the tests jump to a new chain with separate rules for each action. *A NAT target that binds a
port* without a protocol is bound in a new chain (``natports``). *A rule that adds to a list of* ``-m recent``
(``recent``): one rule has the tests before ``--set`` and updates the set, and the next rule is the original
without ``--set``. Its tests have the same results a second time, so the meaning is preserved. *Changes of a
header* that depend on the old value (``headerchanges``) become a chain with a rule for each value.
"""

from __future__ import annotations

from translate.dataclass import replace
from translate.ir import (
    Accept,
    Action,
    Apply,
    Drop,
    Family,
    Field,
    FieldTest,
    FillChecksum,
    Goto,
    Interval,
    LimitMss,
    Protocol,
    Proxy,
    Recent,
    RecentMode,
    RestoreMark,
    Return,
    SaveMark,
    SetConnmark,
    SetMark,
    StripOptions,
    SynProxy,
    Template,
)
from translate.nft.legal import ForThisMachine, LegalChain, Part
from translate.nft.legalise.connections import to_this_machine
from translate.nft.legalise.connmarks import (
    ANSWERED_BY_PROXY,
    NOT_LOOPBACK,
    NOT_YET_TRACKED,
    connmark_rules,
    needs_separate_rules,
)
from translate.nft.legalise.draft import DraftProgram
from translate.nft.legalise.filledsets import separate_updates
from translate.nft.legalise.headerchanges import HeaderChange, Step, is_single, steps
from translate.nft.legalise.headers import transports
from translate.nft.legalise.helpers import helper_object
from translate.nft.legalise.natports import bindings, needs_transport, transport_again
from translate.nft.legalise.recent import refreshed_where_it_fails
from translate.passes.recents import changes_list

__all__ = ["negated_recent", "statements", "write_rule"]


def write_rule(draft: DraftProgram, chain: LegalChain, apply: Apply) -> None:
    """Write a rule in which every test is one match. Raises CannotSay."""
    if needs_separate_rules(apply.actions) or not is_single(apply.actions, draft.family):
        apply = _effects_in_subchain(draft, chain, apply)
    frames = to_this_machine(apply, draft.family, chain.hooks)
    if frames is not None:
        draft.write(chain, [*draft.matches(frames), ForThisMachine()], apply.origin)
    separated = separate_updates(apply)
    if separated is not None:
        decides, changes = separated
        subchain = draft.subchain(chain, apply.origin)
        for each in changes:
            write_rule(draft, subchain, each)
        apply = replace(decides, actions=(draft.jump(subchain),))
    writes = next((i for i, t in enumerate(apply.tests) if isinstance(t, Recent) and changes_list(t)), None)
    if writes is not None:
        _recent(draft, chain, apply, writes)
        return
    if any(map(needs_transport, apply.actions)) and not transports(apply.tests):
        apply = _bindings_in_subchain(draft, chain, apply)
    parts = [*draft.matches(apply.tests), *statements(apply.actions, draft.family)]
    if parts:
        draft.write(chain, parts, apply.origin)


def statements(actions: tuple[Action, ...], family: Family) -> list[Part]:
    """Return the actions as statements; here each action on the connection's mark must be one statement."""
    parts: list[Part] = []
    for action in actions:
        if isinstance(action, FillChecksum):
            continue  # see notes_on_checksums
        if isinstance(action, SetConnmark | SaveMark | RestoreMark):
            ((tests, single),) = connmark_rules(action)
            parts += [*tests, single]
        elif isinstance(action, Template) and action.helper:
            parts.append(helper_object(action))
        elif isinstance(action, Template):
            parts += [NOT_YET_TRACKED, action]
        elif isinstance(action, SynProxy):
            parts += [ANSWERED_BY_PROXY, action]
        elif isinstance(action, StripOptions):
            parts += [StripOptions((option,)) for option in action.options]
        elif action == LimitMss(None):
            parts += [NOT_LOOPBACK, action]
        elif isinstance(action, HeaderChange):
            parts += [step for step in steps(action, family) if not isinstance(step, tuple)]
        else:
            parts.append(action)
    return parts


def negated_recent(draft: DraftProgram, chain: LegalChain, apply: Apply) -> None:
    """Write the change that a negated ``--update`` or ``--remove`` makes when it fails.

    ``apply`` has no other test. Packets for which the negated test holds continue with the next rules.
    """
    (test,) = apply.tests
    assert isinstance(test, Recent)
    fails, refreshed = refreshed_where_it_fails(test)
    write_rule(draft, chain, replace(apply, tests=(fails,)))
    if refreshed is not None:
        write_rule(draft, chain, replace(apply, tests=(refreshed,), actions=()))


def _recent(draft: DraftProgram, chain: LegalChain, apply: Apply, index: int) -> None:
    """Write a rule whose test number ``index`` changes a list."""
    test, before, behind = apply.tests[index], apply.tests[:index], apply.tests[index + 1 :]
    assert isinstance(test, Recent)
    changes = draft.recent.changes(test)
    check = replace(test, mode=RecentMode.RCHECK)
    if draft.recent.needs_separate_changes(test):
        conditions = before if test.mode is RecentMode.SET else (*before, check)
        turned = (draft.turned(chain, ring, test, apply.origin) for ring in draft.recent.added(test))
        effects: list[Part] = [*changes, *turned]
        for effect in effects:
            draft.write(chain, [*draft.matches(conditions), effect], apply.origin)
        if not test.negated and (behind or apply.actions):
            write_rule(draft, chain, replace(apply, tests=(*conditions, *behind)))
        return
    matches = [*draft.matches((*before, check)), *changes, *draft.matches(behind, (*before, test))]
    draft.write(chain, [*matches, *statements(apply.actions, draft.family)], apply.origin)


def _bindings_in_subchain(draft: DraftProgram, chain: LegalChain, apply: Apply) -> Apply:
    """Put a target that binds a port for any protocol into a new chain; return the rule that goes there."""
    subchain = draft.subchain(chain, apply.origin)
    for each in bindings(apply, draft.family):
        write_rule(draft, subchain, each)
    return replace(apply, actions=(Goto(draft.jump(subchain).chain),))


def _step(draft: DraftProgram, chain: LegalChain, apply: Apply, step: Step) -> None:
    """Write one step of a change of a header; rules by the old value are put into a new chain."""
    if not isinstance(step, tuple):
        write_rule(draft, chain, replace(apply, tests=(), actions=(step,)))
        return
    cases = draft.subchain(chain, apply.origin)
    for tests, change in step:
        write_rule(draft, cases, replace(apply, tests=tests, actions=(change, Return())))
    write_rule(draft, chain, replace(apply, tests=(), actions=(draft.jump(cases),)))


def _effects_in_subchain(draft: DraftProgram, chain: LegalChain, apply: Apply) -> Apply:
    """Put each action of the rule into separate rules of a new chain; return the rule that jumps there."""
    subchain = draft.subchain(chain, apply.origin)
    for action in apply.actions:
        if isinstance(action, SetConnmark | SaveMark | RestoreMark):
            for marks, single in connmark_rules(action):
                write_rule(draft, subchain, replace(apply, tests=marks, actions=(single,)))
            continue
        if isinstance(action, Proxy):
            _proxy(draft, subchain, apply, action)
            continue
        if isinstance(action, HeaderChange):
            for step in steps(action, draft.family):
                _step(draft, subchain, apply, step)
            continue
        tests = transport_again(apply) if needs_transport(action) else ()
        write_rule(draft, subchain, replace(apply, tests=tests, actions=(action,)))
    jump = draft.jump(subchain)
    leaves = isinstance(apply.actions[-1], Return | Goto)
    return replace(apply, actions=(Goto(jump.chain) if leaves else jump,))


def _proxy(draft: DraftProgram, chain: LegalChain, apply: Apply, action: Proxy) -> None:
    """Write a transparent proxy for each protocol of the rule, and a drop for packets without a socket.

    nft's ``tproxy`` ends the rule if it finds no socket (``nft_tproxy_eval``).
    """
    marks = (SetMark(action.value, action.mask),) if action.value or action.mask else ()
    protocols = transports(apply.tests) or _PROXIED
    for number in (protocol for protocol in protocols if protocol in _PROXIED):
        test = FieldTest(field=Field.L4PROTO, values=(Interval.point(int(number)),))
        draft.write(chain, [*draft.matches((test,)), action, *marks, Accept()], apply.origin)
    draft.write(chain, [Drop()], apply.origin)


_PROXIED = (Protocol.TCP, Protocol.UDP)
