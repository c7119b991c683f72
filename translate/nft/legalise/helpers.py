"""``-j CT --helper``, moved after conntrack, where nftables assigns helpers to new connections.

x_tables assigns a helper by a template in ``raw``, before conntrack sees the packet (``xt_ct_target``). The
``ct helper`` statement needs the connection itself (``nft_ct_helper_obj_eval``). So the chains of ``raw``
that lead to such a rule are copied, and the copies run right after conntrack for the first packet of a
connection. The only actions in a copy are those that assign helpers. The template stays in ``raw`` without
its helper, because in both systems only the first template of a packet counts.

A test has the same result in ``raw`` and right after conntrack, unless it has state, reads conntrack data or
a socket, or reads a field that ``raw`` changes. With such a test the helpers are refused.

* Packets of an expected connection do not meet the copies. They are RELATED, and have the helper of the
  expectation or none, in both systems (``init_conntrack``).
* A connection with a helper keeps it (``IPS_HELPER_BIT``), so the first helper counts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from typing import Final, assert_never

from translate.dataclass import replace
from translate.errors import Refusal
from translate.ir import (
    Accept,
    Action,
    Apply,
    Choose,
    ConnectionState,
    Field,
    FieldTest,
    Goto,
    Hook,
    Interval,
    Jump,
    Lookup,
    LoweredChain,
    NoTrack,
    Origin,
    Policy,
    Protocol,
    Return,
    SetTest,
    Statement,
    TableName,
    Template,
    ZoneSide,
    alternatives,
    flat,
    qualified,
)
from translate.nft.legal import SetHelper, SharedHelper
from translate.nft.limits.refusal import CannotSay
from translate.passes.calls import callees_first
from translate.passes.control import changed_fields, terminal
from translate.passes.inventory import Inventory

__all__ = ["behind_conntrack", "helper_object"]

_PRIORITY: Final = -199
"""After conntrack at -200 (``NF_IP_PRI_CONNTRACK``), before every table."""

_NEW: Final = FieldTest(field=Field.CT_STATE, values=(Interval.point(ConnectionState.NEW),))
_NAME: Final = re.compile(r"[A-Za-z0-9._-]+")
_ORIGINAL: Final = re.compile(f"^{TableName.RAW}/")
_PROTOCOLS: Final[dict[int | None, str]] = {Protocol.TCP: "tcp", Protocol.UDP: "udp"}
_OTHER_ANSWERS: Final = frozenset(field for field in Field if field.name.startswith(("CT_", "TAKER")))
"""Fields that may have another value after conntrack."""


def behind_conntrack(inventory: Inventory) -> tuple[Inventory, list[Refusal]]:
    """Return the Program with copies of ``raw`` after conntrack for its helpers, and refusals of helpers."""
    if Template not in inventory.actions:
        return inventory, []
    program = inventory.program
    raw = [c for c in program.chains if c.table is TableName.RAW and c.hook in (Hook.PREROUTING, Hook.OUTPUT)]
    reached = {base.name: callees_first(program, (base,)) for base in raw}
    bases = [base for base in raw if any(map(_gives_helpers, reached[base.name]))]
    if not bases:
        return inventory, []
    moved = {chain.name: chain for base in bases for chain in reached[base.name]}
    changes = changed_fields(program)
    changed = frozenset[Field]().union(*(changes[name] for name in moved))
    in_raw = tuple(_emptied(chain) if chain.name in moved else chain for chain in program.chains)
    other = next((answer for chain in moved.values() if (answer := _other_answer(chain, changed))), None)
    refusals = [refusal for chain in moved.values() for refusal in _refused(chain, other)]
    if refusals:
        return Inventory.of(replace(program, chains=in_raw)), refusals
    chains = (*in_raw, *map(_start, bases), *map(_copy, moved.values()))
    return Inventory.of(replace(program, chains=chains)), []


def helper_object(template: Template) -> SetHelper:
    """Return the statement that assigns the helper of a moved template."""
    protocol = _PROTOCOLS[template.protocol]
    name = f"helper_{template.helper}_{protocol}"
    note = f"helper {template.helper} of {protocol}"
    return SetHelper(SharedHelper(name=name, helper=template.helper, protocol=protocol, note=note))


def _gives_helpers(chain: LoweredChain) -> bool:
    return any(True for _ in _templates(chain))


def _templates(chain: LoweredChain) -> Iterator[tuple[Origin, Template]]:
    """Yield the templates with a helper."""
    for statement in chain.statements:
        for each in alternatives(statement):
            for action in each.actions:
                if isinstance(action, Template) and action.helper:
                    yield each.origin, action


def _refused(chain: LoweredChain, other: str | None) -> Iterator[Refusal]:
    """Yield refusals of helpers that nft cannot name, or whose rules may match others after conntrack."""
    for origin, template in _templates(chain):
        if _NAME.fullmatch(template.helper) is None or template.protocol not in _PROTOCOLS:
            reason = f"nft does not take the helper {template.helper!r} for this protocol"
            yield CannotSay("ct-template", reason).at(origin)
        elif other is not None:
            reason = (
                "nftables gives a connection a helper only after conntrack, where the rules of raw must be"
                f" tested again; {other} may have another result there"
            )
            yield CannotSay("ct-template", reason).at(origin)


def _other_answer(chain: LoweredChain, changed: Collection[Field]) -> str | None:
    """Return a description of a rule whose tests may have another result after conntrack."""
    for statement in chain.statements:
        fields: set[Field] = set()
        state = isinstance(statement, Choose)
        fields.update(statement.fields if isinstance(statement, Lookup) else ())
        for test in flat(statement.tests):
            if isinstance(test, FieldTest):
                fields.add(test.field)
            elif not isinstance(test, SetTest):
                state = True
        if not fields.isdisjoint((Field.REVERSE_PATH_BY_MARK, Field.REVERSE_ROUTE_BY_MARK)):
            fields.add(Field.MARK)
        if state or not fields.isdisjoint(_OTHER_ANSWERS) or not fields.isdisjoint(changed):
            return f"a test of line {alternatives(statement)[0].origin.line}"
    return None


def _emptied(chain: LoweredChain) -> LoweredChain:
    """Return the chain in ``raw``, with templates that only set the zone."""

    def kept(actions: tuple[Action, ...]) -> tuple[Action, ...]:
        return tuple(
            replace(action, helper="", protocol=None) if isinstance(action, Template) else action
            for action in actions
        )

    return replace(chain, statements=tuple(_changed(statement, kept) for statement in chain.statements))


def _start(base: LoweredChain) -> LoweredChain:
    start = Apply(tests=(_NEW,), actions=(Jump(_name(base.name)),), origin=base.origin)
    return replace(
        base,
        name=qualified(TableName.RAW, f"{_ORIGINAL.sub('', base.name)} behind conntrack"),
        statements=(start,),
        priority=_PRIORITY,
        policy=Policy.ACCEPT,
    )


def _copy(chain: LoweredChain) -> LoweredChain:
    changed = (_changed(statement, _behind) for statement in chain.statements)
    statements = tuple(s for s in changed if any(each.actions for each in alternatives(s)))
    return replace(
        chain, name=_name(chain.name), statements=statements, hook=None, priority=None, policy=None
    )


def _name(name: str) -> str:
    """Return the name of a copy; no chain of x_tables has blanks in its name."""
    return qualified(TableName.RAW, f"helpers of {_ORIGINAL.sub('', name)}")


def _behind(actions: tuple[Action, ...]) -> tuple[Action, ...]:
    """Return the actions of a rule's copy after conntrack."""
    kept_actions: list[Action] = []
    for action in actions:
        match action:
            case Template(helper=helper) if helper:
                kept_actions.append(replace(action, zone=0, side=ZoneSide.BOTH))
            case Template() | NoTrack():
                return (*kept_actions, Accept())  # no later rule of raw assigns a helper
            case Jump(chain=name):
                kept_actions.append(Jump(_name(name)))
            case Goto(chain=name):
                kept_actions.append(Goto(_name(name)))
            case Return():
                kept_actions.append(action)
            case _ if terminal(action):
                kept_actions.append(Accept())
            case _:
                pass
    return tuple(kept_actions)


def _changed(statement: Statement, change: Callable[[tuple[Action, ...]], tuple[Action, ...]]) -> Statement:
    match statement:
        case Apply(actions=actions):
            return replace(statement, actions=change(actions))
        case Lookup(entries=entries):
            return replace(
                statement, entries=tuple(replace(each, actions=change(each.actions)) for each in entries)
            )
        case Choose():
            return statement  # its actions assign no helpers
        case _:
            assert_never(statement)
