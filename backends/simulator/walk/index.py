"""An index of a chain's rules by the values that they test, to find the rules that a packet may match.

A rule that tests a field for one of a few values cannot match a packet with another value. So the rules of a
long chain are filed by such values, and a walk visits only rules that are filed under the packet's value and
rules that are not filed. The decision equals that of the plain walk, because a rule is filed only under a
test that:

- is evaluated before any test that does more than compare (random numbers, counters, lists, and tests of
  a port that the kernel picked, which narrow it): a skipped rule would have failed without any effect;
- reads a field that no rule can change during the walk through its table: the packet's value is the same
  whenever the rule would have been reached;
- is evaluated before any match that reads a transport header, or is such a test. A match drops a packet that
  ends within this header, so for such a packet a walk visits every rule.

Rules keep their order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from backends.model.packet import PortClass
from backends.simulator.matching.fields import reader
from backends.simulator.matching.view import HotDrop, Reader, View
from backends.simulator.trace import AlikeRules
from translate.dataclass import dataclass
from translate.ir import INDEX_PROTOCOLS, AnyOf, Field, FieldTest, Interval, Name, Rule, Test

__all__ = ["ChainIndex", "index_of"]

_FEWEST_RULES: Final = 8
_FEWEST_FILED: Final = 4
"""The minimum number of rules in an index or under one of its keys: visiting fewer is as fast as a lookup."""

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
"""Fields that do not change during the walk of a table, unlike marks and the conntrack state."""


_OF_HEADERS: Final = frozenset(
    {
        *(Field.ICMP_TYPE, Field.ICMP_CODE, Field.TCP_FLAGS, Field.TCP_MSS, Field.TCP_OPTIONS),
        *(Field.SCTP_CHUNKS, Field.MH_TYPE, *INDEX_PROTOCOLS),
    }
)
"""Fields other than ports whose matches drop a packet that ends within its transport header."""


class _Shape(NamedTuple):
    """A field, cut into aligned blocks of ``size`` values (1 for names)."""

    field: Field
    size: int


class _Key(NamedTuple):
    """The values under which a rule is filed: names, or blocks of values, each given by its lowest value.

    ``side`` is the index of the rule's test that has these values.
    """

    shape: _Shape
    blocks: frozenset[int | str]
    side: int


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


@dataclass(slots=True)
class ChainIndex:
    """The files of one chain, and the positions of the rules that are not filed."""

    files: tuple[_File, ...]
    unfiled: tuple[int, ...]
    _rules: Sequence[Rule]
    _sides: dict[int, int]
    """The index of the test under which each filed rule is filed."""
    _alike: tuple[AlikeRules, ...] | None = None

    @property
    def alike(self) -> tuple[AlikeRules, ...]:
        """All filed rules, in groups that differ only in the test by which they are filed."""
        if self._alike is None:
            groups: dict[tuple[int, tuple[Test, ...], tuple[Test, ...]], list[int]] = {}
            for position in sorted(self._sides):
                side, tests = self._sides[position], self._rules[position].tests
                groups.setdefault((side, tests[:side], tests[side + 1 :]), []).append(position)
            self._alike = tuple([AlikeRules(tuple(p), *key) for key, p in groups.items()])
        return self._alike

    def candidates(self, view: View) -> Sequence[int]:
        """Return the positions of all rules that the packet may match, in order."""
        candidates = self.unfiled
        try:
            for file in self.files:
                if filed := file.find(view):
                    candidates += filed
        except HotDrop:
            return range(len(self._rules))
        return candidates if candidates is self.unfiled else sorted(candidates)


def index_of(rules: Sequence[Rule]) -> ChainIndex | None:
    """Return the index of a chain's rules; None if an index would save nothing.

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
    sides = {position: key.side for keys in filed.values() for position, key in keys.items()}
    files = tuple(_file(shape, keys) for shape, keys in filed.items())
    return ChainIndex(files, tuple(p for p in range(len(rules)) if p not in sides), rules, sides)


def _file(shape: _Shape, keys: dict[int, _Key]) -> _File:
    by_block: dict[int | str, list[int]] = {}
    for position, key in keys.items():
        for block in key.blocks:
            by_block.setdefault(block, []).append(position)
    filed = {block: tuple(positions) for block, positions in by_block.items()}
    return _File(reader(shape.field), shape.size, filed, tuple(keys))


def _keys(rule: Rule) -> Iterator[_Key]:
    """Yield every key that the rule can be filed under."""
    for side, test in enumerate(rule.tests):
        match test:
            case FieldTest():
                if test.field in _CONSTANT and not test.negated and (key := _key(test, side)) is not None:
                    yield key
                if test.field in _PORTS or test.field in _OF_HEADERS:
                    return
            case AnyOf():
                if any(t.field in _PORTS or t.field in _OF_HEADERS for t in test.tests):
                    return
            case _:
                return


def _key(test: FieldTest, side: int) -> _Key | None:
    """Return the key of a test with names, points, or prefixes of one length; None for any other test."""
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
    return _Key(shapes.pop(), frozenset(blocks), side) if len(shapes) == 1 else None


def _aligned(low: int, high: int) -> bool:
    size = high - low + 1
    return not (size & (size - 1) or low & (size - 1))
