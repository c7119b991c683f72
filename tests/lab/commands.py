"""Commands of nfparity, run in this process: their output and exit status."""

from __future__ import annotations

import io
import sys
from contextlib import ExitStack, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from unittest.mock import patch

from nfparity.cli import main

__all__ = ["Done", "run_command"]


@dataclass(frozen=True)
class Done:
    """The result of a command."""

    returncode: int
    stdout: str
    stderr: str


def run_command(*words: str, stdin: str | bytes = "") -> Done:
    """Run ``nfparity`` with these words in this process, because starting an interpreter takes long."""
    data = stdin.encode() if isinstance(stdin, str) else stdin
    out, err = _stream(), _stream()
    with ExitStack() as stack:
        stack.enter_context(patch.object(sys, "stdin", _stream(data)))
        stack.enter_context(redirect_stdout(out))
        stack.enter_context(redirect_stderr(err))
        try:
            status = main(words)
        except SystemExit as e:
            status = int(e.code or 0)
    return Done(status, _text(out), _text(err))


def _stream(data: bytes = b"") -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(data), encoding="utf-8", newline="\n")


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    assert isinstance(stream.buffer, io.BytesIO)
    return stream.buffer.getvalue().decode()
