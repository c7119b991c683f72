"""Man pages of commands, in the macros of man(7)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from nfparity.manual.commands import Command, Option

__all__ = ["man_page", "page_name"]

_SECTION: Final = "1"
_EXAMPLE: Final = "example:"
_STATUS: Final = "exit status: "


def page_name(command: Command) -> str:
    """Return the name of a command's page, such as ``nfparity-migrate-plan``."""
    return "-".join(command.path)


def man_page(command: Command, root: Command, version: str) -> str:
    """Return the page of a command of the program ``root``."""
    return "".join(f"{line}\n" for line in _lines(command, root, version))


def _lines(command: Command, root: Command, version: str) -> Iterator[str]:
    name = page_name(command)
    yield f'.TH {name.upper()} {_SECTION} "" "nfparity {version}" "nfparity"'
    yield ".SH NAME"
    yield f"{_escape(name)} \\- {_escape(command.summary)}"
    yield ".SH SYNOPSIS"
    yield ".nh"
    yield ".ad l"
    yield _escape(command.usage)
    yield ".hy"
    yield ".ad"
    yield ".SH DESCRIPTION"
    blocks = command.epilog.strip("\n").split("\n\n")
    described = [block for block in blocks if not block.startswith((_EXAMPLE, _STATUS))]
    for block in (_sentence(command.description), *described):
        yield from _paragraph(block)
    for group in command.groups:
        yield f".SH {_escape(group.title.upper().removeprefix('POSITIONAL '))}"
        for option in group.options:
            yield from _option(option)
    if command.actions:
        yield ".SH COMMANDS"
        for action in command.actions:
            yield ".TP"
            yield f"\\fB{_escape(page_name(action))}\\fR({_SECTION})"
            yield _text(action.summary)
    for block in blocks:
        if block.startswith(_STATUS):
            yield ".SH EXIT STATUS"
            yield from _paragraph(_sentence(block.removeprefix(_STATUS)))
        if block.startswith(_EXAMPLE):
            yield ".SH EXAMPLES"
            yield from _verbatim(block.splitlines()[1:])
    others = [other for other in root.walk() if _related(other, command)]
    if others:
        yield ".SH SEE ALSO"
        yield ", ".join(f"\\fB{_escape(page_name(other))}\\fR({_SECTION})" for other in others)


def _related(other: Command, command: Command) -> bool:
    """Return whether a page refers to another page: one above it, or a page with the same page above it."""
    if other is command:
        return False
    above = command.path[: len(other.path)] == other.path
    return above or (len(command.path) > 1 and other.path[:-1] == command.path[:-1])


def _option(option: Option) -> Iterator[str]:
    yield ".TP"
    spellings = ", ".join(f"\\fB{_escape(spelling)}\\fR" for spelling in option.spellings)
    yield " ".join(filter(None, (spellings, _escape(option.value))))
    yield _text(option.help)


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:].removesuffix('.')}."


def _paragraph(block: str) -> Iterator[str]:
    """Yield a block as filled text; or unchanged if some line is indented or aligned (a table or session)."""
    lines = block.splitlines()
    if any(line.startswith("  ") for line in lines):
        yield from _verbatim(lines)
    elif lines:
        yield ".PP"
        yield from map(_text, lines)


def _verbatim(lines: list[str]) -> Iterator[str]:
    yield ".PP"
    yield ".nf"
    yield from map(_text, lines)
    yield ".fi"


def _text(line: str) -> str:
    """Return a line with a dot or apostrophe at its start escaped, which would otherwise be a request."""
    escaped = _escape(line)
    return f"\\&{escaped}" if escaped.startswith((".", "'")) else escaped


def _escape(text: str) -> str:
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    return "".join(c if c.isascii() else f"\\[u{ord(c):04X}]" for c in escaped)
