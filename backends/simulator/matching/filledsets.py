"""ipsets that rules change: the members of each, while the packets of one flow pass (``xt_set``).

The kernel counts time in jiffies. Here time is exact, so the kernel may decide differently about a packet
within a jiffy of a timeout.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from backends.simulator.matching.ipsets import Members
from backends.simulator.matching.view import View
from translate.dataclass import dataclass, field, replace
from translate.errors import InputError
from translate.ir import Cell, SetType, SetUpdate

__all__ = ["FilledSets"]

_Key = tuple[object, ...]
_MOST: Final = 65536
"""The maximum number of elements of a set without ``maxelem``."""


@dataclass(slots=True)
class FilledSets(Mapping[str, Members]):
    """The ipsets by name: as they were saved, until an update changes them."""

    saved: Mapping[str, Members]
    changed: dict[str, Members] = field(default_factory=dict)
    ends: dict[tuple[str, _Key], float] = field(default_factory=dict)
    """The time at which an element is removed, by its set and its key; 0 for no time."""

    def __getitem__(self, name: str) -> Members:
        return self.changed[name] if name in self.changed else self.saved[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.saved)

    def __len__(self) -> int:
        return len(self.saved)

    def begin(self) -> None:
        """Restore the saved members, for another run."""
        self.changed.clear()
        self.ends.clear()

    def at(self, name: str, now: float) -> Members:
        """Return the members of a set at the time ``now``."""
        for set_name, key in [k for k, end in self.ends.items() if end and end <= now]:
            del self.ends[set_name, key]
            for _, table in self._tables(self.changed[set_name]):
                table.pop(key, None)
        return self[name]

    def update(self, update: SetUpdate, view: View, now: float) -> None:
        """Apply the change that a rule makes for a packet (``ip_set_add`` and ``ip_set_del``).

        Raises InputError for a key with a port that the kernel picks.
        """
        members = self.at(update.name, now)
        key = members.key(update.directions, view)
        if key is None or None in key or not _may_enter(members, key):
            return
        if not all(isinstance(part, int) for part in key):
            raise InputError(f"a rule puts a port that the kernel picks into the ipset {update.name}")
        numbers = [part for part in key if isinstance(part, int)]
        members = self._own(update.name)
        mask, table = self._table(members, view)
        if members.net is not None:
            numbers[members.net] &= mask
        number = tuple(numbers)
        if update.delete:
            table.pop(number, None)
            self.ends.pop((update.name, number), None)
            return
        if number in table and not update.refresh:
            return
        if number not in table and sum(len(t) for _, t in members.tables) >= _most(members):
            return
        table[number] = True
        seconds = _timeout(members, update)
        self.ends[update.name, number] = now + seconds if seconds else 0

    def _own(self, name: str) -> Members:
        """Return the members of a set that this run may change."""
        if name not in self.changed:
            saved = self.saved[name]
            tables = tuple((mask, dict(table)) for mask, table in saved.tables)
            self.changed[name] = replace(saved, tables=tables)
        return self.changed[name]

    def _tables(self, members: Members) -> Iterator[tuple[int, dict[_Key, bool]]]:
        for mask, table in members.tables:
            assert isinstance(table, dict)
            yield mask, table

    def _table(self, members: Members, view: View) -> tuple[int, dict[_Key, bool]]:
        """Return the table to which packets add elements: that of the longest prefix in the set.

        The kernel takes ``nets[0].cidr``, which is the longest prefix of all elements (``hash_net4_kadt``).
        """
        for mask, table in self._tables(members):
            if table or members.net is None:
                return mask, table
        mask = (1 << view.skb.packet.family.bits) - 1 if members.net is not None else 0
        made: dict[_Key, bool] = {}
        self.changed[members.set.name] = replace(members, tables=((mask, made),))
        return mask, made


def _may_enter(members: Members, key: tuple[object, ...]) -> bool:
    """Return whether the type of the set takes the key: ``hash:ip`` takes no unspecified address, and
    ``bitmap:port`` only ports of its range.
    """
    match members.set.type:
        case SetType.HASH_IP:
            return key != (0,)
        case SetType.BITMAP_PORT:
            declared = next(o.value for o in members.set.options if o.name == "range")
            assert declared is not None
            low, _, high = declared.partition("-")
            return isinstance(key[0], int) and int(low) <= key[0] <= int(high or low)
        case _:
            assert Cell.ADDRESS in members.set.type.cells or members.net is not None
            return True


def _timeout(members: Members, update: SetUpdate) -> int:
    """Return the timeout of a new element in seconds, 0 for none (``ip_set_adt_opt_timeout``)."""
    default = next((o.value for o in members.set.options if o.name == "timeout"), None)
    if default is None:
        return 0
    return int(default) if update.timeout is None else update.timeout


def _most(members: Members) -> int:
    declared = next((o.value for o in members.set.options if o.name == "maxelem"), None)
    return _MOST if declared is None else int(declared)
