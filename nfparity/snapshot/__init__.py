"""What a node was when it was looked at: its rules, interfaces, routes and sysctls, from a folder.

``archive`` reads the folder or the ``.tar.gz`` without unpacking it; ``devices``, ``routes`` and
``switches`` read what ``ip -j`` printed and the sysctls, and ``nodefacts`` makes a
:class:`~backends.model.node.Node` of them, which says what of them it cannot hold. ``rulefiles`` reads the
rules of each variant and family when they are asked for. ``load`` puts it together, and takes a bare
file of rules, too. Any part of the harness may import from here what ``__all__`` names.
"""

from backends.model.variant import Variant
from nfparity.snapshot.archive import is_snapshot
from nfparity.snapshot.load import load_snapshot
from nfparity.snapshot.snapshot import Snapshot

__all__ = ["Snapshot", "Variant", "is_snapshot", "load_snapshot"]
