"""The path of a packet as text, rule by rule."""

from __future__ import annotations

from typing import assert_never

from backends.model.outcome import Assumption
from backends.model.packet import Packet
from backends.simulator import (
    Answered,
    Bound,
    Ended,
    Event,
    HookEntered,
    Manip,
    NoRoute,
    PolicyApplied,
    Rewritten,
    Routed,
    RulesSkipped,
    RuleVisited,
    TracedStep,
    Tracked,
)
from harness.corpus.formats.ruletext import effect_text, test_text
from harness.explain.explain import endpoint_text
from harness.explain.ownvalue import CurrentPacket
from translate.ir import Family, Goto, Hidden, Jump, Return, Rule, Test, format_address

__all__ = [
    "PlainEvent",
    "decides",
    "drop_text",
    "ending_text",
    "event_text",
    "failure_text",
    "match_text",
    "path_lines",
]

PlainEvent = HookEntered | PolicyApplied | Tracked | Bound | Rewritten | Routed | Answered | Ended
"""Every event except those of rules."""

_DEEPEST = 40  # the deepest level of indentation
_RUN = 3  # up to this many consecutive rules that do not match are shown, more are counted


def path_lines(step: TracedStep, family: Family, *, every_rule: bool) -> list[str]:
    """Return one packet's path as lines, indented by hook, table and chain."""
    path = _Path(family, every_rule=every_rule)
    for event in step.events:
        path.add(event)
    path.flush()
    return path.lines


class _Path:
    """A writer of events as lines; it buffers rules that do not match, to print only their number."""

    def __init__(self, family: Family, *, every_rule: bool) -> None:
        self.lines: list[str] = []
        self._family = family
        self._every_rule = every_rule
        self._missed: list[tuple[RuleVisited, str]] = []
        self._current = CurrentPacket(family)
        self._table: tuple[str, str, bool] | None = None
        self._stack: list[str] = []
        self._entering: tuple[str, bool] | None = None

    def add(self, event: Event) -> None:
        """Write one event."""
        if isinstance(event, RuleVisited):
            self._rule(event)
            return
        self.flush()
        self._current.follow(event)
        assert not isinstance(event, RulesSkipped), "the trace has every rule"
        text = event_text(event, self._family)
        if isinstance(event, HookEntered):
            self.lines.append(text)
        else:
            depth = 2 if isinstance(event, PolicyApplied) else 1
            self.lines.append("  " * depth + text)
        if not isinstance(event, PolicyApplied):
            self._table = None

    def flush(self) -> None:
        """Write the buffered rules."""
        missed, self._missed = self._missed, []
        if len(missed) > _RUN and not self._every_rule:
            first, last = missed[0][0].rule.origin.line, missed[-1][0].rule.origin.line
            lines = f"lines {first}-{last}" if first and last else "rules"
            self.lines.append(f"{self._indent()}{lines}: {len(missed)} rules do not match")
            return
        for visit, own in missed:
            assert visit.failed is not None
            self._write(visit, f"no: {failure_text(visit.failed, self._family, own)}")

    def _rule(self, visit: RuleVisited) -> None:
        where = (visit.table.value, visit.hook.value, visit.answer)
        if where != self._table:
            self.flush()
            self._table, self._stack = where, [visit.chain]
            self.lines.append(f"  {visit.table} {visit.hook}")
        elif visit.chain != self._stack[-1] or self._entering is not None:
            self.flush()
            self._move(visit.chain)
        self._entering = None
        if visit.dropped:
            self.flush()
            self._write(visit, drop_text(visit, self._family))
            return
        if not visit.matched:
            self._missed.append((visit, self._current.value(visit)))
            return
        self.flush()
        self._write(visit, match_text(visit.rule, self._family))
        action = visit.rule.actions[0] if visit.rule.actions else None
        if isinstance(action, Jump | Goto):
            self._entering = (action.chain, isinstance(action, Goto))

    def _move(self, chain: str) -> None:
        if self._entering is not None and self._entering[0] == chain:
            if self._entering[1]:
                self._stack.pop()
            self._stack.append(chain)
            return
        while len(self._stack) > 1 and self._stack[-1] != chain:
            self._stack.pop()

    def _indent(self) -> str:
        return "  " * (min(len(self._stack), _DEEPEST) + 1)

    def _write(self, visit: RuleVisited, note: str) -> None:
        origin = visit.rule.origin
        text = origin.text.strip() or f"{visit.chain} rule {visit.index}"
        line = f"{origin.line}: " if origin.line else ""
        if any(unknown.hides is Hidden.RULES for unknown in visit.rule.unknown):
            line, text = "", f"({'; '.join(unknown.reason for unknown in visit.rule.unknown)})"
        self.lines.append(f"{self._indent()}{line}{text}")
        self.lines.append(f"{self._indent()}{' ' * len(line)}  → {note}")


