"""What changes on a node when kube-proxy goes from iptables mode to nftables mode, shown with packets.

``catalogue`` is the known differences as data; ``facts`` is what is known of the node; ``detectors``
has, for each difference, packets that would show it and what says that a difference is of its kind;
``foreign`` is the part of the rules that stays; ``ends`` puts outcomes into few words; ``replaying``
sends the packets through both sides; ``assessing`` joins all of it. ``nfparity.cli`` and
``harness.report`` may import from here; nothing else does.
"""

__all__: list[str] = []
