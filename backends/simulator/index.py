"""Which rules of a chain a packet can match, without asking each of them.

A rule that tests a field for one of a few values cannot match a packet with another value there, so
the rules of a long chain are filed by such a value, and only those filed under the packet's own, and
those that cannot be filed, are asked. The answers are those of the plain walk, because a rule is
filed only under a test that

- is evaluated before any test that does more than look (chance, counters, lists, and tests of a
  port that the kernel picked, which decide about it): nothing of what the rule would have done is
  left out when it is skipped, except to fail;
- reads what no rule can change while its table is walked, so that the packet's value is the same
  whenever the rule would have been reached.

Rules keep their order. A trace is made by the plain walk, since it tells of rules that fail.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from backends.model.packet import PortClass
from backends.simulator.fields import Reader, View, reader
from translate.ir import AnyOf, Field, FieldTest, Interval, Name, Rule

__all__ = ["ChainIndex", "index_of"]

_FEWEST_RULES: Final = 8
_FEWEST_FILED: Final = 4
"""Less than that, in a chain or under one shape of key, is asked as fast as it is looked up."""

_PORTS: Final = frozenset(
    {
        Field.SPORT,
        Field.DPORT,
        Field.CT_ORIGINAL_SPORT,
        Field.CT_ORIGINAL_DPORT,
        Field.CT_REPLY_SPORT,
        Field.CT_REPLY_DPORT,
    }
)
_CONSTANT: Final = _PORTS | {
    Field.SADDR,
    Field.DADDR,
    Field.L4PROTO,
    Field.ICMP_TYPE,
    Field.IIF,
    Field.OIF,
    Field.CT_ORIGINAL_SADDR,
    Field.CT_ORIGINAL_DADDR,
    Field.CT_REPLY_SADDR,
    Field.CT_REPLY_DADDR,
}
"""Fields that stay as they are while a table is walked; marks and the state do not."""


class _Shape(NamedTuple):
    """A field, cut into aligned blocks of ``size`` values (1 for names)."""

    field: Field
    size: int


class _Key(NamedTuple):
    """Where a rule can be filed: under each of some blocks, told by their lowest value or the name."""

    shape: _Shape
    blocks: frozenset[int | str]


@dataclass(frozen=True, slots=True)
class _File:
    """The rules filed under one shape; ``every`` are all of them. Positions ascend."""

    read: Reader
    size: int
    by_block: dict[int | str, tuple[int, ...]]
    every: tuple[int, ...]

    def find(self, view: View) -> tuple[int, ...]:
        value = self.read(view)
        if value is None:
            return ()
        if isinstance(value, PortClass):
            return self.every
        return self.by_block.get(value if isinstance(value, str) else value & -self.size, ())


@dataclass(frozen=True, slots=True)
class ChainIndex:
    """The files of one chain, and the positions of the rules that are in none."""

    files: tuple[_File, ...]
    unfiled: tuple[int, ...]

    def candidates(self, view: View) -> Sequence[int]:
        """Return the positions of all rules that the packet may match, in order."""
        found = self.unfiled
        for file in self.files:
            if filed := file.find(view):
                found += filed
        return found if found is self.unfiled else sorted(found)


def index_of(rules: Sequence[Rule]) -> ChainIndex | None:
    """Return the index of a chain's rules; None when there is nothing to gain from one.

    Each rule is filed under the key that it shares with the fewest others.
    """
    if len(rules) < _FEWEST_RULES:
        return None
    choices = [list(_keys(rule)) for rule in rules]
    sharing = Counter((key.shape, block) for keys in choices for key in keys for block in key.blocks)
    filed: dict[_Shape, dict[int, _Key]] = {}
    for position, keys in enumerate(choices):
        if keys:
            best = min(keys, key=lambda key: max(sharing[key.shape, block] for block in key.blocks))
            filed.setdefault(best.shape, {})[position] = best
    filed = {shape: keys for shape, keys in filed.items() if len(keys) >= _FEWEST_FILED}
    if not filed:
        return None
    inside = {position for keys in filed.values() for position in keys}
    files = tuple(_file(shape, keys) for shape, keys in filed.items())
    return ChainIndex(files, tuple(p for p in range(len(rules)) if p not in inside))


def _file(shape: _Shape, keys: dict[int, _Key]) -> _File:
    by_block: dict[int | str, list[int]] = {}
    for position, key in keys.items():
        for block in key.blocks:
            by_block.setdefault(block, []).append(position)
    found = {block: tuple(positions) for block, positions in by_block.items()}
    return _File(reader(shape.field), shape.size, found, tuple(keys))


def _keys(rule: Rule) -> Iterator[_Key]:
    """Every key that the rule can be filed under."""
    for test in rule.tests:
        match test:
            case FieldTest():
                if test.field in _CONSTANT and not test.negated and (key := _key(test)) is not None:
                    yield key
                if test.field in _PORTS:
                    return
            case AnyOf():
                if any(t.field in _PORTS for t in test.tests):
                    return
            case _:
                return


def _key(test: FieldTest) -> _Key | None:
    """The key of a test that compares with names, points, or prefixes of one length."""
    if test.mask is not None:
        return None
    shapes = set()
    blocks: set[int | str] = set()
    for value in test.values:
        match value:
            case Interval(low, high) if _aligned(low, high):
                shapes.add(_Shape(test.field, value.size))
                blocks.add(low)
            case Name(text, wildcard=False):
                shapes.add(_Shape(test.field, 1))
                blocks.add(text)
            case _:
                return None
    return _Key(shapes.pop(), frozenset(blocks)) if len(shapes) == 1 else None


def _aligned(low: int, high: int) -> bool:
    size = high - low + 1
    return not (size & (size - 1) or low & (size - 1))
