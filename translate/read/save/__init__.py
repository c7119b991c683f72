"""``iptables-save`` text, ``iptables -S`` output and ``iptables-restore --noflush`` input.

``reader`` goes through the lines; ``commands`` applies one command (``-A``, ``-N``, ``-P``, …) to a table;
``lines`` names the table of each line for callers that do not read the rules.
"""

from __future__ import annotations

from translate.read.save.lines import lines_by_table
from translate.read.save.reader import LONGEST_LINE, read_fragment, read_lines, read_rules, read_save

__all__ = ["LONGEST_LINE", "lines_by_table", "read_fragment", "read_lines", "read_rules", "read_save"]
