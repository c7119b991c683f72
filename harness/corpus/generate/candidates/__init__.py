"""Flows that may bring a packet with given properties to a rule.

``constraints`` are the values that the fields of the packet may have; ``values`` picks addresses and ports
that satisfy them, ``headers`` other header fields and ``clock`` times. ``candidates`` builds flows with them,
and ``counted`` flows that reach the counts of ``-m connbytes``.
"""
