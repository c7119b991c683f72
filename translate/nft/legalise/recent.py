"""Lists of ``-m recent`` as sets that packets fill.

A set has the timeout of the checks that use it, so an address stays in it for ``--seconds`` (less a jiffy:
``xt_recent`` includes the last one, a set does not). A list has one set for each different ``--seconds`` of
its checks. ``update`` adds an address or restarts its timeout, as ``--set`` and ``--update`` do; ``add``
would leave the old timeout running (``nft_dynset_eval``). A full ``xt_recent`` list forgets the oldest
address; a full set accepts no more until one has timed out. So the sets are much larger, and a note reports
it.
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
"""The capacity of a set in addresses: nft's default for dynamic sets."""

KEYED_SIZE: Final = 1 << 20
"""The capacity in addresses of a set for many lists. The kernel's table grows as it fills."""


def sets_of(lists: Mapping[str, RecentList], names: NameGiver) -> dict[tuple[str, int | None], FilledSet]:
    """Return the sets for lists, by the list's name and the timeout."""
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
    """The lists of a Program and their sets."""

    family: Family
    lists: Mapping[str, RecentList]
    sets: Mapping[tuple[str, int | None], FilledSet]

    def seen(self, test: Recent) -> InSet:
        """Return the match for a test of a list. Raises CannotSay."""
        self.check(test)
        return InSet(self.sets[test.name, test.seconds].name, self._key(test), test.negated)

    def changes(self, test: Recent) -> list[SetChange]:
        """Return the changes that a test makes to each set of its list. Raises CannotSay."""
        self.check(test)
        key, delete = self._key(test), test.mode is RecentMode.REMOVE
        return [
            SetChange(self.sets[test.name, seconds].name, key, delete)
            for seconds in self.lists[test.name].seconds
        ]

    def check(self, test: Recent) -> None:
        """Raise CannotSay if sets cannot replace the list."""
        problem = inexact(test, self.lists[test.name])
        if problem is not None:
            raise CannotSay(*problem)

    def _key(self, test: Recent) -> Key:
        address = Field.SADDR if test.side is SetDirection.SRC else Field.DADDR
        whole = (1 << self.family.bits) - 1
        return (address if test.mask == whole else Masked(address, test.mask), *test.key)

    def stands_alone(self, test: Recent) -> bool:
        """Return whether each change of a list needs a separate rule before the rule itself.

        If a set is full, ``update`` ends the rule, but after ``--set`` the rule's action must follow. The
        address of ``--update`` is in the set already, so the rule itself can update it if the list has one
        set.
        """
        return test.mode is RecentMode.SET or (
            test.mode is RecentMode.UPDATE and len(self.lists[test.name].seconds) > 1
        )

    def cut(self, tests: Sequence[Test]) -> int | None:
        """Return the index of the first test on a list that must not share a rule with the tests before it.

        Either its changes need separate rules, in which the tests before it would be evaluated again, or one
        of those tests changes a list.
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
    """Return a test that holds if a negated ``--update`` or ``--remove`` fails, with its effect in that case.

    ``--remove`` removes the address. ``--update`` fails for an address that is recent enough. It also
    refreshes one that is too old: that is the second test, whose result is not used (``recent_mt``).
    """
    if test.mode is RecentMode.REMOVE:
        return replace(test, negated=False), None
    young = replace(test, mode=RecentMode.RCHECK, negated=False)
    return young, None if test.seconds is None else replace(test, negated=False, seconds=None)


def _says_it_again(test: Test, written: str) -> bool:
    """Return whether a test has the same result after the list ``written`` has changed."""
    return isinstance(test, FieldTest | SetTest) or (isinstance(test, Recent) and test.name != written)
