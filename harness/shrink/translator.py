"""Another translator of iptables rules as a backend: a command, whose output nft loads."""

from __future__ import annotations

import shlex
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from backends.model.contract import Availability, Job
from backends.nftables.backend import NftablesBackend, NftablesLoader
from backends.replay.session import KernelSession, open_session
from backends.testbed.command import find_tool
from translate.errors import InputError, MachineError
from translate.ir import Ruleset
from translate.write import write_save

__all__ = ["PLACE", "Translator"]

PLACE: Final = "{}"
"""The word of a command that stands for the file with the rules."""
_SECONDS: Final = 60


class Translator:
    """Runs packets through the translation that a command prints.

    The word ``{}`` of the command is replaced by the name of a file with the rules, as ``iptables-save``
    prints them. Raises InputError for a command without this word.
    """

    def __init__(self, command: str) -> None:
        self.command: Final = command
        self.words: Final = tuple(shlex.split(command))
        if PLACE not in self.words[1:]:
            raise InputError(f"the translator's command needs the word {PLACE} for the file with the rules")
        self.name: Final = Path(self.words[0]).name

    def probe(self) -> Availability:
        """Return whether the command exists, and nftables can run."""
        if find_tool(self.words[0]) is None:
            return Availability(False, f"{self.words[0]} is not installed")
        return NftablesBackend().probe()

    def text(self, ruleset: Ruleset) -> str:
        """Return the translation. Raises MachineError with the command's message if it fails."""
        path = find_tool(self.words[0])
        if path is None:
            raise MachineError(f"{self.words[0]} is not installed")
        with tempfile.NamedTemporaryFile("w", suffix=".rules") as file:
            file.write(write_save(ruleset))
            file.flush()
            words = [file.name if word == PLACE else word for word in self.words[1:]]
            try:
                done = subprocess.run(
                    (path, *words), capture_output=True, text=True, check=False, timeout=_SECONDS
                )
            except subprocess.TimeoutExpired as e:
                raise MachineError(f"{self.name} takes more than {_SECONDS} s") from e
        if done.returncode:
            raise MachineError(f"{self.name}: {done.stderr.strip() or f'status {done.returncode}'}")
        return done.stdout

    @contextmanager
    def open(self, job: Job) -> Iterator[KernelSession]:
        """Translate the job's rules and load them into a fresh node."""
        loader = NftablesLoader(self.text(job.ruleset), job.ruleset.family)
        with open_session(job.node, loader) as session:
            yield session
