"""``include`` in nft text, which is refused: the author of a ruleset could make root open any file.

nft accepts it wherever a statement is allowed, also in tables, chains, sets, maps and flowtables
(``common_block`` in ``parser_bison.y``), and opens FIFOs and devices, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from translate.errors import Diagnostic
from translate.ir import Origin

__all__ = ["include_faults"]

_TOKEN: Final = re.compile(r'"[^"\n]*"|#[^\n]*|[A-Za-z_.][A-Za-z0-9_./-]*')
"""Strings, comments and words, as nft's scanner reads them (``scanner.l``)."""
_MOST: Final = 20


def include_faults(text: str, name: str) -> Iterator[Diagnostic]:
    """Yield each place at which nft would read another file, or would read a word as ``include``."""
    if "include" not in text:
        return
    includes = (match for match in _TOKEN.finditer(text) if match[0] == "include")
    hint = "put its text in place of this line"
    for match, _ in zip(includes, range(_MOST), strict=False):
        start = text.rfind("\n", 0, match.start()) + 1
        end = text.find("\n", start)
        line = text.count("\n", 0, start) + 1
        place = Origin(name, line, match.start() - start + 1, text[start : end if end >= 0 else None])
        yield Diagnostic(place, "another file is included, which cannot be read here", hint)
