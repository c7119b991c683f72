"""``iptables -L`` listings.

``reader`` reads the columns; ``printed`` turns what an extension prints behind them back into its options.
"""

from __future__ import annotations

from translate.read.listing.reader import CHAIN_HEADER, COLUMNS, ROW, read_listing

__all__ = ["CHAIN_HEADER", "COLUMNS", "ROW", "read_listing"]
