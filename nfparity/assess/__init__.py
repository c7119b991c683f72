"""Changes on a node when kube-proxy moves from iptables mode to nftables mode, shown with packets.

``catalogue`` holds the known differences as data, ``node`` the facts of one node. ``detectors`` contains one
detector per difference: it makes flows that would show the difference, and claims changed packets of its
kind. ``fate`` reduces an outcome to one word. ``replay`` sends the flows through both modes, and
``reordering`` proves that the order of registration changes nothing for most of them; ``assessing`` combines
the results. Only ``nfparity.cli`` and ``nfparity.report`` import this package.
"""

__all__: list[str] = []
