"""The timer of a connection in nftables: ``ct expiration``, in milliseconds with 32 bits."""

from __future__ import annotations

from typing import Final

__all__ = ["LAST_SECOND", "last_millisecond"]

_SECOND: Final = 1000
_MOST: Final = (1 << 32) - 1

LAST_SECOND: Final = _MOST // _SECOND
"""The last second of which ``ct expiration`` has a part, after 49 days."""


def last_millisecond(second: int) -> str:
    """Return the end of a second in nft's spelling, or the end of all times."""
    seconds, rest = divmod(min(second * _SECOND + _SECOND - 1, _MOST), _SECOND)
    return f"{seconds}s{rest}ms"
