"""Any given nftables ruleset as a backend (``diff --against``, ``assess``)."""

__all__: list[str] = []
