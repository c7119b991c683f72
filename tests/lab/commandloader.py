"""The nft of a release as the loader of a text, for comparisons of translators."""

from __future__ import annotations

import subprocess

from backends.replay.loader import Loader
from backends.testbed.tapnode import TapNode
from translate.errors import MachineError
from translate.ir import Family

__all__ = ["CommandLoader"]


class CommandLoader(Loader):
    """Loads nft text with the nft of a release."""

    def __init__(self, command: tuple[str, ...], text: str, family: Family) -> None:
        self._command = command
        self._text = text
        self.family = family

    def load(self, tap: TapNode) -> None:
        """Load the text; raises MachineError with nft's message."""
        del tap
        done = subprocess.run(
            (*self._command, "-f", "-"), input=self._text, capture_output=True, text=True, check=False
        )
        if done.returncode:
            message = done.stderr.strip() or f"Error: status {done.returncode}"
            raise MachineError(f"nft does not take the rules: {message}")
