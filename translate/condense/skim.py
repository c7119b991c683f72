"""A large dump as blocks: the lines of each block, and their constants.

Lines of no known kind are only counted here; the reader of rules reads them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from translate.condense.blocks import Block, RuleLine, block_of, rule_line
from translate.dataclass import dataclass, field
from translate.ir import TABLE_HOOKS, Family, TableName
from translate.read.extensions import TARGETS, UNMODELLED_TARGETS

__all__ = ["BlockMatch", "SkimmedTable", "skim"]

_LONGEST: Final = 32
"""The maximum number of lines of a member's own chain; a chain with more lines is a shared chain."""

_MOST_KINDS: Final = 48
"""The maximum number of kinds of blocks in one table, and of kinds of lines in one shared chain."""

_TABLES: Final = frozenset(table.value for table in TableName)

_NEAR: Final = 32_768
_OFTEN: Final = 8
"""The maximum number of calls of a member's own chain within :data:`_NEAR` characters.

A chain with more calls is a shared chain.
"""

_DECLARATIONS: Final = re.compile(
    r"(?::[A-Za-z0-9_][!#-~]{0,27} (?:-|[A-Z]+) \[[0-9]{1,20}:[0-9]{1,20}\]\n)*"
)
_DECLARED: Final = re.compile(r":(\S+) (\S+)")
_CALLED: Final = re.compile(r" -[jg] ([^\s\"]+)")

BlockMatch = tuple[Block, int, tuple[str, ...]]
"""A block, the number of its first line, and its groups."""


@dataclass(slots=True)
class SkimmedTable:
    """The parts of one table.

    ``declared`` has the line of the declaration of each chain without a hook. ``blocks`` are the chains of a
    known kind by name. For each shared chain, ``entrances`` are its lines of a known kind, in order, and
    ``others`` the numbers of its other lines. ``called`` are the callees in lines of no known kind.
    """

    name: str
    declared: dict[str, int] = field(default_factory=dict)
    blocks: dict[str, BlockMatch] = field(default_factory=dict)
    entrances: dict[str, list[BlockMatch]] = field(default_factory=dict)
    others: dict[str, list[int]] = field(default_factory=dict)
    called: set[str] = field(default_factory=set)


def skim(text: str, family: Family) -> list[SkimmedTable] | None:
    """Return the tables of ``iptables-save`` text, or None for text in another form or order.

    iptables-save prints the lines of a chain together; if they are not, the result is None.
    """
    tables: list[SkimmedTable] = []
    at, number = 0, 1
    while at < len(text):
        end = text.find("\n", at) + 1
        if not end:
            return None
        if text.startswith("*", at):
            name = text[at + 1 : end - 1]
            if name not in _TABLES or any(name == table.name for table in tables):
                return None
            skimmed = _Skimmer(text, family, end, number + 1, SkimmedTable(name)).run()
            if skimmed is None:
                return None
            table, at, number = skimmed
            tables.append(table)
        elif text.startswith("#", at):
            at, number = end, number + 1
        else:
            return None
    return tables


