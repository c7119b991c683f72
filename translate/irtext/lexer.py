"""Words of one line of text, and a cursor over them that reports errors with their column."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Final, TypeVar

from translate.dataclass import dataclass

__all__ = ["Cursor", "TextError", "Token", "escaped", "quoted", "scan", "unescaped", "word"]

_TOKEN: Final = re.compile(r'\s*(?:(?P<string>"(?:[^"\\]|\\.)*")|(?P<mark>[{}(),])|(?P<word>[^\s"#{}(),]+))')
_BARE: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./:@%-]*\Z")
_ESCAPE: Final = re.compile(r'\\(?:u\{([0-9a-f]{1,6})\}|(["\\])|.?)')

_Member = TypeVar("_Member", bound=StrEnum)


class TextError(Exception):
    """Text that cannot be read; ``column`` counts from 1. The parser adds the line (ParseError)."""

    def __init__(self, column: int, message: str) -> None:
        self.column = column
        self.message = message
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class Token:
    """A word, a quoted string without its quotes, or one of ``{ } ( ) ,``."""

    text: str
    column: int
    is_string: bool = False


def scan(line: str) -> tuple[list[Token], int]:
    """Return the tokens of a line, and the index of the ``#`` after them, or the line's length.

    Raises TextError for a quote that is not closed or an unknown escape.
    """
    tokens: list[Token] = []
    at = 0
    while match := _TOKEN.match(line, at):
        kind = str(match.lastgroup)
        text = match[kind]
        column = match.start(kind) + 1
        if kind == "string":
            tokens.append(Token(unescaped(text[1:-1], column + 1), column, is_string=True))
        else:
            tokens.append(Token(text, column))
        at = match.end()
    rest = line[at:].lstrip()
    end = len(line) - len(rest)
    if rest.startswith('"'):
        raise TextError(end + 1, "a quote that is not closed")
    return tokens, end


def escaped(text: str) -> str:
    """Return ``text`` with unprintable characters and spaces at the ends as ``\\u{hex}``."""
    last = len(text) - 1
    return "".join(
        f"\\{c}" if c == "\\"
        else c if c.isprintable() and not (c == " " and at in (0, last))
        else f"\\u{{{ord(c):x}}}"
        for at, c in enumerate(text)
    )  # fmt: skip


def unescaped(text: str, column: int) -> str:
    """Undo :func:`escaped`; the text starts at ``column``. Raises TextError."""

    def replaced(escape: re.Match[str]) -> str:
        code, literal = escape.groups()
        if literal is not None:
            return str(literal)
        if code is None or int(code, 16) > 0x10FFFF:
            raise TextError(column + escape.start(), 'an unknown escape; there are \\\\, \\" and \\u{hex}')
        return chr(int(code, 16))

    return _ESCAPE.sub(replaced, text)


def quoted(text: str) -> str:
    """Return ``text`` as a quoted string."""
    return '"' + escaped(text).replace('"', '\\"') + '"'


def word(text: str) -> str:
    """Return a name, quoted if it would not be read as one word."""
    return text if _BARE.match(text) else quoted(text)


@dataclass(slots=True)
class Cursor:
    """The tokens of a line and the index of the next token; ``end`` is the column after the last."""

    tokens: list[Token]
    end: int
    at: int = 0

    @property
    def column(self) -> int:
        """The column of the next token."""
        return self.tokens[self.at].column if self.at < len(self.tokens) else self.end

    @property
    def is_done(self) -> bool:
        """Return whether no token is left."""
        return self.at == len(self.tokens)

    def peek(self, *texts: str) -> bool:
        """Return whether the next token is one of these words or marks."""
        if self.at == len(self.tokens):
            return False
        token = self.tokens[self.at]
        return not token.is_string and token.text in texts

    def has(self, text: str) -> bool:
        """Return whether this word or mark is among the remaining tokens."""
        return any(token.text == text and not token.is_string for token in self.tokens[self.at :])

    def take(self, *texts: str) -> bool:
        """Skip the next token if it is one of these words or marks, and return whether it was."""
        is_next = self.peek(*texts)
        self.at += is_next
        return is_next

    def expect(self, text: str) -> None:
        """Skip the token ``text``. Raises TextError if the next token is another."""
        if not self.take(text):
            raise self.fault(f"expected {text}")

    def next(self, expected: str) -> Token:
        """Return the next word or string. Raises TextError with ``expected`` in its message."""
        if self.at == len(self.tokens) or (self.peek("{", "}", "(", ")", ",")):
            raise self.fault(f"expected {expected}")
        self.at += 1
        return self.tokens[self.at - 1]

    def number(self, expected: str, *, most: int | None = None) -> int:
        """Return the next word as a number of at most ``most``: decimal, or hexadecimal with ``0x``."""
        token = self.next(expected)
        return number(token.text, token.column, expected, most=most)

    def signed(self, expected: str) -> int:
        """Return the next word as a decimal number, which may be negative."""
        token = self.next(expected)
        digits = token.text.removeprefix("-")
        value = number(digits, token.column + len(token.text) - len(digits), expected)
        return value if digits == token.text else -value

    def member(self, kind: type[_Member]) -> _Member:
        """Return the next word as a member of ``kind``."""
        for member in kind:
            if self.take(member.value):
                return member
        raise self.fault(f"expected {' or '.join(kind)}")

    def finish(self) -> None:
        """Raise TextError if a token is left."""
        if not self.is_done:
            raise self.fault("expected nothing more on this line")

    def fault(self, message: str) -> TextError:
        """Return an error that names the next token and its column."""
        if self.is_done:
            return TextError(self.column, f"{message}, found the end of the line")
        return TextError(self.column, f"{message}, found {self.tokens[self.at].text!r}")


def number(text: str, column: int, expected: str, *, most: int | None = None) -> int:
    """Return a number of at most ``most``: decimal, or hexadecimal with ``0x``. Raises TextError."""
    if not re.fullmatch(r"[0-9]{1,40}|0x[0-9a-f]{1,64}", text):
        raise TextError(column, f"expected {expected}, found {text!r}")
    value = int(text, 16) if text.startswith("0x") else int(text)
    if most is not None and value > most:
        raise TextError(column, f"{text} is more than {most}")
    return value
