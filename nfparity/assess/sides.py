"""The two sides of the comparison on the real kernel: the node as it is, and as it will be."""

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

__all__ = ["LEGACY", "Then", "today_backend"]

LEGACY: Final = "iptables-legacy"


def today_backend() -> Backend:
    """Return what runs the node's rules as they are."""
    return IptablesBackend(LEGACY)


@dataclass(frozen=True, slots=True)
class Then:
    """kube-proxy's nftables rules, beside the rules of the node that stay; a job's own rules are not used."""

    listing: Listing
    """The nftables ruleset."""
    rest: Ruleset
    """What stays of the iptables rules."""
    late: bool = False
    """Whether what stays is registered after kube-proxy's, as it may be when the node has restarted."""

    @property
    def name(self) -> str:
        """What progress calls it."""
        return "kube-proxy-nftables"

    def probe(self) -> Availability:
        """Say whether this kernel takes nftables, and x_tables where rules stay there."""
        found = GivenNftBackend("probe", "table ip nfparity_probe {\n}\n").probe()
        return IptablesBackend(LEGACY).probe() if found.ok and self.rest.tables else found

    def open(self, job: Job) -> AbstractContextManager[KernelSession]:
        """Load the rules that stay and then kube-proxy's, as on a node that runs; or the other way."""
        loader: Loader = GivenNftLoader(self.listing, job.ruleset.family)
        if self.rest.tables:
            staying = loader_of(LEGACY, self.rest)
            loader = BesideLoader(loader, staying) if self.late else BesideLoader(staying, loader)
        return open_session(job.node, loader)