@dataclass(slots=True)
class _Skimmer:
    """The state of a walk through one table."""

    text: str
    family: Family
    at: int
    number: int
    table: SkimmedTable
    kinds: list[Block] = field(default_factory=list)

    def run(self) -> tuple[SkimmedTable, int, int] | None:
        """Return the table, and the character and line at which it ends."""
        text, declared = self.text, self.table.declared
        head = _DECLARATIONS.match(text, self.at)
        assert head is not None
        hooks = {hook.value for hook in TABLE_HOOKS[TableName(self.table.name)]}
        for line, (name, policy) in enumerate(_DECLARED.findall(head[0]), self.number):
            if name in declared or name in TARGETS or name in UNMODELLED_TARGETS:
                return None
            if policy == "-" and name not in hooks:
                declared[name] = line
        self.number += head[0].count("\n")
        self.at = head.end()
        unseen = set(declared)
        blocks, kinds = self.table.blocks, self.kinds
        while True:
            first = _first_match(kinds, text, self.at)
            if first is None or first[1][1] not in unseen:
                if not text.startswith("-A ", self.at):
                    break
                if not self._unknown(unseen):
                    return None
                continue
            block, match = first
            name = match[1]
            unseen.remove(name)
            blocks[name] = (block, self.number, match.groups())
            self.at = match.end()
            self.number += len(block.lines)
        if not text.startswith("COMMIT\n", self.at):
            return None
        return self.table, self.at + len("COMMIT\n"), self.number + 1

    def _unknown(self, unseen: set[str]) -> bool:
        """Skip the lines of a chain of no known kind; return False if its lines are not together."""
        text = self.text
        name = text[self.at + 3 : text.find(" ", self.at + 3)]
        head = f"-A {name} "
        lines = list(self._lines(head))
        if not lines:
            return False  # the text ends within a line
        if name in self.table.declared:
            if name not in unseen:
                return False
            unseen.remove(name)
        elif name in self.table.entrances:
            return False
        if len(lines) > _LONGEST or name not in self.table.declared:
            self._shared(name, head)
            return True
        described = [self._describe(line.removeprefix(head)) for line in lines]
        whole = [line for line in described if line is not None]
        if len(whole) < len(lines) or len(self.kinds) >= _MOST_KINDS:
            self.table.called.update(_CALLED.findall("\n".join(lines)))
        else:
            block = block_of(whole)
            match = block.pattern.match(text, self.at)
            assert match is not None
            self.table.blocks[name] = (block, self.number, match.groups())
            self.kinds.insert(0, block)
        self.at += sum(map(len, lines)) + len(lines)
        self.number += len(lines)
        return True

    def _lines(self, head: str) -> Iterator[str]:
        """Yield the next lines of the chain, at most one more than a member's own chain can have."""
        at = self.at
        for _ in range(_LONGEST + 1):
            if not self.text.startswith(head, at):
                return
            end = self.text.find("\n", at)
            if end < 0:
                return
            yield self.text[at:end]
            at = end + 1

    def _describe(self, line: str) -> RuleLine | None:
        described = rule_line(f" {line}", self.family, _Callees(self))
        if described is not None and described.shared is not None:
            self.table.called.add(described.shared)
        return described

    def _shared(self, name: str, head: str) -> None:
        """Read the lines of a shared chain."""
        text = self.text
        kinds: list[Block] = []
        entrances = self.table.entrances.setdefault(name, [])
        others = self.table.others.setdefault(name, [])
        while True:
            first = _first_match(kinds, text, self.at)
            if first is not None:
                block, match = first
                entrances.append((block, self.number, match.groups()))
                self.at = match.end()
            elif text.startswith(head, self.at):
                end = text.find("\n", self.at)
                if end < 0:
                    return
                line = text[self.at + len(head) : end]
                described = self._describe(line)
                if described is not None and len(kinds) < _MOST_KINDS:
                    kinds.insert(0, block_of([described], name))
                    continue
                others.append(self.number)
                self.table.called.update(_CALLED.findall(line))
                self.at = end + 1
            else:
                return
            self.number += 1


def _first_match(kinds: list[Block], text: str, at: int) -> tuple[Block, re.Match[str]] | None:
    """Return the block that matches here; the block that matched last is tried first."""
    for index, block in enumerate(kinds):
        match = block.pattern.match(text, at)
        if match is not None:
            if index:
                kinds.insert(0, kinds.pop(index))
            return block, match
    return None


@dataclass(slots=True)
class _Callees:
    """The chains that may belong to a member, as seen from one place in the text."""

    skimmer: _Skimmer

    def __contains__(self, name: object) -> bool:
        skimmer = self.skimmer
        if name not in skimmer.table.declared or name in skimmer.table.called:
            return False
        low = max(skimmer.at - _NEAR, 0)
        return skimmer.text.count(f" {name}\n", low, skimmer.at + _NEAR) <= _OFTEN

    def __len__(self) -> int:
        return len(self.skimmer.table.declared)

    def __iter__(self) -> Iterator[str]:
        return iter(self.skimmer.table.declared)
