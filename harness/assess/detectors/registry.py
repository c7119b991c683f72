"""All detectors, in the order in which they are asked."""

from __future__ import annotations

from typing import Final

from harness.assess.detectors.affinity import AFFINITY
from harness.assess.detectors.clusterips import CLUSTER_IPS
from harness.assess.detectors.firewall import FIREWALL
from harness.assess.detectors.hairpins import HAIRPINS
from harness.assess.detectors.loadbalancers import LOAD_BALANCERS
from harness.assess.detectors.nodeports import NODE_PORTS
from harness.assess.seen import Detector

__all__ = ["DETECTORS"]

DETECTORS: Final[tuple[Detector, ...]] = (
    *AFFINITY,
    *HAIRPINS,
    *LOAD_BALANCERS,
    *NODE_PORTS,
    *CLUSTER_IPS,
    *FIREWALL,
)
