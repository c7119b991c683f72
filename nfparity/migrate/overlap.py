"""Both rulesets in force at once, as they are on a node between the two ends of a switch.

A switch is not one step of the kernel: x_tables and nf_tables have no transaction together, nor has
x_tables one over several tables. What packets meet meanwhile is the whole translation and, besides it, all
or some of the old tables. A backend of that state, with all of them, is compared like any other; and so is
one of the state afterwards where some tables stay.
"""

from __future__ import annotations

from contextlib import AbstractContextManager

from backends.combined.backend import BesideLoader
from backends.iptables.backend import IptablesBackend, loader_of
from backends.model.contract import Availability, Job
from backends.model.variant import Variant
from backends.nftables.backend import NftablesBackend, NftablesLoader
from backends.replay.session import KernelSession, open_session
from nfparity.migrate.kept_tables import moved, staying

__all__ = ["OverlapBackend"]


class OverlapBackend:
    """Runs packets through the rules in one variant and their translation, one loaded over the other.

    The tables that are ``left`` are not translated. With ``emptied`` they alone are loaded of the old ones.
    """

    def __init__(self, variant: Variant, left: tuple[str, ...], *, emptied: bool) -> None:
        self._variant = f"iptables-{variant.value}"
        self._left = left
        self._emptied = emptied
        stays = f" {' '.join(left)}" if emptied else ""
        self.name = f"{self._variant}{stays}+nftables"

    def probe(self) -> Availability:
        """Say whether both can run here."""
        for one in (IptablesBackend(self._variant), NftablesBackend()):
            found = one.probe()
            if not found.ok:
                return found
        return found

    def open(self, job: Job) -> AbstractContextManager[KernelSession]:
        """Load both into a fresh node. Raises what either raises."""
        from translate.nft import emit
        from translate.passes import lower

        output = emit(lower(moved(job.ruleset, self._left), level=job.level))
        old = loader_of(self._variant, staying(job.ruleset, self._left) if self._emptied else job.ruleset)
        new = NftablesLoader(output.text, job.ruleset.family, flush=output.flush)
        return open_session(job.node, BesideLoader(old, new), limits=output.notes)
