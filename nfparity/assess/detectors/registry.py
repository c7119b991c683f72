"""All detectors, in the order in which they may claim a changed packet."""

from __future__ import annotations

from typing import Final

from nfparity.assess.detectors.affinity import AFFINITY
from nfparity.assess.detectors.clusterips import CLUSTER_IPS
from nfparity.assess.detectors.firewall import FIREWALL
from nfparity.assess.detectors.hairpins import HAIRPINS
from nfparity.assess.detectors.loadbalancers import LOAD_BALANCERS
from nfparity.assess.detectors.nodeports import NODE_PORTS
from nfparity.assess.difference import Detector

__all__ = ["DETECTORS"]

DETECTORS: Final[tuple[Detector, ...]] = (
    *AFFINITY,
    *HAIRPINS,
    *LOAD_BALANCERS,
    *NODE_PORTS,
    *CLUSTER_IPS,
    *FIREWALL,
)
