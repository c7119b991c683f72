"""Snapshots of nodes: rules, interfaces, routes and sysctls, read from a folder or an archive.

``archive`` reads the folder or the ``.tar.gz`` without unpacking it. ``devices``, ``routes`` and ``sysctls``
read the output of ``ip -j`` and the sysctls; ``nodefacts`` makes a :class:`~backends.model.node.Node`,
with notes about facts that a Node cannot represent. ``rulefiles`` reads the rules of each variant and family
on demand. ``load`` reads a snapshot, or a bare file of rules. Other packages import the names in ``__all__``.
"""

from backends.model.variant import Variant
from nfparity.snapshot.archive import is_snapshot
from nfparity.snapshot.load import load_snapshot
from nfparity.snapshot.snapshot import Snapshot

__all__ = ["Snapshot", "Variant", "is_snapshot", "load_snapshot"]
