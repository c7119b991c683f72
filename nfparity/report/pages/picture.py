"""The path of one packet as a picture: an SVG file that needs no page and fetches nothing."""

from __future__ import annotations

from html import escape
from typing import Final

from harness.explain.explain import Explanation
from nfparity.assess.node.index import ServiceIndex
from nfparity.kubeproxy import recover
from nfparity.report.pages.drawing import PathDrawer
from nfparity.report.pages.hops import service_names
from nfparity.report.pages.svg import svg

__all__ = ["explanation_picture"]

_MARGIN: Final = 16
_HEADING: Final = 30
"""The height of the line above the drawing, in pixels."""
_CHARACTER: Final = 9
"""The width of a character of this line, in pixels."""

_STYLE: Final = """\
svg {
  --text: #1c2128; --soft: #555d68; --card: #ffffff;
  --page: #f6f7f9; --accent: #0a53a8; --mark: #fff3c4;
}
@media (prefers-color-scheme: dark) {
  svg {
    --text: #e6e9ee; --soft: #a9b2bf; --card: #1a2027;
    --page: #12161b; --accent: #79b8ff; --mark: #453a12;
  }
}
.page { fill: var(--page); }
text { fill: var(--text); font: 12px ui-monospace, "DejaVu Sans Mono", monospace; white-space: pre; }
.heading { font-size: 15px; font-weight: 700; }
.small { font-size: 10.5px; }
.drawing rect { fill: var(--card); stroke: var(--accent); stroke-width: 1; }
.drawing .edge { fill: none; stroke: var(--accent); stroke-width: 2; }
.drawing .untaken { stroke: var(--soft); stroke-width: 1; stroke-dasharray: 3 3; }
.hook-box text:not(.small), .end-box text:not(.small) { font-weight: 700; }
.drawing .hook-box rect, .drawing .end-box rect { stroke-width: 2; }
.drawing .folded-box text { fill: var(--soft); }
.drawing .folded-box rect { stroke: var(--soft); stroke-dasharray: 3 3; }
.drawing .decides-box rect { fill: var(--mark); stroke: var(--text); stroke-width: 2; }
"""
"""The colours of ``page.css``, for a drawing by itself."""


def explanation_picture(explanation: Explanation) -> str:
    """Return the path of the packet on its likeliest branch as an SVG document."""
    ruleset = explanation.job.ruleset
    service_of = service_names(ServiceIndex.of(recover(ruleset)).lines, ruleset.family)
    branch = max(explanation.branches, key=lambda branch: branch.probability)
    drawing = PathDrawer(ruleset, service_of).draw(branch.steps[0])
    first = explanation.flow.first
    title = f"{first.packet}{f' in {first.entry}' if first.entry is not None else ', made on the node'}"
    width = max(drawing.width, _CHARACTER * len(title)) + 2 * _MARGIN
    height = drawing.height + _HEADING + 2 * _MARGIN
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}"'
        f' viewBox="0 0 {width} {height}" role="img" aria-labelledby="title">\n'
        f'<title id="title">{escape(title)}</title>\n<style>\n{_STYLE}</style>\n'
        f'<rect class="page" width="{width}" height="{height}"></rect>\n'
        f'<text class="heading" x="{_MARGIN}" y="{_MARGIN + 15}">{escape(title)}</text>\n'
        f'<g transform="translate({_MARGIN} {_MARGIN + _HEADING})">\n{svg(drawing)}\n</g>\n</svg>\n'
    )
