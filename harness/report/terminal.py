"""Text and streams for colours and bars on a terminal."""

from __future__ import annotations

from typing import TextIO

from harness.files.output import Output, printable

__all__ = ["plain", "unfiltered"]


def plain(text: str) -> str:
    """Return a text for a table or a bar: on one line, without control characters."""
    return printable(text).replace("\n", "\\n").replace("\t", " ")


def unfiltered(stream: TextIO) -> TextIO:
    """Return the stream for rich, which writes terminal sequences of its own around :func:`plain` text."""
    return stream.unfiltered or stream if isinstance(stream, Output) else stream
