"""Operators that make faults: changes of a line of text in one place."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from tests.lab.mutation.fault import Fault, Place

__all__ = ["Change", "Operators", "each", "each_named", "faults_at", "removed"]

Change = Callable[[str], Sequence[str | None]]
"""The changed lines that an operator makes from a line; None removes the line."""

Operators = Sequence[tuple[str, Change]]
"""Kinds of faults, each with its operator."""


def each(pattern: str, replacement: Callable[[re.Match[str]], str | None]) -> Change:
    """Return an operator that replaces each match of ``pattern`` outside quotes, one at a time.

    ``replacement`` returns None where the match is no place for the fault.
    """
    compiled = re.compile(pattern)

    def change(line: str) -> Sequence[str | None]:
        quoted = [m.span() for m in re.finditer(r'"[^"]*"', line)]
        changes = []
        for match in compiled.finditer(line):
            if any(start < match.end() and match.start() < end for start, end in quoted):
                continue
            new = replacement(match)
            if new is not None:
                changes.append(line[: match.start()] + new + line[match.end() :])
        return changes

    return change


_COMMENT = re.compile(r'comment "[^"]*"')


def each_named(pattern: str, replacement: Callable[[re.Match[str]], str | None]) -> Change:
    """Return an operator like :func:`each` for patterns with names in quotes; comments stay as they are."""
    compiled = re.compile(pattern)

    def change(line: str) -> Sequence[str | None]:
        comment = _COMMENT.search(line)
        end = len(line) if comment is None else comment.start()
        changes = []
        for match in compiled.finditer(line):
            new = replacement(match) if match.end() <= end else None
            if new is not None:
                changes.append(line[: match.start()] + new + line[match.end() :])
        return changes

    return change


def removed(line: str) -> Sequence[str | None]:
    """The operator that removes the line."""
    return [None]


def faults_at(place: Place, operators: Operators) -> Iterator[Fault]:
    """Yield the faults of one line; equal results of two operators are one fault."""
    texts: set[str | None] = {place.text}
    for operator, change in operators:
        for after in change(place.text):
            if after not in texts:
                texts.add(after)
                yield Fault(operator=operator, place=place, after=after)
