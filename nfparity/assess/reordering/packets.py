"""The values that the fields of a packet may have at a place, and what tests say about them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from translate.dataclass import dataclass, field
from translate.ir import AddressType, Field, Interval, Name, Value

__all__ = ["ALL_BITS", "ANY_PACKET", "NOT_LOCAL", "Effect", "EffectKind", "Possible"]

ALL_BITS: Final = (1 << 32) - 1

NOT_LOCAL: Final = frozenset(int(kind) for kind in AddressType if kind is not AddressType.LOCAL)
"""The types of an address that is not one of the node's."""


class EffectKind(StrEnum):
    """The ways in which a rule may change the course of a packet."""

    DROP = "drops it"
    REJECT = "drops and answers it"
    MARK = "changes its mark"
    OTHER = "something else"


@dataclass(frozen=True, slots=True)
class Effect:
    """An effect of a rule; ``bits`` are those of the mark that it may set."""

    kind: EffectKind
    bits: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Possible:
    """The values that each field may have; a field that is missing may have any, or be absent.

    ``mark_bits`` are the bits of the mark that may be set.
    """

    numbers: Mapping[Field, Collection[int]] = field(default_factory=lambda: MappingProxyType({}))
    names: Mapping[Field, Collection[str]] = field(default_factory=lambda: MappingProxyType({}))
    mark_bits: int = ALL_BITS

    def test(
        self, tested: Field, values: Iterable[Value], *, mask: int | None = None, negated: bool = False
    ) -> bool | None:
        """Return whether a test holds for every such packet; None if it may hold for some only."""
        values = tuple(values)
        if tested is Field.MARK:
            return _inverted(self._mark(values, ALL_BITS if mask is None else mask), negated=negated)
        if tested in self.names:
            names = [v for v in values if isinstance(v, Name)]
            results = {any(n.matches(name) for n in names) for name in self.names[tested]}
        elif tested in self.numbers:
            ranges = [v for v in values if isinstance(v, Interval)]
            known = [v if mask is None else v & mask for v in self.numbers[tested]]
            results = {any(v in interval for interval in ranges) for v in known}
        else:
            return None
        return _inverted(results.pop() if len(results) == 1 else None, negated=negated)

    def _mark(self, values: Iterable[Value], mask: int) -> bool | None:
        """Return whether the masked mark is one of some values."""
        possible = mask & self.mark_bits
        ranges = [v for v in values if isinstance(v, Interval)]
        if not possible:
            return any(0 in interval for interval in ranges)
        if all(interval.is_point and interval.low & ~possible for interval in ranges):
            return False
        return None


ANY_PACKET: Final = Possible()


def _inverted(result: bool | None, *, negated: bool) -> bool | None:
    return result if result is None or not negated else not result
