"""Why a packet goes where it goes, rules in words, and the graph of chains.

May import ``harness.corpus``; ``harness.report`` and ``nfparity`` import it.
"""

__all__: list[str] = []
