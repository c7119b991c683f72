"""Origins: the file, line, column and text that a node comes from."""

from __future__ import annotations

from translate.dataclass import dataclass

__all__ = ["NOWHERE", "Origin"]

_SHOWN = 160


@dataclass(frozen=True, slots=True)
class Origin:
    """A place in an input. ``line`` and ``column`` count from 1; 0 means the file as a whole.

    ``text`` is the source line without its newline, empty for a generated node. Only comments are read from
    it, never a condition of a rule. ``several`` is true if the node was made from this line and from others
    that differ from it only in constants.
    """

    file: str
    line: int = 0
    column: int = 0
    text: str = ""
    several: bool = False

    @property
    def place(self) -> str:
        """``file:line``, or just the file."""
        return f"{self.file}:{self.line}" if self.line else self.file

    def __str__(self) -> str:
        return f"{self.place}:{self.column}" if self.line and self.column else self.place

    def at(self, column: int) -> Origin:
        """Return the origin with another column."""
        return Origin(self.file, self.line, column, self.text)

    def of_several(self) -> Origin:
        """Return the origin with ``several`` set; unchanged if it has no line."""
        if self.several or not self.line:
            return self
        return Origin(self.file, self.line, self.column, self.text, several=True)

    def caret(self) -> str:
        """Return the source line, cut to a window around the column, and a caret under it."""
        column = max(self.column, 1)
        start = max(0, column - 1 - _SHOWN // 2)
        shown = self.text[start : start + _SHOWN]
        printable = "".join(c if c.isprintable() else "?" for c in shown)
        lead = "…" if start else ""
        tail = "…" if start + _SHOWN < len(self.text) else ""
        pad = " " * (column - 1 - start + len(lead))
        return f"    {lead}{printable}{tail}\n    {pad}^"


NOWHERE = Origin("<none>")
"""The origin of a node that comes from no input line."""
