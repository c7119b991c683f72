"""``nfparity capture``: a snapshot of a node, as a folder or a ``.tar.gz``; nothing is changed.

It also runs on nodes where nfparity is not installed, and needs only Python 3.8 and ``harness.files``.
``package`` packs it into one file (``make capture``). ``tools`` runs the node's programs; ``rules`` reads
both variants of iptables; ``network``, ``sysctls`` and ``modules`` read the rest; ``expressions`` tries those
of nftables; ``files`` writes and reads snapshots; ``program`` is the command. Any package may import it.
"""
