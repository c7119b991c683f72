"""Anonymisation of snapshots: packets are treated the same, addresses and names are replaced.

``addresses`` replaces addresses so that prefixes stay prefixes and ranges stay ranges; ``names`` replaces
names; ``words`` lists the public words that stay. ``mapping`` combines them for one snapshot. ``ruletext``,
``settext`` and ``jsonfiles`` apply it to each kind of file, ``snapshot`` to all files. The key is drawn for
each snapshot and stored nowhere. Needs only the standard library, like the rest of capture.
"""
