"""Lists of ``-m recent`` as sets that packets fill.

A set has the timeout of the checks that use it, so an address stays in it for ``--seconds`` (less a jiffy:
``xt_recent`` includes the last jiffy, and a set does not). A list has one set for each different
``--seconds`` of its checks. ``update`` adds an address or restarts its timeout, as ``--set`` and ``--update``
do; ``add`` would leave the old timeout running (``nft_dynset_eval``). A full ``xt_recent`` list forgets the
oldest address; a full set accepts no more until one has timed out. So the sets are much larger, and a note
reports it.

*A check with* ``--hitcount N`` above 1 holds if the last N packets of the address came within its seconds. N
sets hold the times of these packets in rotation. Each has the timeout of the check, so the check holds for an
address that is in all of them. N other sets record the rotation: an address is in the set whose number is
that of the time to replace next. These sets forget an address together with its last time; then its rotation
starts again. Two packets of one address on two processors may count as one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from translate.dataclass import dataclass, replace
from translate.ir import (
    CgroupTest,
    Family,
    Field,
    FieldTest,
    MergedList,
    Recent,
    RecentMode,
    SetDirection,
    SetTest,
    Test,
    WordTest,
)
from translate.nft.legal import FilledSet, InSet, Key, LegalList, Masked, Ring, SetChange
from translate.nft.limits.refusal import CannotSay
from translate.nft.names import NameGiver
from translate.passes.recents import Hits, RecentList, changes_list, counted, inexact

__all__ = ["KEYED_SIZE", "SIZE", "RecentSets", "refreshed_where_it_fails", "rings_of", "sets_of"]

_MOST_HITS: Final = 32
"""The maximum number of sets for one check."""

SIZE: Final = 65535
"""The capacity of a set in addresses: nft's default for dynamic sets."""

KEYED_SIZE: Final = 1 << 20
"""The capacity in addresses of a set for many lists. The kernel's table grows as it fills."""


def sets_of(lists: Mapping[str, RecentList], names: NameGiver) -> dict[tuple[str, int | None], FilledSet]:
    """Return the sets for lists, by the list's name and the timeout."""
    return {
        (recent_list.name, seconds): FilledSet(
            name=names.give(f"recent_{recent_list.name}"),
            key=(Field.SADDR, *recent_list.key),
            size=KEYED_SIZE if recent_list.key else SIZE,
            timeout=seconds,
            note=f"recent {recent_list.name}"
            + (f", line {recent_list.origin.line}" if recent_list.origin.line else ""),
        )
        for recent_list in lists.values()
        for seconds in recent_list.seconds
    }


def rings_of(lists: Mapping[str, RecentList], names: NameGiver) -> dict[tuple[str, Hits], Ring]:
    """Return the rings of each list, by the list's name and the hits that a test counts."""
    return {
        (recent_list.name, hits): Ring(
            _row(recent_list, hits, "time", names), _row(recent_list, hits, "turn", names)
        )
        for recent_list in lists.values()
        for hits in recent_list.hits
        if hits.count <= _MOST_HITS
    }


def _row(recent_list: RecentList, hits: Hits, kind: str, names: NameGiver) -> tuple[FilledSet, ...]:
    within = "" if hits.seconds is None else f" in {hits.seconds} s"
    return tuple(
        FilledSet(
            name=names.give(f"recent_{recent_list.name}_{kind}"),
            key=(Field.SADDR, *recent_list.key),
            size=KEYED_SIZE if recent_list.key else SIZE,
            timeout=hits.seconds,
            note=f"recent {recent_list.name}, {kind} {number} of {hits.count}{within}",
        )
        for number in range(1, hits.count + 1)
    )


