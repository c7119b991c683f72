"""Rendering of pages: templates with escaped values, and a policy that allows only their style and script.

A page is ASCII: other characters are written as references. So it has the same bytes and meaning in every
encoding of standard output.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from harness.report.terminal import plain
from nfparity.report.pages.svg import svg

if TYPE_CHECKING:
    from jinja2 import Environment

__all__ = ["LAZY_FROM", "render"]

LAZY_FROM: Final = 250
"""The number of findings that are elements of the page from the start, with their details.

Later ones are text in ``noscript`` elements, which a browser with scripts does not parse before they come
near the screen; without scripts they are elements, too. Their details are made when they are opened.
"""
_CHUNK: Final = 50
"""The number of findings that a browser lays out together, when they come near the screen."""

_FOLDER: Final = Path(__file__).parent


def render(template: str, values: Mapping[str, object]) -> str:
    """Return a page as ASCII text."""
    page = _environment().get_template(template).render(**values, lazy_from=LAZY_FROM, chunk_of=_CHUNK)
    return page.encode("ascii", "xmlcharrefreplace").decode("ascii")


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(_FOLDER, encoding="utf-8"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=_visible,
    )
    style, script = ((_FOLDER / name).read_text(encoding="ascii") for name in ("page.css", "page.js"))
    environment.globals |= {
        "style": style,
        "script": script,
        "policy": "; ".join(
            (
                "default-src 'none'",
                f"script-src {_hash(script)}",
                f"style-src {_hash(style)}",
                "base-uri 'none'",
                "form-action 'none'",
            )
        ),
        "interned": _interned,
        "svg": svg,
    }
    return environment


def _visible(value: Any) -> Any:
    """Return a value for a template; texts from outside are printable and on one line."""
    return plain(value) if isinstance(value, str) and not hasattr(value, "__html__") else value


def _hash(source: str) -> str:
    """Return the source expression of an inline script or style (CSP level 3, section 2.3.1)."""
    digest = hashlib.sha256(source.encode("ascii")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"


def _interned(bodies: list[str]) -> Any:
    """Return escaped HTML texts as JSON for a script element, with each different line once."""
    from jinja2.utils import htmlsafe_json_dumps

    numbers: dict[str, int] = {}
    findings = [[numbers.setdefault(line, len(numbers)) for line in body.splitlines()] for body in bodies]
    return htmlsafe_json_dumps({"lines": list(numbers), "findings": findings}, separators=(",", ":"))
