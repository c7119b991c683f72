"""Plots as SVG: cost by number of services, with logarithmic axes.

The plots need only lines, circles and text. A plotting library would be the largest dependency of the
project.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Final
from xml.sax.saxutils import escape

__all__ = ["plot"]

_WIDTH, _HEIGHT = 760, 420
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 230, 40, 50
_COLOURS: Final = ("#888888", "#d62728", "#ff7f0e", "#8c564b", "#9467bd", "#1f77b4", "#17becf", "#2ca02c")
"""The colours of the lines in their order; further lines begin with the first colour again."""

Points = Sequence[tuple[float, float]]


def plot(title: str, unit: str, lines: Mapping[str, Points]) -> str:
    """Return an SVG document with one line per entry. Points that are not positive are omitted."""
    drawn = {name: [(x, y) for x, y in points if x > 0 and y > 0] for name, points in lines.items()}
    drawn = {name: points for name, points in drawn.items() if points}
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="sans-serif"'
        ' font-size="12">',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
        _text(_LEFT, 22, title, size=15),
    ]
    every = [point for points in drawn.values() for point in points]
    if every:
        scale = _Scale(every)
        parts += scale.grid(unit)
        for number, (name, points) in enumerate(drawn.items()):
            parts += _line(scale, number, name, points)
    return "\n".join([*parts, "</svg>", ""])


class _Scale:
    """Axes of whole decades around the points, and positions of points on the page."""

    def __init__(self, points: Points) -> None:
        self._x = _decades([x for x, _ in points])
        self._y = _decades([y for _, y in points])

    def at(self, x: float, y: float) -> tuple[float, float]:
        across = (math.log10(x) - self._x[0]) / (self._x[1] - self._x[0])
        up = (math.log10(y) - self._y[0]) / (self._y[1] - self._y[0])
        return (
            round(_LEFT + across * (_WIDTH - _LEFT - _RIGHT), 1),
            round(_HEIGHT - _BOTTOM - up * (_HEIGHT - _TOP - _BOTTOM), 1),
        )

    def grid(self, unit: str) -> Iterator[str]:
        bottom, right = _HEIGHT - _BOTTOM, _WIDTH - _RIGHT
        for decade in range(self._x[0], self._x[1] + 1):
            x, _ = self.at(10.0**decade, 10.0 ** self._y[0])
            yield f'<path d="M{x} {_TOP}V{bottom}" stroke="#dddddd"/>'
            yield _text(x, bottom + 18, f"{10**decade:,}" if decade >= 0 else f"{10.0**decade:g}", "middle")
        for decade in range(self._y[0], self._y[1] + 1):
            _, y = self.at(10.0 ** self._x[0], 10.0**decade)
            yield f'<path d="M{_LEFT} {y}H{right}" stroke="#dddddd"/>'
            yield _text(_LEFT - 6, y + 4, f"{10.0**decade:,g}", "end")
        yield _text((_LEFT + right) / 2, _HEIGHT - 12, "services", "middle")
        yield _text(_LEFT, _TOP - 4, unit)


def _decades(values: Sequence[float]) -> tuple[int, int]:
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return (low, high) if high > low else (low, low + 1)


def _line(scale: _Scale, number: int, name: str, points: Points) -> Iterator[str]:
    colour = _COLOURS[number % len(_COLOURS)]
    places = [scale.at(x, y) for x, y in points]
    joined = " ".join(f"{x},{y}" for x, y in places)
    yield f'<polyline points="{joined}" fill="none" stroke="{colour}" stroke-width="2"/>'
    for x, y in places:
        yield f'<circle cx="{x}" cy="{y}" r="3" fill="{colour}"/>'
    left, y = _WIDTH - _RIGHT + 16, _TOP + 14 + 20 * number
    yield f'<path d="M{left} {y - 4}h22" stroke="{colour}" stroke-width="2"/>'
    yield _text(left + 28, y, name)


def _text(x: float, y: float, text: str, anchor: str = "start", size: int = 12) -> str:
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}" font-size="{size}">{escape(text)}</text>'
