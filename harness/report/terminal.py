"""Colours and bars on a terminal: what is sent there beside text, and what the text must be then."""

from __future__ import annotations

from typing import TextIO

from harness.files.output import Output, printable

__all__ = ["plain", "unfiltered"]


def plain(text: str) -> str:
    """Return a text as a table or a bar may show it: on one line, and nothing that a terminal obeys."""
    return printable(text).replace("\n", "\\n").replace("\t", " ")


def unfiltered(stream: TextIO) -> TextIO:
    """Return the stream to which rich may send its own sequences around text that is :func:`plain`."""
    return stream.unfiltered or stream if isinstance(stream, Output) else stream
