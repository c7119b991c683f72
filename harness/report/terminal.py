"""Text and streams for colours and bars on a terminal."""

from __future__ import annotations

from collections.abc import Callable
from typing import TextIO

from harness.files.output import Output, printable

__all__ = ["plain", "styled", "unfiltered"]


def plain(text: str) -> str:
    """Return a text for a table or a bar: on one line, without control characters."""
    return printable(text).replace("\n", "\\n").replace("\t", " ")


def unfiltered(stream: TextIO) -> TextIO:
    """Return the stream for rich, which writes terminal sequences of its own around :func:`plain` text."""
    return stream.unfiltered or stream if isinstance(stream, Output) else stream


def styled(stream: TextIO) -> Callable[[str, str], None]:
    """Return a function that prints a line to a terminal in a style of rich, such as ``bold red``."""
    from rich.console import Console

    console = Console(file=unfiltered(stream), highlight=False, markup=False, soft_wrap=True)
    return lambda line, style: console.print(plain(line), style=style or None)
