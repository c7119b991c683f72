"""The values that tests compare with: intervals of integers, and interface names."""

from __future__ import annotations

from translate.dataclass import dataclass

__all__ = ["Interval", "Name", "Value"]


@dataclass(frozen=True, slots=True, order=True)
class Interval:
    """An inclusive interval of integers; a point when both ends are equal."""

    low: int
    high: int

    @classmethod
    def point(cls, value: int) -> Interval:
        """Return the interval that contains only ``value``."""
        return cls(value, value)

    @classmethod
    def prefix(cls, address: int, length: int, bits: int) -> Interval:
        """Return the addresses of a prefix; host bits of ``address`` are cleared."""
        span = (1 << (bits - length)) - 1
        low = address & ~span
        return cls(low, low | span)

    @property
    def is_point(self) -> bool:
        """Return whether the interval contains exactly one value."""
        return self.low == self.high

    @property
    def size(self) -> int:
        """The number of values in the interval."""
        return self.high - self.low + 1

    def prefix_length(self, bits: int) -> int | None:
        """Return the prefix length in a field of ``bits`` bits, or None if the interval is not a prefix."""
        size = self.size
        if size & (size - 1) or self.low & (size - 1):
            return None
        return bits - size.bit_length() + 1

    def __contains__(self, value: int) -> bool:
        return self.low <= value <= self.high


@dataclass(frozen=True, slots=True, order=True)
class Name:
    """An interface name, or all names that start with ``text`` (``eth+``)."""

    text: str
    wildcard: bool = False

    def matches(self, name: str) -> bool:
        """Return whether ``name`` matches; a hook without the interface has the empty name."""
        return name.startswith(self.text) if self.wildcard else name == self.text


Value = Interval | Name
