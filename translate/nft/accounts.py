"""The objects of ``-m nfacct`` as counters of the table.

They count the same packets; where they are read is another place, and a note says so.
"""

from __future__ import annotations

from collections.abc import Mapping

from translate.errors import Note
from translate.ir import Origin
from translate.nft.model import NftCounter
from translate.nft.names import NameGiver
from translate.nft.refusal import BACKEND

__all__ = ["counters_of", "notes_on"]


def counters_of(accounts: Mapping[str, Origin], names: NameGiver) -> dict[str, NftCounter]:
    """Return a counter for each object, by the object's name."""
    return {name: NftCounter(name=names.give(f"nfacct_{name}"), note=f"nfacct {name}") for name in accounts}


def notes_on(accounts: Mapping[str, Origin], counters: Mapping[str, NftCounter]) -> tuple[Note, ...]:
    """Return a note for each object."""
    return tuple(
        Note(
            origin,
            BACKEND,
            "nfacct",
            f"the nfacct object {name} stays as it is; the counter {counters[name].name} counts in its place",
        )
        for name, origin in accounts.items()
    )
