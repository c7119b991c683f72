"""The reference: what the kernel would do, in pure Python, as a set of outcomes.

Imports ``translate.ir`` and the words of ``backends`` alone; it reads the Ruleset as written and
never sees a lowered Program, so that an error of lowering cannot hide on both sides of a diff.
"""
