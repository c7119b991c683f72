"""Rules and sets as nft sends them to the kernel in one transaction."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from tests.lab.bytecode.decoding import data_of, instruction, number, text
from tests.lab.bytecode.effects import (
    Help,
    Nat,
    ProxyHandshake,
    SetCt,
    SetCtZone,
    TransparentProxy,
    UpdateSet,
)
from tests.lab.bytecode.instructions import Decide, Instruction, LoadCt, LookUp, Verdict
from tests.lab.bytecode.netlink import Attributes, Message, attributes, listed

__all__ = ["Contents", "Listing", "listing_of"]

_NEW_RULE: Final = 6  # enum nf_tables_msg_types
_NEW_SET: Final = 9
_NEW_ELEMENTS: Final = 12
_INTERVAL: Final = 0x4  # NFT_SET_INTERVAL
_INTERVAL_END: Final = 0x1  # NFT_SET_ELEM_INTERVAL_END
_OF_CONNTRACK: Final = (LoadCt, SetCt, SetCtZone, Nat, Help, ProxyHandshake, TransparentProxy)


@dataclass(frozen=True, slots=True)
class _Element:
    key: bytes
    high: bytes | None
    data: Verdict | bytes | None
    end: bool


@dataclass(slots=True)
class Contents:
    """A set or map, with the lookup of the kernel's set types.

    ``fields`` are the widths of the fields of a concatenation with intervals, in bytes, padded to words.
    """

    name: str
    width: int
    interval: bool
    fields: tuple[int, ...]
    _elements: list[_Element] = field(default_factory=list)
    _exact: dict[bytes, _Element] = field(default_factory=dict)
    _ordered: list[tuple[bytes, bool, _Element]] | None = field(default=None, compare=False)

    def add(self, key: bytes, high: bytes | None, data: Verdict | bytes | None, *, end: bool) -> None:
        """Add an element: a key, an interval of a concatenation, or one end of an interval."""
        element = _Element(key, high, data, end)
        self._elements.append(element)
        self._exact[key] = element
        self._ordered = None

    def verdicts(self) -> Iterator[Verdict]:
        """Yield the verdicts of a verdict map."""
        return (e.data for e in self._elements if isinstance(e.data, Verdict))

    def find(self, key: bytes) -> tuple[bool, Verdict | bytes | None]:
        """Return whether the set has ``key``, and its data in a map."""
        if not self.interval:  # nft_set_hash, nft_set_bitmap
            exact = self._exact.get(key)
            return exact is not None, None if exact is None else exact.data
        if self.fields:  # nft_set_pipapo
            return next(((True, e.data) for e in self._elements if self._within(key, e)), (False, None))
        if self._ordered is None:  # nft_set_rbtree: where one interval ends another may begin
            self._ordered = sorted(((e.key, not e.end, e) for e in self._elements), key=lambda e: e[:2])
        at = bisect_right(self._ordered, (key, True), key=lambda end: end[:2])
        if not at or not self._ordered[at - 1][1]:
            return False, None
        return True, self._ordered[at - 1][2].data

    def _within(self, key: bytes, element: _Element) -> bool:
        high = element.key if element.high is None else element.high
        at = 0
        for width in self.fields:
            if not element.key[at : at + width] <= key[at : at + width] <= high[at : at + width]:
                return False
            at += -(-width // 4) * 4
        return True


@dataclass(slots=True)
class Listing:
    """Rules by chain, in order, and sets by the number that they have in the transaction."""

    rules: dict[str, list[tuple[Instruction, ...]]] = field(default_factory=dict)
    sets: dict[int, Contents] = field(default_factory=dict)

    def reassembles(self) -> bool:
        """Return whether the kernel reassembles fragments for an instruction (``nf_ct_netns_get``)."""
        steps = (step for rules in self.rules.values() for rule in rules for step in rule)
        return any(
            isinstance(step, _OF_CONNTRACK) or (isinstance(step, UpdateSet) and step.limit is not None)
            for step in steps
        )

    def has_same_instructions(self, other: Listing, chain: str) -> bool:
        """Return whether both have equal rules and sets in all chains that a packet in ``chain`` can
        reach.
        """
        waiting: list[str | None] = [chain]
        visited: set[str | None] = {None}
        while waiting:
            name = waiting.pop()
            if name in visited:
                continue
            visited.add(name)
            rules = self.rules.get(name or "")
            if rules != other.rules.get(name or ""):
                return False
            for step in (step for rule in rules or () for step in rule):
                if isinstance(step, Decide):
                    waiting.append(step.verdict.chain)
                elif isinstance(step, LookUp | UpdateSet):
                    contents = self.sets[step.set]
                    if contents != other.sets.get(step.set):
                        return False
                    waiting += (verdict.chain for verdict in contents.verdicts())
        return True


def listing_of(messages: Iterable[Message]) -> Listing:
    """Read a transaction of one table. Raises ValueError for an instruction that is not known."""
    listing = Listing()
    for message in messages:
        attrs = message.attributes
        if message.kind == _NEW_RULE:
            instructions = tuple(map(instruction, listed(attrs.get(4, b""))))
            listing.rules.setdefault(text(attrs[2]), []).append(instructions)
        elif message.kind == _NEW_SET:
            listing.sets[number(attrs[10])] = _contents(attrs)
        elif message.kind == _NEW_ELEMENTS:
            contents = listing.sets[number(attrs[4])]
            for element in listed(attrs.get(3, b"")):
                _add(contents, attributes(element))
    return listing


def _contents(attrs: Attributes) -> Contents:
    """Return an empty set (``NFTA_SET_*``); the widths of its fields are in ``NFTA_SET_DESC_CONCAT``."""
    description = attributes(attrs.get(9, b""))
    fields = tuple(number(attributes(part)[1]) for part in listed(description.get(2, b"")))
    return Contents(text(attrs[2]), number(attrs[5]), bool(number(attrs.get(3)) & _INTERVAL), fields)


def _add(contents: Contents, element: Attributes) -> None:
    """Add an element (``NFTA_SET_ELEM_*``)."""
    key, high = (data_of(element[kind]) if kind in element else None for kind in (1, 10))
    assert isinstance(key, bytes)
    assert not isinstance(high, Verdict)
    data = data_of(element[2]) if 2 in element else None
    contents.add(key, high, data, end=bool(number(element.get(3)) & _INTERVAL_END))
