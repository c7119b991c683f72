"""The folder in which interpreters with an environment of their own find compiled modules."""

from __future__ import annotations

import os

__all__ = ["compiled_modules"]


def compiled_modules() -> dict[str, str]:
    """Return the variable with the folder if it is set here. Without it interpreters compile all modules."""
    name = "PYTHONPYCACHEPREFIX"
    return {name: os.environ[name]} if name in os.environ else {}
