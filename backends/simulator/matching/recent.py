"""The lists of ``-m recent``: addresses with the times at which they were seen (``xt_recent``).

A list belongs to the network namespace, not to a table: all rules that name it share it. The kernel counts
time in jiffies. Here time is exact, so the kernel may decide differently about a packet within a jiffy of a
timeout.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Final

from translate.dataclass import dataclass, field
from translate.ir import Recent, RecentMode

__all__ = ["MOST_ADDRESSES", "RecentLists", "remembered_times"]

MOST_ADDRESSES: Final = 100
"""Addresses per list (module parameter ``ip_list_tot``); one more evicts the least recently seen."""

_DEFAULT_TIMES: Final = 32


def remembered_times(rules: Iterable[Recent]) -> dict[str, int]:
    """Return the number of times that each list keeps per address.

    The maximum over the rules of the list: the next power of two of ``--hitcount``, or 32
    (``recent_mt_check`` with ``ip_pkt_list_tot`` 0, its default).
    """
    capacity: dict[str, int] = {}
    for rule in rules:
        needed = _DEFAULT_TIMES if rule.hitcount is None else 1 << (rule.hitcount - 1).bit_length()
        capacity[rule.name] = max(needed, capacity.get(rule.name, 0))
    return capacity


@dataclass(slots=True)
class _Entry:
    """The entry of one address in a list (``struct recent_entry``)."""

    ttl: int
    times: list[float]
    next: int = 1

    def latest(self) -> float:
        return self.times[self.next - 1]


@dataclass(slots=True)
class RecentLists:
    """All lists of one run, empty when it begins. ``now`` is the virtual clock, in seconds."""

    capacity: Mapping[str, int]
    now: float = 0.0
    addresses: dict[str, OrderedDict[int, _Entry]] = field(default_factory=dict)
    removed: bool = False
    """True if a rule has removed an address."""

    def begin(self) -> None:
        """Empty all lists, for another run."""
        self.now = 0.0
        self.addresses.clear()
        self.removed = False

    @property
    def holds_any(self) -> bool:
        """Return whether some list has an address, or has lost one, which nftables clears later."""
        return self.removed or any(self.addresses.values())

    @property
    def filled(self) -> frozenset[str] | None:
        """The names of the lists that have addresses; None if one has lost an address."""
        if self.removed:
            return None
        return frozenset(name for name, entries in self.addresses.items() if entries)

    def matches(self, test: Recent, address: int, ttl: int) -> bool:
        """Apply ``test`` to its list and return whether it matches (``recent_mt``).

        ``address`` is the packet's, without the mask; ``ttl`` is the value before forwarding.
        """
        address &= test.mask
        entries = self.addresses.setdefault(test.name, OrderedDict())
        entry = entries.get(address)
        if entry is not None and test.rttl and entry.ttl != ttl and ttl and entry.ttl:
            entry = None
        if entry is None:
            if test.mode is not RecentMode.SET:
                return test.negated
            self._insert(entries, address, ttl)
            return not test.negated
        matched = not test.negated
        match test.mode:
            case RecentMode.SET:
                self._update(test.name, entries, address, ttl)
            case RecentMode.REMOVE:
                del entries[address]
                self.removed = True
            case RecentMode.RCHECK | RecentMode.UPDATE:
                matched = self._often_enough(test, entry) != test.negated
                updates = test.mode is RecentMode.UPDATE and matched
                if test.reap:
                    self._reap(test, entries, keep=address if updates else None)
                if updates:
                    self._update(test.name, entries, address, ttl)
        return matched

    def _often_enough(self, test: Recent, entry: _Entry) -> bool:
        since = None if test.seconds is None else self.now - test.seconds
        hits = sum(since is None or time >= since for time in entry.times)
        return hits >= (test.hitcount or 1)

    def _insert(self, entries: OrderedDict[int, _Entry], address: int, ttl: int) -> None:
        if len(entries) >= MOST_ADDRESSES:
            entries.popitem(last=False)
        entries[address] = _Entry(ttl, [self.now])

    def _update(self, name: str, entries: OrderedDict[int, _Entry], address: int, ttl: int) -> None:
        entry = entries[address]
        entry.next %= self.capacity[name]
        if entry.next < len(entry.times):
            entry.times[entry.next] = self.now
        else:
            entry.times.append(self.now)
        entry.next += 1
        entry.ttl = ttl
        entries.move_to_end(address)

    def _reap(self, test: Recent, entries: OrderedDict[int, _Entry], *, keep: int | None) -> None:
        """Remove the least recently seen address if it was seen more than the rule's seconds ago."""
        assert test.seconds is not None
        oldest = next(iter(entries))
        if oldest != keep and entries[oldest].latest() < self.now - test.seconds:
            del entries[oldest]
