"""Assessment of a node whose kube-proxy runs in ipvs mode: the change to nftables mode.

``probes`` makes the flows, ``prediction`` computes their outcomes before the change from the recovered
services, ``passages`` compares both sides, ``differences`` assigns changed packets to entries of the second
catalogue (``catalogue-ipvs.toml``), and ``assessing`` runs everything.
"""

__all__: list[str] = []
