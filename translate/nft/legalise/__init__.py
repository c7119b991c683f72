"""Program → legal Program (:mod:`translate.nft.legal`): every decision about the form of a statement.

One file for each decision: ``alternatives`` (tests that need several rules), ``connmarks``, ``natports``,
``recent``, ``ipsets``, ``containers`` (set, map of targets or verdict map), ``headers`` (protocols around
ports), ``apart`` (matches that nft would join), ``depth`` (jumps that nest too deep), ``fragments`` (guards
against later fragments). Rules that need none of them are ``ordinary``. All write into a ``draft``;
``chains`` passes them the statements one by one.
"""

from __future__ import annotations

from translate.nft.legalise.chains import legalise

__all__ = ["legalise"]
