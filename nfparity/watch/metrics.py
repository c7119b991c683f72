"""Numbers of differences in the text format of OpenMetrics, for the textfile collector of node_exporter."""

from __future__ import annotations

from collections.abc import Iterable

from nfparity.watch.comparing import TableDrift

__all__ = ["metrics_text"]


def metrics_text(tables: Iterable[TableDrift], *, now: float) -> str:
    """Return the metrics of one comparison; ``now`` is its time in seconds since the epoch."""
    lines = [
        "# TYPE nfparity_drift gauge",
        "# HELP nfparity_drift Differences of a table or ipset from the snapshot.",
        *(f'nfparity_drift{{table="{_escaped(table.table)}"}} {len(table.drift)}' for table in tables),
        "# TYPE nfparity_drift_checked_timestamp_seconds gauge",
        "# UNIT nfparity_drift_checked_timestamp_seconds seconds",
        "# HELP nfparity_drift_checked_timestamp_seconds Time of the comparison.",
        f"nfparity_drift_checked_timestamp_seconds {now:.0f}",
        "# EOF",
    ]
    return "".join(f"{line}\n" for line in lines)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
