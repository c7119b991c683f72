"""Metrics of a comparison."""

from __future__ import annotations

from nfparity.watch.comparing import TableDrift
from nfparity.watch.drift import Change, Drift
from nfparity.watch.metrics import metrics_text


def test_text_of_openmetrics() -> None:
    one = Drift(change=Change.EXTRA, where="chain a", applied=None, live="")
    tables = (TableDrift("iptables-nft nat", ()), TableDrift('nft ip a"b\\c', (one, one)))
    assert metrics_text(tables, now=1_700_000_000.7).splitlines() == [
        "# TYPE nfparity_drift gauge",
        "# HELP nfparity_drift Differences of a table or ipset from the snapshot.",
        'nfparity_drift{table="iptables-nft nat"} 0',
        'nfparity_drift{table="nft ip a\\"b\\\\c"} 2',
        "# TYPE nfparity_drift_checked_timestamp_seconds gauge",
        "# UNIT nfparity_drift_checked_timestamp_seconds seconds",
        "# HELP nfparity_drift_checked_timestamp_seconds Time of the comparison.",
        "nfparity_drift_checked_timestamp_seconds 1700000001",
        "# EOF",
    ]
