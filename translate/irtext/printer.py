"""Printing of a Program in its text form."""

from __future__ import annotations

from collections.abc import Iterator

from translate.ir import Apply, Choose, Family, Lookup, LoweredChain, Program, Statement
from translate.irtext.actions import format_actions
from translate.irtext.annotations import format_origin
from translate.irtext.ipsets import set_lines
from translate.irtext.lexer import quoted, word
from translate.irtext.matches import format_fields, format_test
from translate.irtext.values import format_value

__all__ = ["print_program"]

_INDENT = "    "

_Line = tuple[str, str]
"""A line and its annotation."""


def print_program(program: Program) -> str:
    """Return the text of ``program``; equal Programs with equal origins have equal texts."""
    source = f" {quoted(program.source)}" if program.source != "<none>" else ""
    known = ("" if program.tracked else " untracked") + (" reassembled" if program.reassembled else "")
    lines: list[_Line] = [(f"program {program.family}{known}{source}", "")]
    for ipset in program.sets:
        lines += [("", ""), *set_lines(ipset, program.source)]
    for chain in program.chains:
        lines += [("", ""), *_chain(chain, program)]
    return "".join(f"{text}  {origin}\n" if origin else f"{text}\n" for text, origin in lines)


def _chain(chain: LoweredChain, program: Program) -> Iterator[_Line]:
    head = f"chain {word(chain.name)}"
    head += "" if chain.hook is None else f" hook {chain.hook}"
    head += "" if chain.priority is None else f" priority {chain.priority}"
    head += "" if chain.policy is None else f" policy {chain.policy}"
    yield f"{head} {{", format_origin(chain.origin, program.source)
    for statement in chain.statements:
        for text, origin in _statement(statement, program.family, program.source):
            yield _INDENT + text, origin
    yield "}", ""


def _statement(statement: Statement, family: Family, file: str) -> Iterator[_Line]:
    tests = ", ".join(format_test(test, family) for test in statement.tests)
    head = f"{tests} -> " if tests else ""
    origin = format_origin(statement.origin, file)
    match statement:
        case Apply():
            yield head + format_actions(statement.actions, family), origin
        case Lookup():
            yield f"{head}lookup {format_fields(statement.fields)} {{", origin
            for entry in statement.entries:
                cells = zip(statement.fields, entry.key, strict=True)
                key = " . ".join(format_value(field, value, family) for field, value in cells)
                text = f"{_INDENT}{key} -> {format_actions(entry.actions, family)}"
                yield text, format_origin(entry.origin, file)
            yield "}", ""
        case Choose():
            yield f"{head}choose {'equal ' if statement.equal else ''}{{", origin
            for branch in statement.branches:
                text = f"{_INDENT}{branch.weight}/2^31 -> {format_actions(branch.actions, family)}"
                yield text, format_origin(branch.origin, file)
            yield "}", ""
