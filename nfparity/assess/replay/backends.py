"""The backends of the comparison: the node's iptables rules, and kube-proxy's nftables mode."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Final

from backends.combined.backend import CombinedLoader
from backends.given_nftables.backend import GivenNftBackend, GivenNftLoader
from backends.iptables.backend import IptablesBackend, loader_of
from backends.model.contract import Availability, Backend, Job
from backends.replay.loader import Loader
from backends.replay.session import KernelSession, open_session
from nfparity.assess.node.components import IPTABLES
from translate.dataclass import dataclass
from translate.ir import Ruleset
from translate.nftlisting import Listing

__all__ = ["LEGACY", "IptablesModeBackend", "NftablesModeBackend", "iptables_backend"]

LEGACY: Final = "iptables-legacy"


def iptables_backend() -> Backend:
    """Return the backend that runs the node's rules unchanged."""
    return IptablesBackend(LEGACY)


@dataclass(frozen=True, slots=True)
class IptablesModeBackend:
    """The node's iptables rules, which are those of the job, and its nftables tables."""

    native: tuple[Listing, ...]

    @property
    def name(self) -> str:
        """The name in progress reports."""
        return LEGACY

    def probe(self) -> Availability:
        """Return whether this kernel runs x_tables; nftables was tested when the tables were read."""
        return IptablesBackend(LEGACY).probe()

    def open(self, job: Job) -> AbstractContextManager[KernelSession]:
        """Load the iptables rules and then the tables, because the snapshot does not show their order."""
        tables = [GivenNftLoader(listing, job.ruleset.family) for listing in self.native]
        return open_session(job.node, CombinedLoader(loader_of(LEGACY, job.ruleset), *tables))


@dataclass(frozen=True, slots=True)
class NftablesModeBackend:
    """kube-proxy's nftables rules and the node's other components; a job's own rules are not used."""

    listing: Listing
    """The nftables ruleset."""
    rest: Ruleset
    """The iptables rules that kube-proxy did not write."""
    native: tuple[Listing, ...] = ()
    """The nftables tables that kube-proxy did not write; ``source`` is the name of each."""
    generated: bool = False
    """True if ``listing`` has rules as kube-proxy generates them for the node's services."""
    later: frozenset[str] = frozenset()
    """The components that are registered after kube-proxy's rules, as may happen after a restart."""

    @property
    def name(self) -> str:
        """The name in progress reports."""
        return "kube-proxy-nftables"

    @property
    def components(self) -> tuple[tuple[str, Listing | Ruleset], ...]:
        """The other components, by name."""
        iptables = ((IPTABLES, self.rest),) if self.rest.tables else ()
        return (*iptables, *((listing.source, listing) for listing in self.native))

    def probe(self) -> Availability:
        """Return whether this kernel runs nftables, and x_tables if there are other rules."""
        availability = GivenNftBackend("probe", "table ip nfparity_probe {\n}\n").probe()
        return IptablesBackend(LEGACY).probe() if availability.ok and self.rest.tables else availability

    def open(self, job: Job) -> AbstractContextManager[KernelSession]:
        """Load the other components, then kube-proxy's rules, then those that are ``later``."""
        family = job.ruleset.family
        earlier: list[Loader] = []
        later: list[Loader] = []
        for name, component in self.components:
            match component:
                case Ruleset():
                    loader: Loader = loader_of(LEGACY, component)
                case Listing():
                    loader = GivenNftLoader(component, family)
            (later if name in self.later else earlier).append(loader)
        return open_session(job.node, CombinedLoader(*earlier, GivenNftLoader(self.listing, family), *later))
