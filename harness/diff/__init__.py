"""Replay of flows through backends, and comparison of their outcomes; ``parity`` runs it all.

May import ``harness.corpus`` and ``harness.files``; ``harness.report`` and ``nfparity`` import it.
"""

__all__: list[str] = []
