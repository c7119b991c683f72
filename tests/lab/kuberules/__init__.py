"""Rules that a kube-proxy would write, of any size: for tests and benchmarks that need more than a dump.

``cluster`` is the input of kube-proxy: services, endpoints and their nodes. ``rules`` writes the
iptables-save text of its iptables mode for a cluster. ``shape`` draws a cluster of a wanted size and mixture;
``uses`` makes flows that use every service of one; ``pernode`` is a cluster as seen from each of its nodes.
``python -m tests.lab.kuberules`` prints rules and the node to go with them, or writes snapshots of nodes.
Imported by tests and benchmarks; needs no root and no kernel.
"""

from tests.lab.kuberules.cluster import Cluster, Endpoint, Protocol, Service
from tests.lab.kuberules.rules import kube_proxy_rules
from tests.lab.kuberules.shape import Shape, draw_cluster
from tests.lab.kuberules.uses import service_uses

__all__ = [
    "Cluster",
    "Endpoint",
    "Protocol",
    "Service",
    "Shape",
    "draw_cluster",
    "kube_proxy_rules",
    "service_uses",
]
