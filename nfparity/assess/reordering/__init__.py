"""Proofs that a packet has the same outcome in two orders of registration.

``packets`` has what is known about a packet at a place: the values that its fields may have. ``iptables`` and
``nftables`` find the effects that rules may have on such a packet. ``flows`` decides which flows the order of
registration can affect (``docs/decisions/0030-the-other-order-is-replayed-where-it-matters.md``).
"""

from nfparity.assess.reordering.flows import Reordering

__all__ = ["Reordering"]
