"""``iptables -L`` listings.

``reader`` reads headers and tables, ``rows`` one row; ``printed`` turns the text of extensions after the
columns back into their options.
"""

from __future__ import annotations

from translate.read.listing.reader import CHAIN_HEADER, read_listing
from translate.read.listing.rows import COLUMNS, ROW

__all__ = ["CHAIN_HEADER", "COLUMNS", "ROW", "read_listing"]
