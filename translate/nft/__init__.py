"""Program → nftables: one table per family, loaded in one transaction.

:func:`emit` is the only door. ``matches``, ``statements`` and ``names`` know how nft spells things and
where its meaning differs from x_tables'; ``emit`` lays chains and maps out as ``model``, with ``rules``,
``alternatives`` and ``lookups`` for the kinds of statements; ``render`` prints them. Imports
``translate.ir``, ``translate.errors`` and what ``translate.passes`` knows of tests; backends and harness
import this package.
"""

from __future__ import annotations

from dataclasses import dataclass

from translate.collector import collector_paused
from translate.errors import Note
from translate.ir import Program
from translate.nft.change import ChangeKind, NftChange, change
from translate.nft.emit import TABLE, build
from translate.nft.model import NftTable
from translate.nft.refusal import REFUSED
from translate.nft.render import delete_text, flush_text, structure_text

__all__ = ["REFUSED", "TABLE", "ChangeKind", "NftChange", "NftOutput", "emit"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NftOutput:
    """A Program as nftables text.

    ``text`` replaces the whole of the owned ``table`` in one transaction; ``delete`` removes it.
    ``flush`` empties the sets that packets fill. ``notes`` say where iptables knows other limits.
    ``structure`` is what ``text`` says, for :meth:`change_from`.
    """

    family: str
    table: str
    text: str
    delete: str
    structure: NftTable
    flush: str = ""
    notes: tuple[Note, ...] = ()

    def change_from(self, old: NftOutput) -> NftChange:
        """Return the transaction that turns what ``old`` has loaded into this.

        Raises ValueError when they are of different families.
        """
        return change(old.structure, self.structure)


@collector_paused()
def emit(program: Program) -> NftOutput:
    """Return ``program`` as nftables text. Raises UnsupportedError with all refusals."""
    table, notes = build(program)
    return NftOutput(
        family=table.family,
        table=table.name,
        text=structure_text(table),
        delete=delete_text(table.family, table.name),
        structure=table,
        flush=flush_text(table),
        notes=notes,
    )
