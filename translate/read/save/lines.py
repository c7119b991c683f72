"""Lines of ``iptables-save`` with their tables, for callers that do not read the rules."""

from __future__ import annotations

from collections.abc import Iterator

__all__ = ["lines_by_table"]


def lines_by_table(text: str) -> Iterator[tuple[str, str]]:
    """Yield each line with the name of its table, or an empty name outside of tables.

    A table begins with ``*name`` and ends with ``COMMIT``; both lines belong to it. Only a line feed ends a
    line, because the comment of a rule may contain any other character.
    """
    table = ""
    for line in text.split("\n"):
        if line.startswith("*"):
            table = line[1:]
        yield table, line
        if line == "COMMIT":
            table = ""
