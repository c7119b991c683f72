"""Legal Program → nftables table: one text for each part, in order. Nothing is decided or refused here."""

from __future__ import annotations

from translate.nft.printer.tables import TABLE, printed

__all__ = ["TABLE", "printed"]
