"""Recovery of kube-proxy's services from its rules, in ipvs mode with its ipsets and virtual services.

``recover`` reads a ruleset of the iptables mode: each rule in a chain of kube-proxy is recorded with its
purpose, line and counter, or listed as not understood. ``service`` and ``state`` are the result, with None
for facts that no rule shows; ``objects`` reads the API objects, and ``naming`` adds their names. ``chains``
computes the names of chains, and ``rules`` has the readers of each kind of rule.
``nftables`` generates the ruleset of the nftables mode. Imports only ``translate``,
``backends.model.node`` and ``backends.model.ipvs``.
"""

from nfparity.kubeproxy.chains import ChainKind, Protocol, chain_name
from nfparity.kubeproxy.objects import ApiObjects, read_objects
from nfparity.kubeproxy.recover import recover
from nfparity.kubeproxy.service import Endpoint, Line, Purpose, Service
from nfparity.kubeproxy.state import KubeProxyState, Mode, Remainder

__all__ = [
    "ApiObjects",
    "ChainKind",
    "Endpoint",
    "KubeProxyState",
    "Line",
    "Mode",
    "Protocol",
    "Purpose",
    "Remainder",
    "Service",
    "chain_name",
    "read_objects",
    "recover",
]
