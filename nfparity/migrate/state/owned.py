"""The nftables table of nfparity in this network namespace: loading, listing, deleting.

All its rules become active at one moment (the change of generation in ``nf_tables_commit``). Before that, its
base chains are hooked in without rules and accept, because a drop policy is set later
(``nft_chain_commit_drop_policy``). When it is deleted, its chains keep their rules until their hooks are gone
(``nf_tables_commit_chain_prepare`` leaves out chains that are not in the next generation).

Its comment contains the digest of the rules that it replaces, so the kernel itself shows which saved rules
must be restored.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, Self

from backends.model.variant import Variant
from backends.testbed.command import run
from backends.testbed.libnftables import NftHandle
from nfparity.migrate.state.saved import SavedFamily
from translate.dataclass import dataclass
from translate.errors import MachineError
from translate.ir import Family
from translate.nft import TABLE

__all__ = ["Mark", "Owned", "delete_table", "find", "is_there", "list_table", "load", "load_marked", "marked"]

_ABSENT: Final = "No such file or directory"
_LONGEST: Final = 128
"""``NFTNL_UDATA_COMMENT_MAXLEN``, with the NUL."""
_MARK: Final = re.compile(r'\n\tcomment "nfparity migrate (legacy|nft) ([0-9a-f]{64})(?: ([^"\n]*))?"\n')


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A table's comment: the replaced variant, the digest of its rules, and their folder if it fits."""

    variant: Variant
    digest: str
    """``SavedFamily.digest`` of the rules that it replaces."""
    folder: str | None

    @classmethod
    def of(cls, saved: SavedFamily, folder: Path) -> Self:
        """Return the mark of a table that replaces rules saved in ``folder``."""
        whole = cls(variant=saved.variant, digest=saved.digest, folder=str(folder))
        if len(whole.comment().encode()) < _LONGEST and re.fullmatch(r'[^"\\$\x00-\x1f\x7f]*', str(folder)):
            return whole
        return cls(variant=saved.variant, digest=saved.digest, folder=None)

    def comment(self) -> str:
        """Return the comment of the table."""
        folder = "" if self.folder is None else f" {self.folder}"
        return f"nfparity migrate {self.variant.value} {self.digest}{folder}"


@dataclass(frozen=True, slots=True)
class Owned:
    """A loaded table named ``nfparity``. ``mark`` is None if it was not loaded by ``apply``."""

    mark: Mark | None


def load(text: str) -> None:
    """Run one transaction. Raises MachineError; then nothing has changed."""
    handle = NftHandle()
    try:
        handle.run(text)
    finally:
        handle.close()


def load_marked(family: Family, text: str, mark: Mark) -> None:
    """Load the table with its mark in one transaction. Raises MachineError; then nothing has changed."""
    load(marked(family, text, mark))


def marked(family: Family, text: str, mark: Mark) -> str:
    """Return the text of the table with its mark."""
    table = f"table {family.value} {TABLE}"
    # An existing table keeps the comment with which it was created (nf_tables_updtable).
    before, deleted, after = text.partition(f"delete {table}\n")
    return f'{before}{deleted}add {table} {{ comment "{mark.comment()}"; }}\n{after}'


def delete_table(family: Family) -> None:
    """Delete the table if it exists. Raises MachineError."""
    if is_there(family):
        load(f"delete table {family.value} {TABLE}\n")


def is_there(family: Family) -> bool:
    """Return whether the table exists. Raises MachineError."""
    done = run(("nft", "list", "tables", family.value), inherit=True)
    if done.returncode:
        raise MachineError(f"nft: {done.stderr.strip()}")
    return f"table {family.value} {TABLE}" in done.stdout.split("\n")


def find(family: Family) -> Owned | None:
    """Return the loaded table, or None. Raises MachineError."""
    # nft 1.0.6 leaves the comment out of its JSON.
    listed = _list(family, "-t")
    if listed is None:
        return None
    head = re.split(r"\n\t[^\n]* \{\n", f"{listed}\n", maxsplit=1)[0]
    match = _MARK.search(f"{head}\n")
    if match is None:
        return Owned(None)
    return Owned(Mark(variant=Variant(match[1]), digest=match[2], folder=match[3]))


def list_table(family: Family) -> str | None:
    """Return the output of ``nft -j list table``, or None without the table. Raises MachineError."""
    return _list(family, "-j")


def _list(family: Family, option: str) -> str | None:
    done = run(("nft", option, "list", "table", family.value, TABLE), inherit=True)
    if done.returncode:
        if _ABSENT in done.stderr:
            return None
        raise MachineError(f"nft: {done.stderr.strip()}")
    return done.stdout
