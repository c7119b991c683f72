"""Tests of options in headers as text: ``options destination.length "1:4,30"``."""

from __future__ import annotations

from translate.ir import HeaderOptions
from translate.irtext.lexer import Cursor, number, quoted
from translate.irtext.values import take_field

__all__ = ["format_options", "take_options"]

_BYTE = 0xFF


def format_options(test: HeaderOptions) -> str:
    """Return the text of a test of options."""
    listed = (str(kind) if length is None else f"{kind}:{length}" for kind, length in test.options)
    return f"options {test.header.text} {quoted(','.join(listed))}"


def take_options(cursor: Cursor) -> HeaderOptions:
    """Read a test of options after its first word. Raises TextError."""
    header = take_field(cursor)
    token = cursor.next('options such as "1:4,30"')
    options = []
    for word in token.text.split(","):
        kind, colon, length = word.partition(":")
        size = number(length, token.column, "a length", most=_BYTE) if colon else None
        options.append((number(kind, token.column, "an option", most=_BYTE), size))
    return HeaderOptions(header=header, options=tuple(options))
