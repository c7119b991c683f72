"""nftables: the translated rules in one owned table, loaded through libnftables."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Final

from backends.model.contract import Availability, Job
from backends.nftables.connections import gives_source_ports, sets_zones
from backends.nftables.emptying import SetEmptier, only_empties_sets
from backends.replay.availability import kernel_lacks
from backends.replay.loader import JIFFIES, Loader, refuse_endless_walks
from backends.replay.session import KernelSession, open_session
from backends.testbed.libnftables import NftHandle, find_bindings
from backends.testbed.tapnode import TapNode
from translate.errors import MachineError
from translate.ir import Family

if TYPE_CHECKING:
    from translate.nft import NftOutput

__all__ = ["NftablesBackend", "NftablesLoader", "loader_of"]


_MOST: Final = 1024
"""The most entries of a set that packets fill: more than the packets between two runs have addresses."""
_FILLED: Final = re.compile(
    r"(?m)^(\s*size )(\d+)(?=\n\s*flags dynamic[^\n]*(?:\n\s*(?:timeout|comment) [^\n]*)*\n\s*\}$)"
)
"""The size of such a set, if it has no entries yet."""
_DYNAMIC: Final = "flags dynamic"
_ACCOUNTS: Final = re.compile(r"ct (?:original |reply )?(?:packets|bytes|avgpkt)\b")
"""A test of the packets of a connection, if no letter precedes it. Patterns with a literal first are fast."""


Sets = frozenset[tuple[str, str, str]]
"""The families, tables and names of some sets."""
_NONE: Final[Mapping[str, Sets]] = {}


class NftablesLoader(Loader):
    """Loads nft text in one transaction, through one permanent handle.

    A set that packets fill gets room for at most :data:`_MOST` entries, because it is emptied between runs,
    and to empty it the kernel walks its whole table (``nft_rhash_walk``): milliseconds for a million entries.
    """

    leaves_nothing = True

    def __init__(
        self, text: str, family: Family = Family.IP, *, flush: str = "", sets_of: Mapping[str, Sets] = _NONE
    ) -> None:
        """Keep the text. ``flush`` restores the sets that packets fill.

        ``sets_of`` are the sets that replace lists of ``-m recent``, by the names of the lists.
        """
        self._text = text
        if _DYNAMIC in text:  # texts have millions of characters
            self._text = _FILLED.sub(lambda size: f"{size[1]}{min(int(size[2]), _MOST)}", text)
        self._flush = flush
        self.lists = bool(flush)
        self.family = family
        if " ct count " in text:
            self.gap = JIFFIES
        self.counts = any(
            not text[match.start() - 1 : match.start()].isalnum() for match in _ACCOUNTS.finditer(text)
        )
        self.pins = "meta cpu" in text
        self.zones, self.gives_ports = sets_zones(text), gives_source_ports(text)
        self._handle: NftHandle | None = None
        self._emptier: SetEmptier | None = None
        self._sets_of = sets_of

    def load(self, tap: TapNode) -> None:
        """Load the rules; raises MachineError with the message of libnftables."""
        self._handle = NftHandle()
        self._handle.run(self._text)

    def change(self, text: str) -> None:
        """Run another transaction through the handle. If it raises MachineError, nothing has changed."""
        if self._handle is None:
            raise ValueError("nothing is loaded")
        self._handle.run(text)

    def register_again(self) -> None:
        """Load the text again, which deletes its table first."""
        assert self._handle is not None
        self._handle.run(self._text)

    def forget_lists(self) -> None:
        """Empty the sets that packets fill."""
        self.forget_filled_lists(None)

    def forget_filled_lists(self, names: frozenset[str] | None) -> None:
        """The same, but only for the sets of these lists of ``-m recent``, if all of them are known."""
        if self._emptier is None and only_empties_sets(self._flush):
            self._emptier = SetEmptier(self._flush)
        if self._emptier is not None:
            self._emptier.empty(None if names is None else self._sets_for(names))
        elif self._handle is not None:
            self._handle.run(self._flush)

    def _sets_for(self, names: frozenset[str]) -> Sets | None:
        if not names <= self._sets_of.keys():
            return None
        return Sets(each for name in names for each in self._sets_of[name])

    def close(self) -> None:
        """Free the handle."""
        if self._emptier is not None:
            self._emptier.close()
            self._emptier = None
        if self._handle is not None:
            self._handle.close()
            self._handle = None


def loader_of(output: NftOutput, family: Family) -> NftablesLoader:
    """Return a loader of a translation."""
    table = output.structure
    sets_of = {
        each.name: frozenset((table.family, table.name, name) for name in each.names) for each in table.lists
    }
    return NftablesLoader(output.text, family, flush=output.flush, sets_of=sets_of)


class NftablesBackend:
    """Runs packets through the nftables translation on this kernel."""

    name: Final = "nftables"

    def probe(self) -> Availability:
        """Return whether the bindings exist and this kernel accepts a small table in a namespace."""
        try:
            find_bindings()
        except MachineError as e:
            return Availability(False, str(e))
        return kernel_lacks(NftablesLoader(_PROBE))

    def open(self, job: Job) -> AbstractContextManager[KernelSession]:
        """Translate the job's rules at its level and load them into a fresh node."""
        from translate.condense import emit_nft, lower

        output = emit_nft(lower(job.rules, level=job.level))
        refuse_endless_walks(job.ruleset, self.name)
        return open_session(job.node, loader_of(output, job.rules.family), limits=output.notes)


_PROBE: Final = """\
table ip nfparity {
	map draw {
		typeof numgen random mod 2147483648 : verdict
		flags interval
		elements = { 0-1073741823 : accept }
	}
	chain forward {
		type filter hook forward priority 0; policy accept;
		ct state new fib daddr type local numgen random mod 2147483648 vmap @draw
	}
	chain postrouting {
		type nat hook postrouting priority 100; policy accept;
		masquerade fully-random
	}
}
"""
