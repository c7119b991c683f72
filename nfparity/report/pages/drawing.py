"""Drawings of paths: the chains that a packet went through as a tree, with those that it did not take folded.

Each row is a box, indented below the chain that leads to it. A drawing is made for the width of a phone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from backends.simulator import (
    Ended,
    HookEntered,
    PolicyApplied,
    RulesSkipped,
    RuleVisited,
    TracedStep,
)
from harness.explain.stems import Stems
from harness.report.path import decides, event_text, match_text
from harness.report.terminal import plain
from nfparity.report.pages.content import Box, Drawing, Edge, Hop
from nfparity.report.pages.hops import ServiceOf
from translate.dataclass import dataclass, field
from translate.ir import Policy, Rule, Ruleset

__all__ = ["PathDrawer", "observed_drawing"]

_WIDTH: Final = 340
_INDENT: Final = 18
_DEEPEST: Final = 8
_GAP: Final = 8
_LOW: Final = 24
_HIGH: Final = 40
_LETTER: Final = 7.3
"""The width of a letter of the text, in pixels."""
_SMALL: Final = 6.4
"""The width of a letter of the note."""


@dataclass(slots=True)
class _Node:
    """A box without coordinates. ``key`` is a chain's table and name, ``taken`` are the chains it led to."""

    kind: str
    text: str
    note: str = ""
    below: list[_Node] = field(default_factory=list)
    key: tuple[str, str] | None = None
    taken: set[str] = field(default_factory=set)


class PathDrawer:
    """Draws paths through the chains of one ruleset."""

    def __init__(self, ruleset: Ruleset, service_of: ServiceOf) -> None:
        self._tables = {table.name.value: table for table in ruleset.tables}
        self._family = ruleset.family
        self._service_of = service_of
        self._callees: dict[tuple[str, str], Stems] = {}

    def draw(self, step: TracedStep) -> Drawing:
        """Return the drawing of one packet's path."""
        roots: list[_Node] = []
        stack: list[_Node] = []
        for event in step.events:
            if isinstance(event, HookEntered):
                stack = []
                answer = " (the node's answer)" if event.answer else ""
                roots.append(_Node("hook", f"{event.hook}{answer}", str(event.packet)))
            elif isinstance(event, RuleVisited | RulesSkipped):
                if not roots:
                    roots.append(_Node("hook", str(event.hook)))
                stack = _moved(stack, roots[-1], (event.table.value, event.chain))
                if isinstance(event, RuleVisited) and event.matched:
                    self._matched(event.rule, stack)
            elif isinstance(event, PolicyApplied) and event.policy is Policy.DROP and roots:
                (stack[0] if stack else roots[-1]).below.append(
                    _Node("decides", f"policy of {event.table} {event.hook}", "DROP")
                )
            elif isinstance(event, Ended):
                verdict, _, rest = event_text(event, self._family).removeprefix("end: ").partition(" — ")
                roots.append(_Node("end", verdict, rest))
        for root in roots:
            self._fold(root)
        return _placed(roots)

    def _matched(self, rule: Rule, stack: list[_Node]) -> None:
        """Add the chain that a rule leads to, or its decision."""
        service = self._service_of(rule.origin.line)
        line = f"line {rule.origin.line}" if rule.origin.line else ""
        note = ": ".join(filter(None, (line, service)))
        caller = stack[-1]
        if rule.callee is not None:
            assert caller.key is not None
            callee = _Node("chain", rule.callee, note, key=(caller.key[0], rule.callee))
            caller.below.append(callee)
            caller.taken.add(rule.callee)
            stack.append(callee)
        elif decides(rule):
            effect = match_text(rule, self._family).removeprefix("yes: ")
            caller.below.append(_Node("decides", effect, note))

    def _fold(self, node: _Node) -> None:
        """Add one box for all chains that the rules of each chain lead to and the packet did not take."""
        pending = [node]
        while pending:
            at = pending.pop()
            pending += at.below
            if at.key is None:
                continue
            others = self._leads_to(at.key).text(without=at.taken)
            if others:
                at.below.append(_Node("folded", others, "not taken"))

    def _leads_to(self, key: tuple[str, str]) -> Stems:
        if key not in self._callees:
            table, name = key
            chain = self._tables[table].chain(name)
            rules = () if chain is None else chain.rules
            self._callees[key] = Stems(rule.callee for rule in rules if rule.callee is not None)
        return self._callees[key]


def _moved(stack: list[_Node], root: _Node, key: tuple[str, str]) -> list[_Node]:
    """Return the stack up to the chain of a rule; a chain that is not on the stack begins a new one."""
    depths = [depth for depth, node in enumerate(stack) if node.key == key]
    if depths:
        return stack[: depths[-1] + 1]
    base = _Node("chain", " ".join(key), key=key)
    root.below.append(base)
    return [base]


def observed_drawing(hops: Iterable[Hop]) -> Drawing:
    """Return the drawing of a path of which only the outcome was observed."""
    roots: list[_Node] = []
    for hop in hops:
        if hop.kind in ("hook", "end") or not roots:
            text, _, rest = hop.text.removeprefix("end: ").partition(", as ")
            roots.append(_Node(hop.kind, text, f"as {rest}" if rest else hop.note))
        else:
            roots[-1].below.append(_Node("decides" if hop.decides else "folded", hop.text, hop.note))
    return _placed(roots)


def _placed(roots: Iterable[_Node]) -> Drawing:
    """Return the boxes from top to bottom, each with an edge from the box that leads to it."""
    boxes: list[Box] = []
    edges: list[Edge] = []
    y, previous = 0, None
    for depth, node, parent in _rows(roots):
        x = min(depth, _DEEPEST) * _INDENT
        height = _HIGH if node.note else _LOW
        boxes.append(_box(node, x, y, height))
        middle = y + height // 2
        if parent is not None:
            at = boxes[parent]
            edges.append(Edge(at.x + _GAP, at.y + at.height, middle, x, taken=node.kind != "folded"))
        elif previous is not None:
            at = boxes[previous]
            edges.append(Edge(_GAP // 2, at.y + at.height, y, _GAP // 2, taken=True))
        if parent is None:
            previous = len(boxes) - 1
        y += height + _GAP
    return Drawing(_WIDTH, max(y - _GAP, 0) + 1, tuple(boxes), tuple(edges))


def _rows(roots: Iterable[_Node]) -> Iterator[tuple[int, _Node, int | None]]:
    """Yield each node with its depth, and the number of its parent's row, parents before children."""
    pending: list[tuple[int, _Node, int | None]] = [(0, root, None) for root in reversed(tuple(roots))]
    number = 0
    while pending:
        depth, node, parent = pending.pop()
        yield depth, node, parent
        pending += [(depth + 1, below, number) for below in reversed(node.below)]
        number += 1


def _box(node: _Node, x: int, y: int, height: int) -> Box:
    text, note = plain(node.text), plain(node.note)
    room = _WIDTH - x - 14
    shown, small = _cut(text, int(room / _LETTER)), _cut(note, int(room / _SMALL))
    width = min(room, max(int(len(shown) * _LETTER), int(len(small) * _SMALL))) + 13
    title = f"{text}: {note}" if (shown, small) != (text, note) and note else text
    return Box(node.kind, shown, small, title if (shown, small) != (text, note) else "", x, y, width, height)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
