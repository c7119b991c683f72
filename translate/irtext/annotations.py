"""Origins as text at the end of a line: ``# 12: -A INPUT -j DROP``, ``# "other file":3:7``.

The line number stands alone if the column is 1 and the file is that of the Program (or the set). A plus after
it (``# 12+``) means that the node was made from several such lines. A line without an annotation has the
origin ``NOWHERE``.
"""

from __future__ import annotations

import re
from typing import Final

from translate.ir import NOWHERE, Origin
from translate.irtext.lexer import TextError, escaped, quoted, unescaped

__all__ = ["format_origin", "parse_origin"]

_ANNOTATION: Final = re.compile(
    r'#\s*(?:"(?P<file>(?:[^"\\]|\\.)*)"(?::(?=[0-9])|(?=\s*\Z|: )))?'
    r"(?P<line>[0-9]+)?(?::(?P<column>[0-9]+))?(?P<several>\+)?(?:: (?P<text>.*?))?\s*\Z"
)


def format_origin(origin: Origin, file: str) -> str:
    """Return the annotation for ``origin``, with a file name unless it is ``file``; empty for ``NOWHERE``."""
    if origin == NOWHERE:
        return ""
    place = "" if origin.file == file else quoted(origin.file)
    if not place or origin.line or origin.column:
        place += f":{origin.line}" if place else str(origin.line)
    if origin.column != min(origin.line, 1):
        place += f":{origin.column}"
    if origin.several:
        place += "+"
    return f"# {place}: {escaped(origin.text)}" if origin.text else f"# {place}"


def parse_origin(annotation: str, file: str, column: int) -> Origin:
    """Return the origin for an annotation of :func:`format_origin` that starts at ``column``.

    Raises TextError.
    """
    if not annotation:
        return NOWHERE
    match = _ANNOTATION.match(annotation)
    if match is None or (match["file"] is None and match["line"] is None):
        raise TextError(column, "expected the line number of the origin, such as # 12 or # 12: -A INPUT")
    line = int(match["line"] or 0)
    text = match["text"] or ""
    return Origin(
        file if match["file"] is None else unescaped(match["file"], column + match.start("file")),
        line,
        min(line, 1) if match["column"] is None else int(match["column"]),
        unescaped(text, column + match.start("text")) if text else "",
        several=match["several"] is not None,
    )
