"""What kube-proxy's nftables mode would load for the services of a state, by Kubernetes version.

``layout`` is what differs between versions, as data; ``surroundings`` what no dump of the iptables mode has,
and how it is inferred; ``skeleton`` and ``serving`` write a ``script`` under ``names`` that are kube-proxy's.
A real kube-proxy's output for the same objects is the test.
Imported by ``harness``; itself imports ``translate``, ``backends.model.node`` and the rest of this room.
"""

from nfparity.kubeproxy.nftables.layout import LAYOUTS, Layout, layout_of
from nfparity.kubeproxy.nftables.mode import NftablesMode, nftables_mode
from nfparity.kubeproxy.nftables.surroundings import Surroundings, surroundings_of

__all__ = [
    "LAYOUTS",
    "Layout",
    "NftablesMode",
    "Surroundings",
    "layout_of",
    "nftables_mode",
    "surroundings_of",
]
