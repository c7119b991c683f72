"""Lists of ``-m recent`` as sets that packets fill.

A set has the timeout of the checks that ask it, so that an address is in it exactly as long as
``--seconds`` says (to a jiffy: ``xt_recent`` counts the last one in, a set does not). ``update`` puts an
address in or starts its time anew, which is what ``--set`` and ``--update`` do; ``add`` would leave the
old time running (``nft_dynset_eval``).

What differs is what happens when there are too many addresses. ``xt_recent`` forgets the oldest; a
set takes no more until one has timed out. So sets are much larger, and a note says so.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from translate.errors import Note
from translate.ir import Family, Recent, SetDirection, format_address
from translate.nft.matches import expression
from translate.nft.model import NftSet
from translate.nft.names import NameGiver
from translate.nft.refusal import BACKEND
from translate.passes.recents import CAPACITY, RecentList

__all__ = ["SIZE", "address_key", "notes_about", "sets_of"]

SIZE: Final = 65535
"""Addresses that a set holds: what nft gives dynamic sets that name no size."""

KEYED_SIZE: Final = 1 << 20
"""Addresses that a set holds which stands for many lists. The kernel's table grows as it fills."""


def address_key(test: Recent, family: Family) -> str:
    """Return the expression whose value the list holds."""
    side = "saddr" if test.side is SetDirection.SRC else "daddr"
    whole = (1 << family.bits) - 1
    masked = "" if test.mask == whole else f" & {format_address(family, test.mask)}"
    return " . ".join((f"{family.value} {side}{masked}", *(expression(f, family) for f in test.key)))


def sets_of(known: RecentList, names: NameGiver, family: Family) -> dict[tuple[str, int | None], NftSet]:
    """Return the sets that stand for one list, by its name and their timeout."""
    line = f", line {known.origin.line}" if known.origin.line else ""
    return {
        (known.name, seconds): NftSet(
            name=names.give(f"recent_{known.name}"),
            key=" . ".join((f"{family.value} saddr", *(expression(f, family) for f in known.key))),
            size=KEYED_SIZE if known.key else SIZE,
            timeout=seconds,
            note=f"recent {known.name}{line}",
        )
        for seconds in known.seconds
    }


def notes_about(lists: Iterable[RecentList]) -> tuple[Note, ...]:
    """Return a note for each list that is written into and asked."""
    return tuple(
        Note(
            known.origin,
            BACKEND,
            "recent-capacity",
            f"{_lists(known)} of -m recent holds {CAPACITY} addresses and forgets the oldest; "
            f"{_set(known)}, and takes no more before one has timed out",
        )
        for known in lists
        if known.limited
    )


def _lists(known: RecentList) -> str:
    return "each list" if known.key else f"the list {known.name}"


def _set(known: RecentList) -> str:
    return f"the set that stands for them holds {KEYED_SIZE}" if known.key else f"the set holds {SIZE}"
