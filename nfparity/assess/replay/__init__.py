"""Flows through kube-proxy's iptables mode and its nftables mode.

``replaying`` sends flows through both ``backends``, one flow for each class of ``alike`` flows. ``orders``
repeats them in each order in which chains can be registered; ``results`` are what it compares.
"""
