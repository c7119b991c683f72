"""Lists of ``-m recent`` as sets that packets fill.

A set has the timeout of the checks that ask it, so that an address is in it exactly as long as
``--seconds`` says (to a jiffy: ``xt_recent`` counts the last one in, a set does not). A list has one set
for each different ``--seconds`` of its checks. ``update`` puts an address in or starts its time anew, which
is what ``--set`` and ``--update`` do; ``add`` would leave the old time running (``nft_dynset_eval``).

What differs is what happens when there are too many addresses. ``xt_recent`` forgets the oldest; a
set takes no more until one has timed out. So sets are much larger, and a note says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from translate.ir import Family, Field, FieldTest, Recent, RecentMode, SetDirection, SetTest, Test
from translate.nft.legal import FilledSet, InSet, Key, Masked, SetChange
from translate.nft.limits.refusal import CannotSay
from translate.nft.names import NameGiver
from translate.passes.recents import RecentList, changes_list, inexact

__all__ = ["KEYED_SIZE", "SIZE", "RecentSets", "refreshed_where_it_fails", "sets_of"]

SIZE: Final = 65535
"""Addresses that a set holds: what nft gives dynamic sets that name no size."""

KEYED_SIZE: Final = 1 << 20
"""Addresses that a set holds which stands for many lists. The kernel's table grows as it fills."""


def sets_of(lists: Mapping[str, RecentList], names: NameGiver) -> dict[tuple[str, int | None], FilledSet]:
    """Return the sets that stand for lists, by the list's name and the timeout."""
    return {
        (known.name, seconds): FilledSet(
            name=names.give(f"recent_{known.name}"),
            key=(Field.SADDR, *known.key),
            size=KEYED_SIZE if known.key else SIZE,
            timeout=seconds,
            note=f"recent {known.name}" + (f", line {known.origin.line}" if known.origin.line else ""),
        )
        for known in lists.values()
        for seconds in known.seconds
    }


@dataclass(frozen=True, slots=True)
class RecentSets:
    """The lists of a Program, and the sets that stand for them."""

    family: Family
    lists: Mapping[str, RecentList]
    sets: Mapping[tuple[str, int | None], FilledSet]

    def seen(self, test: Recent) -> InSet:
        """Return the match that asks whether an address is in a list. Raises CannotSay."""
        self.check(test)
        return InSet(self.sets[test.name, test.seconds].name, self._key(test), test.negated)

    def changes(self, test: Recent) -> list[SetChange]:
        """Return what a test does to each set of its list. Raises CannotSay."""
        self.check(test)
        key, delete = self._key(test), test.mode is RecentMode.REMOVE
        return [
            SetChange(self.sets[test.name, seconds].name, key, delete)
            for seconds in self.lists[test.name].seconds
        ]

    def check(self, test: Recent) -> None:
        """Raise CannotSay where sets cannot stand for the list."""
        problem = inexact(test, self.lists[test.name])
        if problem is not None:
            raise CannotSay(*problem)

    def _key(self, test: Recent) -> Key:
        address = Field.SADDR if test.side is SetDirection.SRC else Field.DADDR
        whole = (1 << self.family.bits) - 1
        return (address if test.mask == whole else Masked(address, test.mask), *test.key)

    def stands_alone(self, test: Recent) -> bool:
        """Whether each change of a list stands in a rule of its own, before the rule that goes on.

        Where a set is full ``update`` ends the rule, which must not keep the packet from its action: so it is
        with ``--set``. What is in a set already is updated in the rule itself, if it is one set.
        """
        return test.mode is RecentMode.SET or (
            test.mode is RecentMode.UPDATE and len(self.lists[test.name].seconds) > 1
        )

    def cut(self, tests: Sequence[Test]) -> int | None:
        """Return the first test on a list that must stand in a rule without those before it, or None.

        It changes its list in rules of its own, and these would ask them again; or one before it changes a
        list.
        """
        changed = False
        for index, test in enumerate(tests):
            if not isinstance(test, Recent) or not changes_list(test):
                continue
            if test.negated and test.mode is not RecentMode.SET:
                return index
            alone = self.stands_alone(test)
            if changed or (alone and not all(_says_it_again(one, test.name) for one in tests[:index])):
                return index
            changed = changed or not alone
        return None


def refreshed_where_it_fails(test: Recent) -> tuple[Recent, Recent | None]:
    """Return the test that holds where a negated ``--update`` or ``--remove`` fails, and what is done then.

    ``--remove`` takes out what is there. ``--update`` fails for what is there and young enough, and
    makes what is there but too old as new again: the second test, which decides nothing (``recent_mt``).
    """
    if test.mode is RecentMode.REMOVE:
        return replace(test, negated=False), None
    young = replace(test, mode=RecentMode.RCHECK, negated=False)
    return young, None if test.seconds is None else replace(test, negated=False, seconds=None)


def _says_it_again(test: Test, written: str) -> bool:
    """Whether a test says the same when it is asked again, after the list ``written`` has changed."""
    return isinstance(test, FieldTest | SetTest) or (isinstance(test, Recent) and test.name != written)
