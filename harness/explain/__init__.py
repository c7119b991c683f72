"""Explanations: the path of a packet, rules in words, and the graph of chains.

May import ``harness.corpus``; ``harness.report`` and ``nfparity`` import it.
"""

__all__: list[str] = []
