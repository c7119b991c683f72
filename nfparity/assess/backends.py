"""The two backends of the comparison: iptables-legacy, and kube-proxy's nftables mode."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final

from backends.combined.backend import BesideLoader
from backends.given_nftables.backend import GivenNftBackend, GivenNftLoader
from backends.iptables.backend import IptablesBackend, loader_of
from backends.model.contract import Availability, Backend, Job
from backends.replay.loader import Loader
from backends.replay.session import KernelSession, open_session
from translate.ir import Ruleset
from translate.nftlisting import Listing

__all__ = ["LEGACY", "NftablesModeBackend", "iptables_backend"]

LEGACY: Final = "iptables-legacy"


def iptables_backend() -> Backend:
    """Return the backend that runs the node's rules unchanged."""
    return IptablesBackend(LEGACY)


@dataclass(frozen=True, slots=True)
class NftablesModeBackend:
    """kube-proxy's nftables rules and the node's other iptables rules; a job's own rules are not used."""

    listing: Listing
    """The nftables ruleset."""
    rest: Ruleset
    """The iptables rules that kube-proxy did not write."""
    late: bool = False
    """True if ``rest`` is registered after kube-proxy's rules, as may happen after a restart of the node."""

    @property
    def name(self) -> str:
        """The name in progress reports."""
        return "kube-proxy-nftables"

    def probe(self) -> Availability:
        """Return whether this kernel runs nftables, and x_tables if there are other rules."""
        availability = GivenNftBackend("probe", "table ip nfparity_probe {\n}\n").probe()
        return IptablesBackend(LEGACY).probe() if availability.ok and self.rest.tables else availability

    def open(self, job: Job) -> AbstractContextManager[KernelSession]:
        """Load the other rules, then kube-proxy's, as on a running node; with ``late`` in reverse order."""
        loader: Loader = GivenNftLoader(self.listing, job.ruleset.family)
        if self.rest.tables:
            staying = loader_of(LEGACY, self.rest)
            loader = BesideLoader(loader, staying) if self.late else BesideLoader(staying, loader)
        return open_session(job.node, loader)
