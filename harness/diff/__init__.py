"""Replaying flows through backends and comparing what becomes of them; ``parity`` puts it together.

May import ``harness.corpus`` and ``harness.files``; ``harness.report`` and ``nfparity`` import it.
"""

__all__: list[str] = []
