"""The chains of a ruleset as a picture: groups of chains as boxes, from left to right, and jumps as curves.

It is one SVG file without scripts that fetches nothing; its colours follow the reader's light or dark scheme.
A box of several chains has their number, and each curve the line of its rule or the number of its rules.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Final

from harness.counted import counted
from harness.explain.folding import Folded, Group, Link, folded
from harness.report.terminal import plain
from translate.dataclass import dataclass
from translate.errors import InputError
from translate.ir import Ruleset

__all__ = ["svg_text"]

_LETTER: Final = 7.3
"""The width of a letter, in pixels."""
_LOWEST: Final = 42
"""The height of a box without curves."""
_PORT: Final = 15
"""The height that each curve needs at its end."""
_GAP: Final = 16
_BETWEEN: Final = 120
"""The space between two columns, with the labels of the curves."""
_MARGIN: Final = 16
_HEADING: Final = 34
_LONGEST: Final = 44
"""The maximum number of letters of a box."""
_WAY: Final = 6
"""The height of a curve that passes a column."""
_SWEEPS: Final = 6
_NAMED: Final = 8
"""The number of chains of a group that its tooltip names."""

_STYLE: Final = """\
svg { color-scheme: light dark; background: #ffffff; color: #1c2128; }
text { font: 12px ui-monospace, "DejaVu Sans Mono", monospace; fill: currentcolor; white-space: pre; }
.heading { font-weight: 700; font-size: 15px; }
.note, .label { font-size: 10.5px; fill: #555d68; }
.label { text-anchor: end; paint-order: stroke; stroke: #ffffff; stroke-width: 3px; }
.name { font-weight: 700; }
rect { fill: #f6f7f9; stroke: #555d68; }
.built-in rect { fill: #e3eefb; stroke: #0a53a8; stroke-width: 2; }
.several rect { fill: #fff3c4; stroke: #7a4a00; }
.unused rect { stroke-dasharray: 4 3; }
path { fill: none; stroke: #0a53a8; stroke-width: 1.4; }
.goto { stroke-dasharray: 6 4; }
@media (prefers-color-scheme: dark) {
  svg { background: #12161b; color: #e6e9ee; }
  .note, .label { fill: #a9b2bf; }
  .label { stroke: #12161b; }
  rect { fill: #1a2027; stroke: #a9b2bf; }
  .built-in rect { fill: #10263f; stroke: #79b8ff; }
  .several rect { fill: #453a12; stroke: #f0be5a; }
  path { stroke: #79b8ff; }
}
"""


@dataclass(slots=True)
class _Place:
    """A box: its place in pixels, and the curves that end there, in their order, with their passages."""

    group: Group
    x: int
    y: int
    width: int
    height: int
    links: list[Link]
    ways: dict[Link, list[tuple[int, int, int]]]

    @property
    def bottom(self) -> int:
        """The lowest place of the box and of the curves that end at it."""
        return max([self.y + self.height, *(height for way in self.ways.values() for _, height, _ in way)])


def svg_text(ruleset: Ruleset, *, start: str | None = None) -> str:
    """Return the picture, with only ``start`` and the chains that it leads to if it is given.

    Raises InputError when there is no chain ``start``.
    """
    tables = folded(ruleset, start=start)
    if not tables and start is not None:
        raise InputError(f"no chain is called {start!r}")
    body: list[str] = []
    width, y = 0, _MARGIN + _HEADING + _GAP
    for table in tables:
        places = _placed(table, y + _HEADING)
        body += _drawn(table, places, y)
        width = max(width, *(place.x + place.width for place in places))
        y = max(place.bottom for place in places) + 2 * _GAP
    chains = counted(sum(table.chains for table in tables), "chain")
    boxes = counted(sum(len(table.groups) for table in tables), "box", "boxes")
    title = f"{ruleset.source}: {chains} in {boxes}"
    legend = "a curve has the line of its rule, or the number of its rules; dashed: all of them are gotos"
    width = max(width + _MARGIN, int(max(len(title), len(legend)) * 9.2))
    head = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{y + _MARGIN}"'
        f' viewBox="0 0 {width} {y + _MARGIN}" role="img" aria-labelledby="title">',
        f'<title id="title">{_shown(title)}</title>',
        f"<style>{_STYLE}</style>",
        f'<text class="heading" x="{_MARGIN}" y="{_MARGIN + 12}">{_shown(title)}</text>',
        f'<text class="note" x="{_MARGIN}" y="{_MARGIN + 30}">{legend}</text>',
    ]
    text = "\n".join([*head, *body, "</svg>"]) + "\n"
    return text.encode("ascii", "xmlcharrefreplace").decode("ascii")


def _placed(table: Folded, top: int) -> list[_Place]:
    """Return the boxes, each to the right of those that lead to it; curves pass between the boxes."""
    columns = _columns(table)
    rank = _Rows(table, columns)
    places: dict[int, _Place] = {}
    x = _MARGIN
    for items in rank.columns:
        y = top
        widest = max(_width(table.groups[item]) for item in items if item < len(columns))
        for item in items:
            if item >= len(columns):
                rank.ways[rank.links[item]].append((x, y + _WAY // 2, x + widest))
                y += _WAY + _GAP
                continue
            links = sorted(rank.entering[item], key=lambda link: rank.row[rank.last[link]])
            height = max(_LOWEST, _PORT * len(links) + 8)
            ways = {link: rank.ways[link] for link in links}
            places[item] = _Place(table.groups[item], x, y, widest, height, links, ways)
            y += height + _GAP
        x += widest + _BETWEEN
    return [places[number] for number in range(len(columns))]


class _Rows:
    """The order of boxes in each column, with a place for every curve that passes the column.

    The first items are the groups, by number; the others are places for curves (``links``). ``last`` is the
    item before the end of a curve. ``ways`` are the passages of a curve, from the left.
    """

    def __init__(self, table: Folded, columns: list[int]) -> None:
        self.columns: list[list[int]] = [[] for _ in range(max(columns) + 1)]
        for number, column in enumerate(columns):
            self.columns[column].append(number)
        self.links: dict[int, Link] = {}
        self.last: dict[Link, int] = {}
        self.entering: list[list[Link]] = [[] for _ in columns]
        self.ways: dict[Link, list[tuple[int, int, int]]] = {}
        before: dict[int, list[int]] = {}
        for link in table.links:
            at = link.caller
            for column in range(columns[link.caller] + 1, columns[link.callee]):
                item = len(columns) + len(self.links)
                self.links[item] = link
                self.columns[column].append(item)
                before[item] = [at]
                at = item
            before.setdefault(link.callee, []).append(at)
            self.last[link], self.ways[link] = at, []
            self.entering[link.callee].append(link)
        self.row = {item: row for items in self.columns for row, item in enumerate(items)}
        for _ in range(_SWEEPS):
            for items in self.columns[1:]:
                items.sort(
                    key=lambda item: (_middle([self.row[each] for each in before.get(item, ())]), item)
                )
                self.row.update((item, row) for row, item in enumerate(items))


def _columns(table: Folded) -> list[int]:
    """Return the column of each group: one more than the last of those that lead to it, without cycles."""
    below: list[list[int]] = [[] for _ in table.groups]
    for link in table.links:
        below[link.caller].append(link.callee)
    called = {link.callee for link in table.links}
    roots = [n for n in range(len(table.groups)) if n not in called]
    order: list[int] = []
    state = [0] * len(table.groups)  # 0: not seen, 1: on the path, 2: done
    forward: list[tuple[int, int]] = []
    for root in (*roots, *range(len(table.groups))):
        pending = [(root, iter(below[root]))] if not state[root] else []
        state[root] = state[root] or 1
        while pending:
            at, rest = pending[-1]
            following = next(rest, None)
            if following is None:
                state[at] = 2
                order.append(at)
                pending.pop()
                continue
            if state[following] != 1:
                forward.append((at, following))
            if not state[following]:
                state[following] = 1
                pending.append((following, iter(below[following])))
    columns = [0] * len(table.groups)
    after: dict[int, list[int]] = {}
    for caller, callee in forward:
        after.setdefault(caller, []).append(callee)
    for at in reversed(order):
        for callee in after.get(at, ()):
            columns[callee] = max(columns[callee], columns[at] + 1)
    return columns


def _middle(rows: list[int]) -> float:
    return sum(rows) / len(rows) if rows else 0.0


def _drawn(table: Folded, places: list[_Place], y: int) -> Iterator[str]:
    chains, boxes = counted(table.chains, "chain"), counted(len(places), "box", "boxes")
    heading = table.table if table.chains == len(places) else f"{table.table}: {chains} in {boxes}"
    yield f'<text class="heading" x="{_MARGIN}" y="{y + 16}">{_shown(heading)}</text>'
    for place in places:
        for port, link in enumerate(place.links):
            yield _curve(places[link.caller], place, port, link)
    for place in places:
        yield from _box(place, used=bool(place.links))
        for port, link in enumerate(place.links):
            label = (
                counted(link.rules, "rule") if link.rules > 1 else f"line {link.line}" if link.line else ""
            )
            yield f'<text class="label" x="{place.x - 4}" y="{_port(place, port) - 3}">{label}</text>'


def _port(place: _Place, number: int) -> int:
    """Return the height at which a curve ends."""
    return place.y + (place.height - _PORT * (len(place.links) - 1)) // 2 + _PORT * number


def _curve(caller: _Place, callee: _Place, port: int, link: Link) -> str:
    x, y = caller.x + caller.width, caller.y + caller.height // 2
    line = f"M{x} {y}"
    for left, height, right in (*callee.ways[link], (callee.x, _port(callee, port), callee.x)):
        bend = max(40, abs(left - x) // 3)
        line += f"C{x + bend} {y} {left - bend} {height} {left} {height}"
        line += f"H{right}" if right > left else ""
        x, y = right, height
    kind = ' class="goto"' if link.goto else ""
    return f'<path{kind} d="{line}"></path>'


def _box(place: _Place, *, used: bool) -> Iterator[str]:
    group = place.group
    kinds = ["built-in"] if group.chains[0].hook is not None else [] if used else ["unused"]
    kinds += ["several"] if len(group.chains) > 1 and group.chains[0].hook is None else []
    yield f'<g class="{" ".join(kinds)}" transform="translate({place.x} {place.y})">'
    named = ", ".join(chain.name for chain in group.chains[:_NAMED])
    more = f", … and {len(group.chains) - _NAMED} more" if len(group.chains) > _NAMED else ""
    yield f"<title>{_shown(named + more)}</title>"
    yield f'<rect width="{place.width}" height="{place.height}" rx="4"></rect>'
    yield f'<text class="name" x="8" y="17">{_shown(_cut(group.name))}</text>'
    yield f'<text class="note" x="8" y="33">{_shown(_cut(_note(group, used=used)))}</text>'
    yield "</g>"


def _note(group: Group, *, used: bool) -> str:
    chain = group.chains[0]
    rules = (
        counted(group.most, "rule") if group.fewest == group.most else f"{group.fewest} to {group.most} rules"
    )
    if len(group.chains) > 1 and chain.policy is None:
        each = " each" if group.fewest == group.most else ""
        inside = ", nested" if group.inside else ""
        return f"{counted(len(group.chains), 'chain')}, {rules}{each}{inside}"
    if chain.is_hidden:
        return "not shown in the input"
    if chain.policy is not None:
        return f"policy {chain.policy}, {rules}"
    return rules if used or chain.hook is not None else f"{rules}, no rule jumps to it"


def _width(group: Group) -> int:
    notes = (_cut(plain(group.name)), _cut(_note(group, used=False)))
    return int(max(map(len, notes)) * _LETTER) + 18


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _shown(text: str) -> str:
    return escape(plain(text))
