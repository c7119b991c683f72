"""The state of a migration: the live tables, and the saved files from which it can be rolled back.

``tables`` reads and writes the iptables tables, ``ipsets`` reads ipsets, and ``owned`` is the nftables table
of nfparity. ``place``, ``record``, ``saved`` and ``journal`` are the files on disk.
"""
