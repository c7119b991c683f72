"""From the rules as written to the Program that the emitters read.

:func:`lower` is the only door. Each pass is a file named after it, whose docstring says what must
hold before, what holds after, and why the meaning is preserved; ``verify`` checks what every
Program must satisfy between two passes. Imports ``translate.ir`` alone; the emitters and the
harness import this package.
"""

from translate.passes.pipeline import LEVELS, lower, pass_names
from translate.passes.verify import VerifyError, verify

__all__ = ["LEVELS", "VerifyError", "lower", "pass_names", "verify"]
