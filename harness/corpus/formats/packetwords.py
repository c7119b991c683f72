"""Tests of a packet's headers and bytes in words."""

from __future__ import annotations

from translate.ir import Field, HeaderOptions

__all__ = ["options_text"]


def options_text(test: HeaderOptions) -> str:
    """Return a description of a test of the options in a header of IPv6."""
    header = "hop-by-hop" if test.header is Field.HOP_LENGTH else "destination"
    listed = (f"{kind}" if length is None else f"{kind} with {length} bytes" for kind, length in test.options)
    return f"its {header} options begin with {', then '.join(listed)}"
