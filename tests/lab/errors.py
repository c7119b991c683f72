"""Errors of the commands in this package, printed as ``nfparity`` prints them."""

from __future__ import annotations

import sys

from translate.errors import InputError, MachineError

__all__ = ["print_error"]


def print_error(error: InputError | MachineError) -> int:
    """Print an error, and return the exit status for it."""
    print(f"nfparity: {error}", file=sys.stderr)
    return 2 if isinstance(error, InputError) else 3
