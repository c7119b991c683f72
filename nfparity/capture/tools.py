"""The node's own programs, run without a shell, and also found in system folders outside the PATH."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass, field

__all__ = ["Notes", "Tool", "Tools"]

_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_SECONDS = 300


@dataclass
class Notes:
    """Notes for readers of the snapshot, in order of discovery."""

    lines: list[str] = field(default_factory=list)

    def add(self, line: str) -> None:
        """Keep a line, once."""
        if line not in self.lines:
            self.lines.append(line)


@dataclass(frozen=True)
class Tool:
    """A program and the words before its arguments (``xtables-nft-multi iptables-save``)."""

    words: tuple[str, ...]

    @property
    def name(self) -> str:
        """The command line."""
        return " ".join(self.words)


class Tools:
    """Finds and runs programs. ``versions`` are their version strings, by name.

    ``path`` is the search path; by default the user's PATH and the usual system folders.
    """

    def __init__(self, notes: Notes, path: str | None = None) -> None:
        self.notes = notes
        self.versions: dict[str, str] = {}
        self._path = f"{os.environ.get('PATH', '')}:{_PATH}" if path is None else path

    def find(self, *words: str) -> Tool | None:
        """Return a program and record its version; None if it is missing."""
        if shutil.which(words[0], path=self._path) is None:
            return None
        tool = Tool(words)
        if tool.name not in self.versions:
            answer = self._run(tool, "-V" if words[0] == "ip" else "--version")
            out = answer.stdout if answer is not None and answer.stdout.strip() else b""
            lines = out.decode("utf-8", "replace").strip().splitlines()
            self.versions[tool.name] = lines[0] if lines else ""
        return tool

    def read(self, tool: Tool, *arguments: str) -> bytes | None:
        """Return the output of a program; None, with a note, if it fails."""
        done = self._run(tool, *arguments)
        if done is None:
            return None
        if done.returncode:
            lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
            why = lines[0] if lines else f"exit status {done.returncode}"
            self.notes.add(f"{' '.join((tool.name, *arguments))} failed: {why}")
            return None
        return done.stdout

    def message(self, tool: Tool, *arguments: str, text: str = "") -> str | None:
        """Return the first line of what a program says about ``text`` if it fails; None if it succeeds."""
        done = self._run(tool, *arguments, text=text)
        if done is None:
            return f"{tool.name} cannot be run"
        if not done.returncode:
            return None
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
        return lines[0] if lines else f"exit status {done.returncode}"

    def _run(self, tool: Tool, *arguments: str, text: str = "") -> subprocess.CompletedProcess[bytes] | None:
        program = shutil.which(tool.words[0], path=self._path)
        if program is None:
            return None
        try:
            return subprocess.run(
                (program, *tool.words[1:], *arguments),
                input=text.encode(),
                capture_output=True,
                env={"PATH": self._path, "LC_ALL": "C"},
                timeout=_SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as e:
            self.notes.add(f"{tool.name} cannot be run: {e}")
            return None
