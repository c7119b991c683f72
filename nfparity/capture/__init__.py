"""``nfparity capture``: what a node is, read and never changed, into a folder or a ``.tar.gz``.

Runs on a node that has nothing of ours: the standard library of Python 3.8 is enough, nothing of
nfparity is imported, and ``package`` packs it all into one file (``make capture``). ``tools`` runs what the
node has, ``rules`` reads both stacks of iptables, ``network`` and ``switches`` the rest, ``files`` writes and
reads snapshots, and ``program`` is the command. Anyone may import from here.
"""
