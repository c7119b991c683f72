"""``ipset save`` and ``ipset list`` output.

``reader`` reads sets, ``element`` one element of a set. ``references`` gives a ruleset the sets that its
rules name.
"""

from __future__ import annotations

from translate.read.ipset.element import element_text
from translate.read.ipset.reader import IpSets, SetForm, read_ipsets
from translate.read.ipset.references import with_sets

__all__ = ["IpSets", "SetForm", "element_text", "read_ipsets", "with_sets"]
