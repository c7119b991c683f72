"""Lowering: passes that turn a Ruleset into the Program that emitters read.

:func:`lower` is the entry point. Each pass is a module of the same name, whose docstring states the
precondition, the postcondition, and why the meaning is preserved. ``verify`` checks the invariants of a
Program between two passes. Imports ``translate.ir`` and ``translate.errors``; the emitters, the harness and
the application import this package.

The passes of -O2 share one premise, on which :mod:`translate.condense` is based. A pass may test whether an
address or a port in a rule is equal to another one, and whether it is in a prefix or range of another rule.
It may make no other test, such as whether it is even, or which of two is greater. So the result does not
depend on the values that kube-proxy happened to give to a service.
``tests/unit/translate/condense/test_premise.py`` checks this for every pass of the level.
"""

from translate.passes.pipeline import LEVELS, lower, pass_names
from translate.passes.verify import VerifyError, verify

__all__ = ["LEVELS", "VerifyError", "lower", "pass_names", "verify"]
