"""What a kube-proxy is: the services that it serves, read back from the rules that it wrote.

``recover`` takes a ruleset of the iptables mode apart: every rule in a chain of kube-proxy's is understood,
and kept with its line and its counter, or listed as not understood. ``service`` and ``state`` are what comes
out, with None for what no rule tells; ``objects`` reads the API objects that tell the rest. ``chains`` makes
kube-proxy's names. Readers of parts of a ruleset: ``serving`` (the chains of one service), ``entrances`` (the
rules that lead there), ``filters`` (refusals, source ranges, health checks), ``shared`` (all of no service),
``ipvs`` (what shows of that mode); they fill a ``reading`` with ``draft`` services. ``naming`` joins objects
and rules. ``places`` finds the service of a packet; ``nftables`` is the room of the other mode.
May be imported by anything in ``harness``; itself imports ``translate`` and ``backends.model.node`` alone.
"""

from nfparity.kubeproxy.chains import ChainKind, Protocol, chain_name
from nfparity.kubeproxy.objects import ApiObjects, read_objects
from nfparity.kubeproxy.places import ServicePlaces
from nfparity.kubeproxy.recover import recover
from nfparity.kubeproxy.service import Endpoint, Line, Part, Service
from nfparity.kubeproxy.state import KubeProxyState, Mode, Remainder

__all__ = [
    "ApiObjects",
    "ChainKind",
    "Endpoint",
    "KubeProxyState",
    "Line",
    "Mode",
    "Part",
    "Protocol",
    "Remainder",
    "Service",
    "ServicePlaces",
    "chain_name",
    "read_objects",
    "recover",
]
