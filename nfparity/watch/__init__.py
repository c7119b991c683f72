"""Changes of a node's rules since a snapshot (``nfparity watch``), and of a migrated table since its load.

``table_state`` is the state of one table without parts that change by themselves, and ``drift`` lists the
differences of two states. ``states`` reads all tables and ipsets of a snapshot; ``comparing`` compares two
snapshots; ``metrics`` prints numbers of differences for Prometheus. Imported by ``nfparity.cli``,
``nfparity.migrate`` and the reports.
"""

from nfparity.watch.comparing import TableDrift, compare_states
from nfparity.watch.metrics import metrics_text
from nfparity.watch.states import states_of

__all__ = ["TableDrift", "compare_states", "metrics_text", "states_of"]
