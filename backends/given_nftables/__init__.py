"""An nftables ruleset of any make in the place of a backend (``diff --against``, ``assess``)."""

__all__: list[str] = []
