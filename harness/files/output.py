"""Safe output: streams that escape control characters for terminals.

Names of chains, comments, ids of flows and names of files come from outside and may contain escape sequences,
C1 controls and changes of writing direction. All output passes through :class:`Output`, which writes these as
``\\u001b``, as JSON does.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any, TextIO

from harness.files.errors import MACHINE, CaptureError

__all__ = ["Output", "printable", "standard_streams"]

_SUSPECT = re.compile(r"[^\t\n\x20-\x7e]")


def printable(text: str, encoding: str | None = None) -> str:
    """Return a text with its unprintable characters escaped as ``\\uXXXX``.

    Tabs, line ends, and characters of :meth:`str.isprintable` that ``encoding`` can encode are printable.
    """
    if _SUSPECT.search(text) is None:
        return text
    whole = encoding is None or encoding.lower().replace("_", "-") in ("utf-8", "utf8")

    def shown(match: re.Match[str]) -> str:
        character = match.group(0)
        if character.isprintable() and (whole or _has(str(encoding), character)):
            return character
        code = ord(character)
        if code <= 0xFFFF:
            return f"\\u{code:04x}"
        code -= 0x10000
        return f"\\u{0xD800 | code >> 10:04x}\\u{0xDC00 | code & 0x3FF:04x}"

    return _SUSPECT.sub(shown, text)


def _has(encoding: str, character: str) -> bool:
    try:
        character.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True


class Output(io.TextIOBase):
    """A standard stream that writes only printable text. ``stream`` is None if it was closed.

    A write error of a ``needed`` stream raises CaptureError, so that incomplete output does not go unnoticed.
    Errors of another stream (messages) are ignored. BrokenPipeError propagates.
    """

    def __init__(self, stream: TextIO | None, name: str, *, needed: bool) -> None:
        super().__init__()
        self._stream = stream
        self._name = name
        self._needed = needed

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """The encoding of the stream."""
        return getattr(self._stream, "encoding", None) or "utf-8"

    @property
    def unfiltered(self) -> TextIO | None:
        """The stream itself, for callers that send terminal sequences around :func:`printable` text."""
        return self._stream

    def writable(self) -> bool:
        """Return True: the stream can always be written to."""
        return True

    def isatty(self) -> bool:
        """Return whether the stream is a terminal."""
        try:
            return self._stream is not None and self._stream.isatty()
        except ValueError:
            return False

    def fileno(self) -> int:
        """Return the descriptor of the stream."""
        if self._stream is None:
            raise io.UnsupportedOperation(f"{self._name} is closed")
        return self._stream.fileno()

    def write(self, text: str) -> int:
        """Write a text, with unprintable characters escaped."""
        self._guarded(lambda stream: stream.write(printable(text, self.encoding)))
        return len(text)

    def write_exactly(self, data: bytes) -> None:
        """Write data unchanged, or as printable text to a terminal."""
        if self.isatty():
            self.write(data.decode("utf-8", "surrogateescape"))
            return

        def written(stream: TextIO) -> None:
            stream.flush()
            below = getattr(stream, "buffer", None)
            if below is None:
                stream.write(data.decode("utf-8", "surrogateescape"))
            else:
                below.write(data)

        self._guarded(written)

    def flush(self) -> None:
        """Flush the stream."""
        if self._stream is not None:
            self._guarded(lambda stream: stream.flush())

    def close(self) -> None:
        """Do nothing: the stream belongs to its owner, who may have closed it when this object is dropped."""

    def _guarded(self, action: Callable[[TextIO], object]) -> None:
        try:
            if self._stream is None:
                raise ValueError("it is closed")
            action(self._stream)
        except BrokenPipeError:
            self.abandon()
            if self._needed:
                raise
        except (OSError, ValueError) as e:
            self.abandon()
            if self._needed:
                reason = getattr(e, "strerror", None) or str(e)
                raise CaptureError(f"{self._name} cannot be written: {reason.lower()}", MACHINE) from e

    def abandon(self) -> None:
        """Discard buffered output, which Python would otherwise try to write again at exit."""
        stream = self._stream
        if stream is not None and any(stream is standard for standard in (sys.__stdout__, sys.__stderr__)):
            with contextlib.suppress(OSError, ValueError):
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, stream.fileno())
                os.close(nowhere)


def _open_if_closed(descriptor: int, mode: int) -> None:
    try:
        os.fstat(descriptor)
    except OSError:
        opened = os.open(os.devnull, mode)
        if opened != descriptor:
            os.dup2(opened, descriptor)
            os.close(opened)
        os.set_inheritable(descriptor, True)


@contextlib.contextmanager
def standard_streams() -> Iterator[None]:
    """Pass all output of this process through :class:`Output` within the context.

    Closed standard streams are opened on ``/dev/null``. Otherwise the next opened file would get their
    descriptor, and messages would be written into it.
    """
    for descriptor, mode in ((0, os.O_RDONLY), (1, os.O_WRONLY), (2, os.O_WRONLY)):
        _open_if_closed(descriptor, mode)
    before: tuple[Any, Any] = sys.stdout, sys.stderr
    sys.stdout = Output(before[0], "standard output", needed=True)
    sys.stderr = Output(before[1], "standard error", needed=False)
    try:
        yield
    finally:
        sys.stderr.flush()
        sys.stdout, sys.stderr = before
