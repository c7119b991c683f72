"""Reduction of a difference to the smallest ruleset and the shortest flow that still show it.

``proposals`` makes smaller rulesets and flows, and does not know about backends. ``engine`` keeps those that
still show the difference, and does not know about rules. ``shrink`` uses both and writes a case folder with a
report. May import ``harness.corpus``, ``harness.diff`` and ``harness.files``; ``nfparity.cli`` imports it.
"""

__all__: list[str] = []