@dataclass(frozen=True, slots=True)
class RecentSets:
    """The lists of a Program and their sets."""

    family: Family
    lists: Mapping[str, RecentList]
    sets: Mapping[tuple[str, int | None], FilledSet]
    rings: Mapping[tuple[str, Hits], Ring]

    @property
    def all(self) -> tuple[FilledSet, ...]:
        """All sets, in order."""
        rings = (filled for ring in self.rings.values() for filled in (*ring.times, *ring.turns))
        return (*self.sets.values(), *rings)

    def by_list(self, merged: Iterable[MergedList]) -> tuple[LegalList, ...]:
        """Return the sets of each list of the rules. ``merged`` are the lists that became part of another."""
        whole = [
            MergedList(name, name, ()) for name, recent_list in self.lists.items() if not recent_list.key
        ]
        parts = [part for part in merged if part.into in self.lists]
        return tuple(self._of(each) for each in (*whole, *parts))

    def _of(self, part: MergedList) -> LegalList:
        recent_list = self.lists[part.into]
        return LegalList(
            name=part.name,
            key=tuple(zip(recent_list.key, part.key, strict=True)),
            sets=tuple(self.sets[recent_list.name, seconds] for seconds in recent_list.seconds),
            rings=tuple(self.rings[recent_list.name, hits] for hits in recent_list.hits),
        )

    def matches(self, test: Recent) -> list[InSet]:
        """Return the matches for a test of a list. Raises CannotSay."""
        self.check(test)
        key, hits = self.key(test), counted(test)
        if hits is None:
            return [InSet(self.sets[test.name, test.seconds].name, key, test.negated)]
        return [InSet(filled.name, key) for filled in self.rings[test.name, hits].times]

    def changes(self, test: Recent) -> list[SetChange]:
        """Return the changes that a test makes to each set of its list. Raises CannotSay.

        Additions to rings are not among them, because they take several rules (:meth:`added`).
        """
        self.check(test)
        key, delete = self.key(test), test.mode is RecentMode.REMOVE
        recent_list = self.lists[test.name]
        sets = [self.sets[test.name, seconds] for seconds in recent_list.seconds]
        if delete:
            rings = [self.rings[test.name, hits] for hits in recent_list.hits]
            sets += [filled for ring in rings for filled in (*ring.turns, *ring.times)]
        return [SetChange(filled.name, key, delete) for filled in sets]

    def added(self, test: Recent) -> list[Ring]:
        """Return the rings into which a test puts an address."""
        if test.mode is RecentMode.REMOVE:
            return []
        return [self.rings[test.name, hits] for hits in self.lists[test.name].hits]

    def check(self, test: Recent) -> None:
        """Raise CannotSay if sets cannot replace the list."""
        problem = inexact(test, self.lists[test.name])
        if problem is not None:
            raise CannotSay(*problem)
        hits = counted(test)
        if hits is not None and test.negated:
            raise CannotSay("recent-hitcount", "a negated test with --hitcount takes several matches")
        if any(hit.count > _MOST_HITS for hit in self.lists[test.name].hits):
            raise CannotSay(
                "recent-hitcount", f"--hitcount above {_MOST_HITS} would take a set for each packet"
            )

    def key(self, test: Recent) -> Key:
        """Return the key of a test's address."""
        address = Field.SADDR if test.side is SetDirection.SRC else Field.DADDR
        whole = (1 << self.family.bits) - 1
        return (address if test.mask == whole else Masked(address, test.mask), *test.key)

    def needs_separate_changes(self, test: Recent) -> bool:
        """Return whether each change of a list needs a separate rule before the rule itself.

        If a set is full, ``update`` ends the rule, but after ``--set`` the rule's action must follow. The
        address of ``--update`` is in the set already, so the rule itself can update it if the list has only
        one set.
        """
        recent_list = self.lists[test.name]
        several = len(recent_list.seconds) > 1 or bool(recent_list.hits)
        return test.mode is RecentMode.SET or (test.mode is RecentMode.UPDATE and several)

    def cut(self, tests: Sequence[Test]) -> int | None:
        """Return the index of the first test on a list that must not share a rule with the tests before it.

        There are two reasons. The changes of the test may need separate rules, which evaluate the tests
        before it again. Or one of the tests before it changes a list.
        """
        changed = False
        for index, test in enumerate(tests):
            if not isinstance(test, Recent) or not changes_list(test):
                continue
            if test.negated and test.mode is not RecentMode.SET:
                return index
            alone = self.needs_separate_changes(test)
            if changed or (alone and not all(_is_independent(t, test.name) for t in tests[:index])):
                return index
            changed = changed or not alone
        return None


def refreshed_where_it_fails(test: Recent) -> tuple[Recent, Recent | None]:
    """Return a positive test for the packets that a negated ``--update`` or ``--remove`` does not match.

    ``--remove`` removes the address, as the test does. A negated ``--update`` does not match an address with
    enough hits in time, and leaves it alone. It matches any other address in the list, and refreshes it
    (``recent_mt``); a second test does that, and its result is not used.
    """
    if test.mode is RecentMode.REMOVE:
        return replace(test, negated=False), None
    often = replace(test, mode=RecentMode.RCHECK, negated=False)
    if test.seconds is None and counted(test) is None:
        return often, None  # every address in the list
    return often, replace(test, negated=False, seconds=None, hitcount=None)


def _is_independent(test: Test, written: str) -> bool:
    """Return whether a test has the same result after the list ``written`` has changed."""
    return isinstance(test, FieldTest | SetTest | WordTest | CgroupTest) or (
        isinstance(test, Recent) and test.name != written
    )
