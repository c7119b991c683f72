"""A line of ``iptables-save`` text as words, with iptables' own quoting.

The rules are those of ``add_param_to_argv`` (iptables ``xshared.c``): words end at blanks; between double
quotes a backslash makes the next character literal; the closing quote also ends the word. Outside double
quotes a backslash and a single quote are ordinary characters.
"""

from __future__ import annotations

import re

from translate.dataclass import dataclass

__all__ = ["QuoteError", "Word", "escaped", "quote", "scan", "split"]

_WORD = re.compile(r'([^ \t"]*+)"((?:[^"\\]++|\\.)*+)("?)|([^ \t"]++)')
_ESCAPE = re.compile(r"\\(.)")
_PLAIN = re.compile(r"[-_0-9A-Za-z]+\Z")
_SPECIAL = re.compile(r"([\"'\\])")


class QuoteError(Exception):
    """A double quote that is opened and never closed; ``column`` counts from 1."""

    def __init__(self, column: int) -> None:
        self.column = column
        super().__init__(column)


@dataclass(frozen=True, slots=True)
class Word:
    """An unquoted word and the column (from 1) at which it starts in its line."""

    text: str
    column: int


def scan(line: str) -> list[Word]:
    """Return the words of a line with their columns; raises QuoteError."""
    words = []
    for match in _WORD.finditer(line):
        lead, quoted, closing, plain = match.groups()
        if plain is not None:
            words.append(Word(plain, match.start() + 1))
        elif not closing:
            raise QuoteError(match.end(1) + 1)
        else:
            words.append(Word(lead + _ESCAPE.sub(r"\1", quoted), match.start() + 1))
    return words


def split(line: str) -> list[str]:
    """Return the words of a line without their columns; raises QuoteError.

    The same as :func:`scan`, but faster for nearly all lines: those without quotes, or with one quoted word
    without a backslash.
    """
    if "\t" not in line and "  " not in line:
        pieces = line.split('"')
        if len(pieces) == 1:
            words = line.split(" ")
            return words if words[0] and words[-1] else [word for word in words if word]
        if len(pieces) == 3 and "\\" not in pieces[1] and pieces[0].endswith(" "):
            tail = pieces[2]
            words = pieces[0][:-1].split(" ")
            words.append(pieces[1])
            if tail:
                words.extend(tail.split(" ") if tail[0] != " " else tail[1:].split(" "))
            return words if words[0] and words[-1] else [word.text for word in scan(line)]
    return [word.text for word in scan(line)]


def quote(text: str) -> str:
    """Return ``text`` as ``xtables_save_string`` prints it: bare when plain, otherwise quoted."""
    if _PLAIN.match(text):
        return text
    return f'"{escaped(text)}"'


def escaped(text: str) -> str:
    """Return ``text`` escaped for double quotes."""
    return _SPECIAL.sub(r"\\\1", text)
