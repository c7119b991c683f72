"""A node whose kube-proxy runs in ipvs mode: virtual services of ``ip_vs``, kube-ipvs0, and iptables rules.

The simulator does not know ip_vs; :mod:`nfparity.assess.ipvs` has the expectation.
"""

__all__: list[str] = []
