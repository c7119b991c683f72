"""A :class:`~translate.ir.Ruleset` as ``iptables-save`` text, and its ipsets as ``ipset save`` text.

The opposite of ``translate.read``: it prints the spelling that every rule keeps, never its meaning, so the
output of iptables-save is reproduced to the byte. Any package may import it.
"""

from translate.write.ipset import write_ipsets
from translate.write.save import write_save

__all__ = ["write_ipsets", "write_save"]
