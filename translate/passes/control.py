"""Control flow after actions: proofs that it does not return, and the fields that may change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from translate.dataclass import dataclass
from translate.ir import (
    REVERSE_PATHS,
    Accept,
    Action,
    AddTtl,
    Apply,
    Dnat,
    Drop,
    Family,
    Field,
    FieldTest,
    Goto,
    HashMark,
    Jump,
    LimitMss,
    Lookup,
    LoweredChain,
    Masquerade,
    Netmap,
    NoTrack,
    Program,
    Proxy,
    Queue,
    Redirect,
    Reject,
    RestoreMark,
    RestoreSocketMark,
    Return,
    SaveMark,
    SetConnmark,
    SetMark,
    SetTcpFlags,
    SetTest,
    SetTos,
    SetTtl,
    Snat,
    Statement,
    StripOptions,
    Template,
    Test,
    TranslatePrefix,
    alternatives,
)
from translate.passes.calls import CALLS, callees_first
from translate.passes.facts import Facts, facts_of, implied, impossible, refine

__all__ = ["CHANGEABLE", "changed_by", "changed_fields", "leaves", "plain", "terminal"]

_PLAIN = (FieldTest, SetTest)
_TERMINAL = (Accept, Drop, Reject, Proxy, Queue, Dnat, Snat, Masquerade, Redirect, Netmap)
_DECISIVE = (*_TERMINAL, Return, *CALLS)
"""Actions that decide where control goes if they are last in a list."""


def terminal(action: Action) -> bool:
    """Return whether no later rule of the table sees the packet.

    NAT targets are terminal: they return the verdict of ``nf_nat_setup_info``, accept or drop, and
    never ``XT_CONTINUE``.
    """
    return isinstance(action, _TERMINAL)


def plain(tests: Iterable[Test]) -> bool:
    """Return whether no test has state or takes more than one condition in nftables.

    These take two conditions: a negated :class:`SetTest`, which also holds for a packet without ports; a test
    for no bridge, which also holds for a device without a kind; a test for no socket; and a test for no route
    back, which holds for two kinds of routes. A test of a set that rules change has state.
    """
    return all(isinstance(test, _PLAIN) and not _is_complex(test) for test in tests)


def _is_complex(test: Test) -> bool:
    if type(test) is FieldTest:
        return test.field in _TWO_CONDITIONS
    return type(test) is SetTest and (test.negated or test.filled)


_TWO_CONDITIONS: Final = REVERSE_PATHS | {Field.SOCKET, Field.TAKER, Field.BRIDGED}


def changed_fields(program: Program) -> Mapping[str, frozenset[Field]]:
    """Return, for each chain, the fields that it or a chain it calls may change."""
    changed: dict[str, frozenset[Field]] = {}
    for chain in callees_first(program):
        fields = _NONE
        for statement in chain.statements:
            for each in alternatives(statement):
                fields |= changed_by(each.actions, changed)
        changed[chain.name] = fields
    return changed


def changed_by(actions: Iterable[Action], changed: Mapping[str, frozenset[Field]]) -> frozenset[Field]:
    """Return the fields that ``actions`` may change before control comes back from them."""
    fields = _NONE
    for action in actions:
        match action:
            case SetMark() | HashMark() | RestoreMark() | RestoreSocketMark():
                fields |= _MARK
            case SetConnmark() | SaveMark():
                fields |= _CONNMARK
            case SetTos():
                fields |= _TOS
            case TranslatePrefix():
                fields |= _ADDRESSES
            case SetTcpFlags():
                fields |= _FLAGS
            case SetTtl() | AddTtl():
                fields |= _TTL
            case LimitMss() | StripOptions():
                fields |= _MSS
            case NoTrack():
                fields |= _STATE
            case Template():
                fields |= _CONNECTION
            case Jump(chain=name) | Goto(chain=name):
                fields |= changed[name]
            case _:
                pass
    return fields


_NONE: Final[frozenset[Field]] = frozenset()
_MARK: Final = frozenset({Field.MARK})
_CONNMARK: Final = frozenset({Field.CT_MARK})
_STATE: Final = frozenset({Field.CT_STATE})
_TOS: Final = frozenset({Field.TOS})
_ADDRESSES: Final = frozenset({Field.SADDR, Field.DADDR})
_FLAGS: Final = frozenset({Field.TCP_FLAGS})
_TTL: Final = frozenset({Field.TTL})
_MSS: Final = frozenset({Field.TCP_MSS, Field.TCP_OPTIONS})

_CONNECTION: Final = _STATE | {Field.CT_HELPER} | {field for field in Field if field.is_connection}
"""Fields of the connection, which a template replaces for later rules of ``raw``."""

CHANGEABLE: Final = _MARK | _TOS | _TTL | _MSS | _CONNECTION
"""Every field that :func:`changed_by` may return."""


_DEPTH = 4
"""The maximum number of jumps that a proof follows: kube-proxy's ladders need one. The cost stays linear."""


def leaves(
    actions: tuple[Action, ...], facts: Facts, chains: Mapping[str, LoweredChain], family: Family
) -> bool:
    """Return whether the statement after these actions is proven to be unreachable.

    True if they end the table for the packet, leave this chain, or jump to a chain that is proven to do so
    for every packet of which ``facts`` are true. False means that no proof was found.
    """
    if not actions:
        return False
    match actions[-1]:
        case Return() | Goto():
            return True
        case last:
            return _ends(last, facts, _Proof(chains, family), _DEPTH)


@dataclass(frozen=True, slots=True)
class _Proof:
    chains: Mapping[str, LoweredChain]
    family: Family


def _ends(last: Action, facts: Facts, proof: _Proof, depth: int) -> bool:
    """Return whether a list of actions with this last action is proven to end the table."""
    if isinstance(last, CALLS):
        return depth > 0 and _stays(proof.chains[last.chain], facts, proof, depth - 1)
    return terminal(last)


def _stays(chain: LoweredChain, facts: Facts, proof: _Proof, depth: int) -> bool:
    if impossible(facts):
        return True
    for statement in chain.statements:
        if isinstance(statement, Apply) and not (
            statement.actions and isinstance(statement.actions[-1], _DECISIVE)
        ):
            continue  # the next statement is reached whether this one matches or not
        facts_here = refine(facts, statement.tests, proof.family)
        choices = [] if impossible(facts_here) else list(_alternatives(statement, facts_here, proof.family))
        for actions, facts_then in choices:
            last = actions[-1] if actions else None
            returns = isinstance(last, Goto) and not _ends(last, facts_then, proof, depth)
            if returns or isinstance(last, Return):
                return False
        # A lookup may find nothing, so it alone never ends the table.
        certain = not isinstance(statement, Lookup) and all(
            implied(test, facts, proof.family) for test in statement.tests
        )
        if certain and all(a and _ends(a[-1], facts_then, proof, depth) for a, facts_then in choices):
            return True
    return False


def _alternatives(
    statement: Statement, facts: Facts, family: Family
) -> Iterable[tuple[tuple[Action, ...], Facts]]:
    for each in alternatives(statement):
        refined = refine(facts, facts_of(statement, each), family)
        if not impossible(refined):
            yield each.actions, refined
