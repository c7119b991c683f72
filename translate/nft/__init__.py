"""Program → nftables: one table per family, loaded in one transaction.

:func:`emit` is the entry point. ``legalise`` makes a legal Program (``legal``), in which every statement is
exactly one rule, map or set, and makes all decisions; ``limits`` has the features that nftables lacks.
``printer`` writes matches and statements as text, and ``render`` the whole table. ``change`` compares two
tables.

Imports ``translate.ir``, ``translate.errors`` and the algebra of tests in ``translate.passes``; backends and
harness import this package.
"""

from __future__ import annotations

from translate.collector import collector_paused
from translate.dataclass import dataclass
from translate.errors import Note
from translate.ir import Program
from translate.nft.change import ChangeKind, NftChange, change
from translate.nft.flowtable import Offload, with_flowtable
from translate.nft.legalise import legalise
from translate.nft.limits.refusal import REFUSED
from translate.nft.model import NftList, NftRing, NftTable
from translate.nft.printer import TABLE, printed
from translate.nft.render import delete_text, flush_text, structure_text

__all__ = [
    "REFUSED",
    "TABLE",
    "ChangeKind",
    "NftChange",
    "NftList",
    "NftOutput",
    "NftRing",
    "Offload",
    "emit",
    "offloading",
    "output_of",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class NftOutput:
    """A Program as nftables text.

    ``text`` replaces the whole of the owned ``table`` in one transaction; ``delete`` removes it. ``flush``
    empties the sets that packets fill, and refills the limits that decide where a packet goes. ``notes``
    describe limits that iptables does not have. ``structure`` is the table that ``text`` declares, for
    :meth:`change_from`.
    """

    family: str
    table: str
    text: str
    delete: str
    structure: NftTable
    flush: str = ""
    notes: tuple[Note, ...] = ()

    def change_from(self, old: NftOutput) -> NftChange:
        """Return the transaction that turns the loaded ``old`` into this output.

        Raises ValueError if their families differ.
        """
        return change(old.structure, self.structure)


@collector_paused()
def emit(program: Program) -> NftOutput:
    """Return ``program`` as nftables text. Raises UnsupportedError with all refusals."""
    legal = legalise(program)
    return output_of(printed(legal), legal.notes)


def offloading(output: NftOutput, program: Program, offload: Offload) -> NftOutput:
    """Return the output of ``program`` with a flowtable for established connections.

    Raises UnsupportedError with the rules for which it is not proven that later packets are treated alike.
    """
    return output_of(with_flowtable(output.structure, program, offload), output.notes)


def output_of(table: NftTable, notes: tuple[Note, ...]) -> NftOutput:
    """Return the texts of a table."""
    return NftOutput(
        family=table.family,
        table=table.name,
        text=structure_text(table),
        delete=delete_text(table.family, table.name),
        structure=table,
        flush=flush_text(table),
        notes=notes,
    )
