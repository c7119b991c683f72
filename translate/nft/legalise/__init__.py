"""Program → legal Program (:mod:`translate.nft.legal`): every decision about how nft says a statement.

One file for each decision: ``alternatives`` (tests of several rules), ``connmarks``, ``natports``,
``recent``, ``ipsets``, ``containers`` (set, map of targets or verdict map), ``headers`` (protocols around
ports), ``apart`` (matches that nft would join), ``depth`` (jumps that nest too deep). ``draft`` is what
they write into; ``chains`` takes statement by statement.
"""

from __future__ import annotations

from translate.nft.legalise.chains import legalise

__all__ = ["legalise"]
