"""Both rulesets loaded at once, as on a node during a migration.

The kernel cannot switch in one step: x_tables and nf_tables have no common transaction, and x_tables has none
over several tables. In between, packets pass the whole translation and some or all of the old tables. This
state, and the final state with kept tables, are backends that are compared like any other.
"""

from __future__ import annotations

from contextlib import AbstractContextManager

from backends.combined.backend import CombinedLoader
from backends.iptables.backend import IptablesBackend, loader_of
from backends.model.contract import Availability, Job
from backends.model.variant import Variant
from backends.nftables.backend import NftablesBackend
from backends.nftables.backend import loader_of as translated_loader
from backends.replay.session import KernelSession, open_session
from nfparity.migrate.planning.kept_tables import kept_rules, moved

__all__ = ["OverlapBackend"]


class OverlapBackend:
    """A backend with the rules of one variant and their translation, both loaded.

    Tables in ``left`` are not translated. With ``emptied`` only these old tables are loaded.
    """

    def __init__(self, variant: Variant, left: tuple[str, ...], *, emptied: bool) -> None:
        self._variant = f"iptables-{variant.value}"
        self._left = left
        self._emptied = emptied
        stays = f" {' '.join(left)}" if emptied else ""
        self.name = f"{self._variant}{stays}+nftables"

    def probe(self) -> Availability:
        """Return whether iptables and nftables can run here."""
        for backend in (IptablesBackend(self._variant), NftablesBackend()):
            availability = backend.probe()
            if not availability.ok:
                return availability
        return availability

    def open(self, job: Job) -> AbstractContextManager[KernelSession]:
        """Load both into a new node. Raises the exceptions of either."""
        from translate.condense import emit_nft, lower

        output = emit_nft(lower(moved(job.rules, self._left), level=job.level))
        old = loader_of(self._variant, kept_rules(job.ruleset, self._left) if self._emptied else job.ruleset)
        new = translated_loader(output, job.rules.family)
        return open_session(job.node, CombinedLoader(old, new), limits=output.notes)
