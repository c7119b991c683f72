"""``iptables -L`` listings.

``reader`` reads headers and tables, ``rows`` one row; ``printed`` turns what an extension prints behind
the columns back into its options.
"""

from __future__ import annotations

from translate.read.listing.reader import CHAIN_HEADER, read_listing
from translate.read.listing.rows import COLUMNS, ROW

__all__ = ["CHAIN_HEADER", "COLUMNS", "ROW", "read_listing"]