def event_text(event: PlainEvent, family: Family) -> str:
    """Return an event in words; events of rules have :func:`match_text` and :func:`failure_text`."""
    match event:
        case HookEntered():
            sides = "".join(f" {k} {v}" for k, v in (("in", event.iif), ("out", event.oif)) if v)
            mark = f" mark {event.mark:#x}" if event.mark else ""
            answer = " (the node's answer)" if event.answer else ""
            return f"{event.hook}{answer}: {event.packet}{sides}{mark}"
        case PolicyApplied():
            return f"end of {event.table} {event.hook}: policy {event.policy}"
        case Tracked():
            status = f", {event.status!r}".replace("ConnectionStatus.", "") if event.status else ""
            direction = ", reply direction" if event.direction else ""
            return f"conntrack: {event.state.name}{direction}{status.partition(':')[0].replace('<', '')}"
        case Bound():
            side = "source" if event.manip is Manip.SOURCE else "destination"
            if event.null:
                return f"NAT: no rule changes the {side} of this connection"
            before, after = event.original, event.reply
            if event.manip is Manip.SOURCE:
                pair = (before.src, before.sport), (after.dst, after.dport)
            else:
                pair = (before.dst, before.dport), (after.src, after.sport)
            old, new = (endpoint_text(family, a, p) for a, p in pair)
            return f"NAT: the connection's {side} {old} becomes {new}"
        case Rewritten():
            return f"NAT: {_short(event.before)} → {_short(event.after)}"
        case Routed():
            rule = f", by rule {event.rule}" if event.rule is not None else ""
            return f"routing ({event.why}): {_route(event, family)}{rule}"
        case Answered():
            if event.packet is None:
                return f"no answer ({event.kind}): {event.why}"
            return f"the node answers with {event.kind}: {event.packet}"
        case Ended():
            return f"end: {ending_text(event, family)}"
        case _:
            assert_never(event)


def drop_text(visit: RuleVisited, family: Family) -> str:
    """Return how a rule that does not match, or whose target needs a header, drops the packet."""
    if visit.failed is None:
        return "yes: drops the packet, because it ends within its transport header"
    assert not isinstance(visit.failed, Assumption)
    return f"drops the packet, because this cannot be evaluated: {test_text(visit.failed, family)}"


def ending_text(event: Ended, family: Family) -> str:
    """Return the verdict on a packet, the reason, and the addresses with which it arrives."""
    return f"{event.outcome.verdict} — {event.why}{_arrival(event, family)}"


def failure_text(failed: Test | Assumption, family: Family, own: str = "") -> str:
    """Return why a rule does not match, in words; ``own`` is the value that the packet has."""
    if isinstance(failed, Assumption):
        return f"assumed that {failed}"
    return f"test failed: {test_text(failed, family)}{f'; here it is {own}' if own else ''}"


def decides(rule: Rule) -> bool:
    """Return whether a matching rule does more than lead to another chain."""
    return bool(rule.actions) and not isinstance(rule.actions[0], Jump | Goto | Return)


def match_text(rule: Rule, family: Family) -> str:
    """Return the effect of a rule that matches, or that has the same effect if it does not match."""
    effect = effect_text(rule, family)
    reasons = "; ".join(unknown.reason for unknown in rule.unknown)
    if not rule.is_undecided and any(unknown.hides is Hidden.TESTS for unknown in rule.unknown):
        return f"perhaps, as {reasons}: {effect}"
    return f"yes: {effect} ({reasons})" if rule.unknown and not rule.is_undecided else f"yes: {effect}"


def _short(packet: Packet) -> str:
    return str(packet).partition(" ")[2]


def _route(event: Routed, family: Family) -> str:
    dst = format_address(family, event.dst)
    if isinstance(event.path, NoRoute):
        return f"{dst}: {event.path.value}"
    if event.path.local:
        return f"{dst} is this node"
    via = f" via {format_address(family, event.path.via)}" if event.path.via is not None else ""
    return f"{dst} out of {event.path.dev}{via}"


def _arrival(event: Ended, family: Family) -> str:
    outcome = event.outcome
    if outcome.src is None:
        return ""
    source = endpoint_text(family, outcome.src, outcome.sport)
    target = endpoint_text(family, outcome.dst, outcome.dport)
    mark = f", mark {outcome.mark:#x}" if outcome.mark else ""
    return f" as {source} > {target}, ttl {outcome.ttl}{mark}"
