"""An nft text reduced to its decisive parts: texts with equal reductions have the same effect on every
packet.

Parts that are removed, and why the effect stays the same:

* combinations of values that a rule tests, if an earlier rule of its chain ends the walk of such packets;
* combinations of values that a marking rule tests, if on every path to the rule such packets have already
  got the same mark;
* a rule that only gives verdicts, if for its packets no later rule does more, up to the end of a base chain
  that accepts: the packet is accepted unchanged, by this rule or later. In such a place, a ``return`` is an
  ``accept``;
* calls of chains and base chains that accept, if they are empty after this, and chains that no rule calls.

An ``accept`` ends a base chain, but not the later base chains of the hook or of other hooks. Between two
rules of a hook, the only tested field that can change is the mark; the proof draws no conclusions from it.
Nothing is removed from a text in which a chain calls itself: the kernel refuses it (``nft_chain_validate``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from graphlib import CycleError, TopologicalSorter
from typing import Final

from tests.lab.mutation.match_table import MatchTable
from tests.lab.mutation.nft_reading import Line, NftText, read_nft

__all__ = ["Reduced", "reduced"]

_MARKS: Final = re.compile(r"meta mark set meta mark \| 0x[\da-f]+$")
"""A statement that sets bits of the mark and clears none."""

_ENDS: Final = ("accept", "drop", "return", "reject", "goto ", "dnat ", "snat ", "masquerade")
_DEEPEST: Final = 32

Reduced = Mapping[str, tuple[str, tuple[Line, ...]]]
"""The chains with their hook lines and their remaining rules."""


def reduced(text: str, *, ends: bool = True) -> Reduced:
    """Return the reduction of a text; without ``ends``, rules that only accept are also kept."""
    nft_text = read_nft(text)
    if _has_loop(nft_text):
        return {name: (nft_text.bases.get(name, ""), lines) for name, lines in nft_text.chains.items()}
    return _Reduction(nft_text).result(ends=ends)


def _has_loop(text: NftText) -> bool:
    """Return whether a chain calls itself, directly or through others."""
    calls = {
        name: {chain for line in lines for _, chain in line.calls} for name, lines in text.chains.items()
    }
    try:
        TopologicalSorter(calls).prepare()
    except CycleError:
        return True
    return False


@dataclass(slots=True)
class _Reduction:
    text: NftText
    _sites: dict[str, list[tuple[str, int, MatchTable]]] = field(default_factory=dict)
    """The callers of a chain: the chain, the rule, and its tests."""

    def __post_init__(self) -> None:
        self.text = replace(
            self.text, chains={name: _not_ended(lines) for name, lines in self.text.chains.items()}
        )
        self._find_sites()
        unsettled = self._unsettled()
        chains = self.text.chains.items()
        marked = {
            name: lines if name in unsettled else tuple(self._not_marked(name)) for name, lines in chains
        }
        self.text = replace(self.text, chains=marked)
        self._find_sites()

    def _unsettled(self) -> set[str]:
        """Return the chains that run where a rule may clear a mark."""
        unsettled: set[str] = set()
        for base in self.text.bases:
            reached = self._reached(base)
            statements = (line.statement for chain in reached for line in self.text.chains[chain])
            if any("mark set" in part and not _MARKS.match(part) for part in statements):
                unsettled |= reached
        return unsettled

    def _reached(self, base: str) -> set[str]:
        reached: set[str] = set()
        open_chains = [base]
        while open_chains:
            name = open_chains.pop()
            if name in self.text.chains and name not in reached:
                reached.add(name)
                open_chains += [chain for line in self.text.chains[name] for _, chain in line.calls]
        return reached

    def _find_sites(self) -> None:
        self._sites.clear()
        for name, lines in self.text.chains.items():
            for at, line in enumerate(lines):
                for condition, chain in line.calls:
                    self._sites.setdefault(chain, []).append((name, at, line.condition.joined(condition)))

    def result(self, *, ends: bool) -> Reduced:
        chains = dict(self.text.chains)
        if ends:
            for name, lines in chains.items():
                chains[name] = tuple(
                    self._plain(name, line)
                    for at, line in enumerate(lines)
                    if not (
                        self._is_idle(line, line.condition) and self._is_idle_after(name, at, line.condition)
                    )
                )
        chains = _without_empty(chains)
        reduced: dict[str, tuple[str, tuple[Line, ...]]] = {}
        open_chains = [
            name for name, hook in self.text.bases.items() if chains[name] or "policy accept" not in hook
        ]
        while open_chains:
            name = open_chains.pop()
            if name not in reduced:
                reduced[name] = (self.text.bases.get(name, ""), chains.get(name, ()))
                open_chains += [chain for line in reduced[name][1] for _, chain in line.calls]
        return reduced

    def _not_marked(self, chain: str) -> Iterator[Line]:
        """Return the rules of a chain without those that set a mark which every packet already has."""
        for at, line in enumerate(self.text.chains[chain]):
            if not _MARKS.match(line.statement):
                yield line
                continue
            rows = (MatchTable(line.condition.fields, frozenset({row})) for row in line.condition.rows)
            open_rows = [
                relation.rows for relation in rows if not self._is_marked(line.statement, chain, at, relation)
            ]
            if open_rows:
                yield replace(
                    line, condition=MatchTable(line.condition.fields, frozenset().union(*open_rows))
                )

    def _is_marked(self, statement: str, chain: str, at: int, known: MatchTable, depth: int = 0) -> bool:
        """Return whether every packet with these facts already has this mark when it reaches the rule."""
        if any(
            line.statement == statement and not line.others and known.beyond(line.condition).is_empty
            for line in self.text.chains[chain][:at]
        ):
            return True
        if chain in self.text.bases or depth > _DEEPEST:
            return False
        for caller, site, condition in self._sites.get(chain, ()):
            more = known.joined(condition)
            if not more.is_empty and not self._is_marked(statement, caller, site, more, depth + 1):
                return False
        return True

    def _plain(self, chain: str, line: Line) -> Line:
        if line.statement == "return" and self._is_idle_behind(chain, line.condition):
            return replace(line, statement="accept", outcomes=((MatchTable(), "accept"),), calls=())
        return line

    def _is_idle(self, line: Line, known: MatchTable, depth: int = 0) -> bool:
        """Return whether the only effect of the rule on packets with these facts is a verdict."""
        known = known.joined(line.condition)
        if known.is_empty:
            return True
        if line.outcomes is None or depth > _DEEPEST:
            return False
        for condition, verdict in line.outcomes:
            more = known.joined(condition)
            if more.is_empty or verdict in ("accept", "return", "continue", ""):
                continue
            kind, _, chain = verdict.partition(" ")
            rules = self.text.chains.get(chain) if kind in ("jump", "goto") else None
            if rules is None or not all(self._is_idle(rule, more, depth + 1) for rule in rules):
                return False
        return True

    def _is_idle_after(self, chain: str, at: int, known: MatchTable, depth: int = 0) -> bool:
        """Return whether no rule after this one has an effect, up to the end of a base chain that accepts."""
        rest = self.text.chains[chain][at + 1 :]
        return all(self._is_idle(line, known) for line in rest) and self._is_idle_behind(chain, known, depth)

    def _is_idle_behind(self, chain: str, known: MatchTable, depth: int = 0) -> bool:
        """Return whether no rule has an effect after the chain has returned."""
        if chain in self.text.bases:
            return "policy accept" in self.text.bases[chain]
        if depth > _DEEPEST:
            return False
        for caller, at, condition in self._sites.get(chain, ()):
            more = known.joined(condition)
            if not more.is_empty and not self._is_idle_after(caller, at, more, depth + 1):
                return False
        return True


def _not_ended(lines: tuple[Line, ...]) -> tuple[Line, ...]:
    """Return the rules of a chain without those that no packet reaches because of an earlier rule."""
    remaining: list[Line] = []
    for line in lines:
        condition = line.condition
        for before in remaining:
            if not before.others and before.statement.startswith(_ENDS):
                condition = condition.beyond(before.condition)
        if not condition.is_empty:
            remaining.append(replace(line, condition=condition))
    return tuple(remaining)


def _without_empty(chains: Mapping[str, tuple[Line, ...]]) -> dict[str, tuple[Line, ...]]:
    """Return the chains without calls of chains that have become empty."""
    left = dict(chains)
    while True:
        empty = {f"{call} {name}" for name, lines in left.items() if not lines for call in ("jump", "goto")}
        fewer = {
            name: tuple(line for line in lines if line.statement not in empty) for name, lines in left.items()
        }
        if fewer == left:
            return left
        left = fewer
