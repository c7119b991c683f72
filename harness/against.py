"""A given nftables ruleset in the place of a backend: what ``nfparity diff --against`` compares with."""

from __future__ import annotations

from backends.contract import Backend
from harness.files import STDIN_NAME, read_text

__all__ = ["given_backend"]


def given_backend(path: str) -> Backend:
    """Return the backend that runs packets through the ruleset in a file (``-``: standard input).

    It is called as the file is. Raises InputError when it cannot be read, ParseError when it cannot be
    loaded as it is.
    """
    from backends.kernel.nftgiven import GivenNftBackend

    return GivenNftBackend(STDIN_NAME if path == "-" else path, read_text(path))
