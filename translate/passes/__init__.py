"""Lowering: passes that turn the rules as written into the Program that emitters read.

:func:`lower` is the entry point. Each pass is a module named after it, whose docstring states what must
hold before, what holds after, and why the meaning is preserved. ``verify`` checks the invariants of a
Program between two passes. Imports ``translate.ir`` and ``translate.errors``; the emitters, the
harness and the application import this package.
"""

from translate.passes.pipeline import LEVELS, lower, pass_names
from translate.passes.verify import VerifyError, verify

__all__ = ["LEVELS", "VerifyError", "lower", "pass_names", "verify"]
