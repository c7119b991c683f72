"""Sessions in the pages of the documentation: commands after a prompt, each with the output shown.

In the output, a line of ``…`` stands for any number of lines, and ``…`` within a line for any text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = ["Command", "Example", "examples", "first_mismatch"]

_BLOCK: Final = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_PROMPT: Final = re.compile(r"[$#] (?=[a-z.])")
_PROGRESS: Final = re.compile(r"nfparity: .*\bso far\b")
_DURATION: Final = re.compile(r"\btook \d+ s\b")
_ANY: Final = "…"


@dataclass(frozen=True, slots=True)
class Command:
    """A command of a session, and the output that the page shows; ``()`` if it shows none."""

    text: str
    shown: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Example:
    """A fenced block of a page. ``commands`` are those after a prompt: it is a session if there are any."""

    page: str
    line: int
    language: str
    text: str
    commands: tuple[Command, ...]

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def examples(root: Path, page: str) -> Iterator[Example]:
    """Yield the fenced blocks of a page."""
    text = (root / page).read_text(encoding="utf-8")
    for match in _BLOCK.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        yield Example(page, line, match[1], match[2], tuple(_commands(match[2])))


def _commands(block: str) -> Iterator[Command]:
    command, shown = "", list[str]()
    for line in block.splitlines():
        if prompt := _PROMPT.match(line):
            if command:
                yield Command(command, tuple(shown))
            command, shown = line[prompt.end() :], []
        elif command.endswith("\\"):
            command = f"{command}\n{line}"
        elif command:
            shown.append(line)
    if command:
        yield Command(command, tuple(shown))


def first_mismatch(shown: Sequence[str], output: str) -> str | None:
    """Return the first part of the shown lines that the output does not have in this order, or None.

    Lines of progress depend on the speed of the machine and are left out, and durations are equal.
    """
    lines = [_equal(line) for line in output.splitlines() if not _PROGRESS.match(line)]
    start, free = 0, False
    for part in (*_parts(shown), None):
        if part is None:
            rest = lines[start:]
            return None if free or not rest else f"the output has more lines: {rest[0]}"
        if not part:
            free = True
            continue
        patterns = [_pattern(line) for line in part]
        places = range(start, len(lines) - len(part) + 1) if free else (start,)
        place = next((at for at in places if _is_at(patterns, lines[at : at + len(part)])), None)
        if place is None:
            return "\n".join(part)
        start, free = place + len(part), False
    return None


def _parts(shown: Sequence[str]) -> Iterator[list[str]]:
    """The groups of consecutive lines, and ``[]`` for each line of ``…``."""
    part: list[str] = []
    for line in shown:
        if line.strip() != _ANY:
            part.append(_equal(line))
            continue
        if part:
            yield part
        yield (part := [])
        part = []
    if part:
        yield part


def _equal(line: str) -> str:
    return _DURATION.sub("took some time", line.rstrip())


def _pattern(line: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, line.split(_ANY))))


def _is_at(patterns: Sequence[re.Pattern[str]], lines: Sequence[str]) -> bool:
    return len(patterns) == len(lines) and all(
        pattern.fullmatch(line) for pattern, line in zip(patterns, lines, strict=True)
    )
