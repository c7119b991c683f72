"""The checks of a whole table that the kernel makes in ``mark_source_chains`` and ``xt_check_*``.

Every jump leads to a user chain of the same table. No chain that is reachable from a hook
(:mod:`translate.ir.live`) reaches itself. A match or target that is valid only in some hooks is not reachable
from other hooks.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from translate.errors import Diagnostic
from translate.ir import (
    Field,
    FieldTest,
    Hook,
    Interval,
    LimitMss,
    Origin,
    Rule,
    Table,
    TcpFlag,
    Test,
    calls,
    flat,
    live_chains,
)
from translate.read.extensions import MATCHES, TARGETS
from translate.read.extensions.declaration import MatchExtension, TargetExtension
from translate.read.spelling.scanner import scan

__all__ = ["check_table"]

_IN_FIELDS: Final = MappingProxyType(
    {
        Field.FIB_SADDR_TYPE_IIF: "--limit-iface-in",
        Field.FIB_DADDR_TYPE_IIF: "--limit-iface-in",
        Field.IIF_GROUP: "--src-group",
        Field.IPSEC_IN: "policy",
    }
)
"""Fields of the input interface, and the option that tests each."""
_OUT_FIELDS: Final = MappingProxyType(
    {
        Field.FIB_SADDR_TYPE_OIF: "--limit-iface-out",
        Field.FIB_DADDR_TYPE_OIF: "--limit-iface-out",
        Field.OIF_GROUP: "--dst-group",
        Field.IPSEC_OUT: "policy",
    }
)
"""Fields of the output interface, and the option that tests each."""
_PORTS_OUT: Final = frozenset({Field.BRIDGED_ON, Field.BRIDGE_PORT_OUT})
_DEVICE_FIELDS: Final = frozenset({*_IN_FIELDS, *_OUT_FIELDS, Field.BRIDGED, *_PORTS_OUT})
_NO_IN_DEVICE: Final = (Hook.OUTPUT, Hook.POSTROUTING)
_NO_OUT_DEVICE: Final = (Hook.PREROUTING, Hook.INPUT)

_Edges = dict[str, list[tuple[str, Rule]]]
"""The chains that call others, and for each call the callee and the rule."""


def check_table(table: Table) -> list[Diagnostic]:
    """Return the faults of ``table`` that concern more than one rule."""
    chains = {chain.name: chain for chain in table.chains}
    faults: list[Diagnostic] = []
    for chain in table.chains:
        for name, rule in calls(chain.rules):
            callee = chains.get(name)
            if callee is None:
                message = f'no chain and no target is called "{name}"'
                faults.append(Diagnostic(_at_word(rule.origin, name), message))
            elif callee.hook is not None:
                message = f'"{name}" is a built-in chain; no rule can jump to it'
                faults.append(Diagnostic(_at_word(rule.origin, name), message))
    live = live_chains(table.chains)
    edges = {name: [call for call in calls(rules) if call[0] in live] for name, rules in live.items()}
    loops, callees_first = _loops(edges)
    faults += loops
    if not loops:
        faults += _misplaced(table, live, edges, callees_first)
    return faults


def _loops(edges: _Edges) -> tuple[list[Diagnostic], list[str]]:
    """Return the loops as faults, and the chains, each after its callees.

    Depth first without recursion, because calls may nest thousands deep.
    """
    faults: list[Diagnostic] = []
    finished: dict[str, None] = {}
    for root in edges:
        if root in finished:
            continue
        path = [root]
        on_path = {root}
        pending = [iter(edges[root])]
        while pending:
            for callee, rule in pending[-1]:
                if callee in on_path:
                    loop = " → ".join([*path[path.index(callee) :], callee])
                    faults.append(Diagnostic(_at_word(rule.origin, callee), f"chains form a loop: {loop}"))
                elif edges[callee] and callee not in finished:
                    path.append(callee)
                    on_path.add(callee)
                    pending.append(iter(edges[callee]))
                    break
            else:
                pending.pop()
                done = path.pop()
                on_path.discard(done)
                finished[done] = None
    return faults, list(finished)


def _misplaced(
    table: Table, live: Mapping[str, tuple[Rule, ...]], edges: _Edges, callees_first: list[str]
) -> list[Diagnostic]:
    faults: list[Diagnostic] = []
    reached = _reached(table, edges, callees_first)
    for chain in table.chains:
        hooks = reached.get(chain.name, ())
        by_way_of = "" if chain.hook is not None else f", from which chain {chain.name} is reached"
        for rule in live[chain.name] if hooks else ():
            faults += _misplaced_rule(rule, hooks, by_way_of)
    return faults


def _reached(table: Table, edges: _Edges, callees_first: list[str]) -> dict[str, tuple[Hook, ...]]:
    """Return the hooks from which each chain is reachable, in the order of the table."""
    order = [chain.hook for chain in table.chains if chain.hook is not None]
    reached: dict[str, tuple[Hook, ...]] = {
        chain.name: (chain.hook,) for chain in table.chains if chain.hook is not None
    }
    for name in reversed(callees_first):
        hooks = reached.get(name)
        if hooks is None:
            continue
        for callee, _ in edges[name]:
            before = reached.get(callee)
            if before is None:
                reached[callee] = hooks
            elif before is not hooks and before != hooks:
                reached[callee] = tuple(h for h in order if h in before or h in hooks)
    return reached


def _misplaced_rule(rule: Rule, hooks: tuple[Hook, ...], how: str) -> list[Diagnostic]:
    faults: list[Diagnostic] = []
    used: list[tuple[str, MatchExtension | TargetExtension]]
    used = [("match", MATCHES[match.name]) for match in rule.matches if match.name in MATCHES]
    if rule.target is not None and rule.target.name in TARGETS:
        used.append(("target", TARGETS[rule.target.name]))
    for kind, extension in used:
        if extension.hooks is not None and not extension.hooks.issuperset(hooks):
            wrong = [hook for hook in hooks if hook not in extension.hooks]
            faults.append(
                Diagnostic(
                    _at_word(rule.origin, extension.name),
                    f"{kind} {extension.name} is not valid in {wrong[0]}{how}",
                    "only in " + ", ".join(sorted(extension.hooks)),
                )
            )
    if LimitMss in map(type, rule.actions):
        faults += _segment_size(rule, hooks, how)
    for test in rule.tests:
        if isinstance(test, FieldTest) and test.field not in _DEVICE_FIELDS:
            continue
        for part in flat((test,)):
            if not isinstance(part, FieldTest):
                continue
            status = "not valid"
            if part.field in _IN_FIELDS:
                wrong, option = [h for h in hooks if h in _NO_IN_DEVICE], _IN_FIELDS[part.field]
            elif part.field in _OUT_FIELDS:
                wrong, option = [h for h in hooks if h in _NO_OUT_DEVICE], _OUT_FIELDS[part.field]
            elif part.field is Field.BRIDGED:
                # The kernel accepts this option in POSTROUTING, because it knows the port; translations
                # cannot test it.
                wrong, option = [h for h in hooks if h is Hook.POSTROUTING], "--physdev-is-in"
                status = "not modelled"
            elif part.field in _PORTS_OUT:
                option = _port_out(rule)
                wrong = [h for h in hooks if h is Hook.OUTPUT] if option else []
            else:
                continue
            if wrong:
                message = f"{option} is {status} in {wrong[0]}{how}"
                faults.append(Diagnostic(_at_word(rule.origin, option), message))
    return faults


def _port_out(rule: Rule) -> str:
    """Return the option for an output port that needs bridged packets; OUTPUT has no such packets.

    Empty if the rule has none, or also tests for bridged packets (``physdev_mt_check``).
    """
    for match in rule.matches:
        if match.name == "physdev":
            negated = {option.name: option.negated for option in match.options}
            option = next((name for name in ("--physdev-out", "--physdev-is-out") if name in negated), "")
            if option and negated.get("--physdev-is-bridged", True):
                return option
    return ""


def _segment_size(rule: Rule, hooks: tuple[Hook, ...], how: str) -> list[Diagnostic]:
    """Return the fault that ``tcpmss_tg4_check`` finds in a TCPMSS rule."""
    faults = []
    wrong = [hook for hook in hooks if hook in _NO_OUT_DEVICE]
    if LimitMss(None) in rule.actions and wrong:
        option = "--clamp-mss-to-pmtu"
        faults.append(Diagnostic(_at_word(rule.origin, option), f"{option} is not valid in {wrong[0]}{how}"))
    if not any(_wants_syn(test) for test in rule.tests):
        message = "TCPMSS needs a test in the same rule that the segment has SYN"
        faults.append(
            Diagnostic(_at_word(rule.origin, "TCPMSS"), message, "for example --tcp-flags SYN,RST SYN")
        )
    return faults


def _wants_syn(test: Test) -> bool:
    """Return whether the match tests that SYN is set (``find_syn_match``)."""
    if not isinstance(test, FieldTest) or test.field is not Field.TCP_FLAGS or test.negated:
        return False
    return any(isinstance(value, Interval) and value.low & TcpFlag.SYN for value in test.values)


def _at_word(origin: Origin, text: str) -> Origin:
    """Return the place of the last word ``text`` in the rule's line."""
    columns = [word.column for word in scan(origin.text) if word.text == text]
    return origin.at(columns[-1]) if columns else origin
