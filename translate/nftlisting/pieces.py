"""nft text split at newlines and semicolons, outside of braces and quotes.

Words are split as by nft's scanner (``src/scanner.l``): a string is between two double quotes on one line and
has no escapes, ``#`` outside of a string begins a comment, a backslash before a newline joins lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from translate.dataclass import dataclass
from translate.errors import Diagnostic, ParseError
from translate.ir import Origin

__all__ = ["Block", "Piece", "pieces"]

_MARK: Final = re.compile(r'"[^"\n]*"|"|#[^\n]*|\\\n|[{};\n]')
_OPENING: Final = re.compile(r'[^"{]*\{')
_UNEVEN: Final = re.compile(r"[^\S ]|  ")
_STRING: Final = re.compile(r'"[^"\n]*"')
_SPACES: Final = re.compile(r'("[^"\n]*")|\s+')


@dataclass(frozen=True, slots=True)
class Block:
    """A piece that ends with a block in braces: the text before the braces, and the pieces in them."""

    head: tuple[str, ...]
    body: Piece


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a text without its comments; ``line`` is where it begins."""

    text: str
    line: int
    source: str

    @property
    def flat(self) -> str:
        """The piece on one line."""
        if not _UNEVEN.search(self.text):
            return self.text.strip()
        return _SPACES.sub(lambda m: m[1] or " ", self.text).strip()

    @property
    def unquoted(self) -> str:
        """The piece on one line, with empty strings."""
        return _STRING.sub('""', self.flat) if '"' in self.text else self.flat

    @property
    def words(self) -> tuple[str, ...]:
        """Return the words before the first brace or quote."""
        return tuple(re.split(r'[{"]', self.text, maxsplit=1)[0].split())

    @property
    def origin(self) -> Origin:
        """The origin of the piece, with its first line."""
        return Origin(self.source, self.line, 0, self.text.partition("\n")[0])

    def block(self) -> Block | None:
        """Return head and body if the piece has braces before any string, otherwise None."""
        match = _OPENING.match(self.text)
        if match is None:
            return None
        opening = match.end() - 1
        inner = self.text[opening + 1 : self.text.rindex("}")]
        line = self.line + self.text.count("\n", 0, opening)
        return Block(tuple(self.text[:opening].split()), Piece(inner, line, self.source))


def pieces(whole: Piece) -> Iterator[Piece]:
    """Yield the statements and blocks of a text or of the body of a block.

    Raises ParseError at a brace or a quote without its counterpart.
    """
    text, line = whole.text, whole.line
    kept: list[str] = []
    opened: list[int] = []
    at = 0
    first = line
    for mark in _MARK.finditer(text):
        kept.append(text[at : mark.start()])
        at = mark.end()
        match mark[0]:
            case "{":
                opened.append(line)
                kept.append("{")
            case "}":
                if not opened:
                    raise _fault(whole, line, "this brace closes nothing")
                opened.pop()
                kept.append("}")
            case '"':
                raise _fault(whole, line, "this string has no end on its line")
            case "\\\n":
                kept.append(" \n" if opened else " ")
                line += 1
            case "\n" | ";" as separator:
                if opened:
                    kept.append(separator)
                else:
                    yield from _piece(kept, first, whole.source)
                    kept = []
                line += separator == "\n"
                first = first if opened else line
            case other if other[0] == '"':
                kept.append(other)
    kept.append(text[at:])
    if opened:
        raise _fault(whole, opened[-1], "this brace is never closed")
    yield from _piece(kept, first, whole.source)


def _piece(kept: list[str], line: int, source: str) -> Iterator[Piece]:
    text = "".join(kept)
    stripped = text.strip()
    if stripped:
        lead = text[: len(text) - len(text.lstrip())]
        yield Piece(stripped, line + lead.count("\n"), source)


def _fault(whole: Piece, line: int, message: str) -> ParseError:
    source_line = whole.text.split("\n")[line - whole.line]
    return ParseError((Diagnostic(Origin(whole.source, line, 0, source_line), message),))
