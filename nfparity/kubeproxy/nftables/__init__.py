"""Generator of the ruleset of kube-proxy's nftables mode, by Kubernetes version.

``layout`` lists the differences between versions as data. ``inferred_config`` infers the configuration that
no iptables dump contains. ``skeleton`` and ``serving`` write a ``script`` with kube-proxy's ``names``. Tests
compare the result with the output of a real kube-proxy for the same objects.
"""

from nfparity.kubeproxy.nftables.inferred_config import InferredConfig, infer_config
from nfparity.kubeproxy.nftables.layout import LAYOUTS, Layout, layout_of
from nfparity.kubeproxy.nftables.mode import NftablesMode, nftables_mode

__all__ = [
    "LAYOUTS",
    "InferredConfig",
    "Layout",
    "NftablesMode",
    "infer_config",
    "layout_of",
    "nftables_mode",
]
