"""A fault: one change to one place of an emitter's output."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Fault", "Place"]


@dataclass(frozen=True, slots=True)
class Place:
    """A line of the output and its block (chain, map or function); ``line`` counts from 0.

    ``above`` is the previous line, if the emitter states there what this line depends on.
    """

    block: str
    line: int
    text: str
    above: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One planted fault. ``after`` is None if the line is removed.

    ``operator`` is the kind of fault, for example ``port`` or ``lost-masquerade``.
    """

    operator: str
    place: Place
    after: str | None

    @property
    def key(self) -> str:
        """The identity of the fault in an unchanged output: operator, block, and the change."""
        became = "(gone)" if self.after is None else self.after.strip()
        return f"{self.operator}: {self.place.block}: {self.place.text.strip()} → {became}"

    def plant(self, text: str) -> str:
        """Return ``text`` with this fault in it."""
        lines = text.split("\n")
        assert lines[self.place.line] == self.place.text
        lines[self.place.line : self.place.line + 1] = [] if self.after is None else [self.after]
        return "\n".join(lines)
