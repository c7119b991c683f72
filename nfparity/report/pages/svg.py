"""Drawings as SVG elements of a page. A template would take twice the time for a page of findings.

Every box has its own coordinates, so that boxes that are repeated on a page are stored once. ``page.css`` has
the colours.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from nfparity.report.pages.content import Box, Drawing

__all__ = ["svg"]

_NAME = "The chains of this path; the list below has them in words"


def svg(drawing: Drawing) -> str:
    """Return an element, which is safe in a template: the texts of boxes are escaped."""
    return "\n".join(_lines(drawing))


def _lines(drawing: Drawing) -> Iterator[str]:
    width, height = drawing.width, drawing.height
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    yield f'<svg class="drawing" role="img" aria-label="{_NAME}" {size}>'
    for edge in drawing.edges:
        kind = "edge" if edge.taken else "edge untaken"
        to = f"H{edge.end}" if edge.end > edge.x else ""
        yield f'<path class="{kind}" d="M{edge.x} {edge.top}V{edge.bottom}{to}"></path>'
    for box in drawing.boxes:
        yield from _box(box)
    yield "</svg>"


def _box(box: Box) -> Iterator[str]:
    yield f'<g class="box {box.kind}-box" transform="translate({box.x} {box.y})">'
    if box.title:
        yield f"<title>{escape(box.title)}</title>"
    yield f'<rect x="0.5" y="0.5" width="{box.width}" height="{box.height}" rx="4"></rect>'
    yield f'<text x="7" y="16">{escape(box.text)}</text>'
    if box.note:
        yield f'<text class="small" x="7" y="32">{escape(box.note)}</text>'
    yield "</g>"
