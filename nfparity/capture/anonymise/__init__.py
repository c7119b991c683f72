"""Snapshots without the addresses and names of their origin, that say the same.

``addresses`` replaces addresses so that prefixes stay prefixes and ranges stay ranges, ``names`` names of
all kinds, ``words`` knows what is no secret. ``mapping`` brings them together for one snapshot, and
``ruletext``, ``settext`` and ``jsonfiles`` apply it to each kind of file; ``snapshot`` to all files. The key
is drawn for each snapshot and kept nowhere. Of the standard library alone, as all of capture.
"""
