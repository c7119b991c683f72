"""A given nftables ruleset in the place of a backend: what ``nfparity diff --against`` compares with."""

from __future__ import annotations

from backends.contract import Backend
from harness.files import STDIN_NAME, read_text
from harness.snapshot import is_snapshot, load_snapshot
from translate.errors import InputError

__all__ = ["given_backend"]


def given_backend(path: str) -> Backend:
    """Return the backend that runs packets through the ruleset in a file (``-``: standard input).

    Of a snapshot it takes what nft listed. It is called as the file is. Raises InputError when it cannot
    be read, ParseError when it cannot be loaded as it is.
    """
    from backends.kernel.nftgiven import GivenNftBackend

    return GivenNftBackend(STDIN_NAME if path == "-" else path, _text(path))


def _text(path: str) -> str:
    if path == "-" or not is_snapshot(path):
        return read_text(path)
    listed = load_snapshot(path).nft
    if listed is None:
        raise InputError(f"{path}: no nftables ruleset in this snapshot (it would be nft.json)")
    return listed
