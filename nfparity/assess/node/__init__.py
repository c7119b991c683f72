"""The node that is assessed: kube-proxy's services, the other rules, and the other components.

``facts`` is what detectors read; it has an ``index`` of services and of kube-proxy's rules. ``other_rules``
are the rules that kube-proxy did not write, and ``components`` the programs whose chains share hooks with it.
``nativetests`` are the constants of their nftables tables, which separate services (``cells``, ``lookups``);
``nftreads`` knows the expressions of nft.
"""
