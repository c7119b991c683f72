"""Changes on a node when kube-proxy moves from iptables mode to nftables mode, shown with packets.

``catalogue`` holds the known differences as data, ``facts`` the facts of one node. ``detectors`` contains one
detector per difference: it makes flows that would show the difference, and claims changed packets of its
kind. ``other_rules`` separates the rules that kube-proxy did not write. ``fate`` reduces an outcome to one
word. ``alike`` finds flows to services of one kind. ``replaying`` sends the flows through both modes;
``assessing`` combines the results. Only ``nfparity.cli`` and ``nfparity.report`` import this package.
"""

__all__: list[str] = []
