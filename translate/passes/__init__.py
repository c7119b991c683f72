"""Lowering: passes that turn the rules as written into the Program that emitters read.

:func:`lower` is the entry point. Each pass is a module named after it, whose docstring states what must
hold before, what holds after, and why the meaning is preserved. ``verify`` checks the invariants of a
Program between two passes. Imports ``translate.ir`` and ``translate.errors``; the emitters, the
harness and the application import this package.

The passes of -O2 share one premise, on which :mod:`translate.condense` rests. A pass may ask of an address or
a port in a rule whether it is equal to another one, and whether it lies in a prefix or range that another
rule is about. It may not ask for more: whether it is even, or which of two is greater. The result then does
not depend on the values that kube-proxy happened to give to a service.
``tests/unit/translate/condense/test_premise.py`` checks this for every pass of the level.
"""

from translate.passes.pipeline import LEVELS, lower, pass_names
from translate.passes.verify import VerifyError, verify

__all__ = ["LEVELS", "VerifyError", "lower", "pass_names", "verify"]
