"""Tests of options and bytes as text: ``options destination.length "1:4,30"``, ``bytecode "1,6 0 0 0"``."""

from __future__ import annotations

from translate.ir import BytecodeTest, HeaderOptions
from translate.ir.bytecode import ProgramError, read_bytecode
from translate.irtext.lexer import Cursor, TextError, number, quoted
from translate.irtext.values import take_field

__all__ = ["format_options", "take_bytecode", "take_options"]

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


def take_bytecode(cursor: Cursor) -> BytecodeTest:
    """Read a program of BPF after its first word. Raises TextError."""
    token = cursor.next('a program such as "1,6 0 0 0"')
    try:
        return BytecodeTest(program=read_bytecode(token.text))
    except ProgramError as e:
        raise TextError(token.column, str(e)) from None
