"""``nfparity watch``: changes of a node's rules since a snapshot, in tables of any owner.

``states`` reads the tables and ipsets of a snapshot without parts that change by themselves; ``comparing``
finds the differences; ``metrics`` prints their numbers for Prometheus. Imported by ``nfparity.cli``.
"""

from nfparity.watch.comparing import TableDrift, compare_states
from nfparity.watch.metrics import metrics_text
from nfparity.watch.states import states_of

__all__ = ["TableDrift", "compare_states", "metrics_text", "states_of"]
