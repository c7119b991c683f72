"""The errors of the translator, as one tree.

::

    NfparityError                   anything that nfparity reports to its user
    ├── InputError                  exit status 2: the input is wrong or not expressible
    │   ├── ParseError              text that could not be read; one or more Diagnostics
    │   └── UnsupportedError        a rule that a backend cannot express; one or more Refusals
    └── MachineError                exit status 3: privileges, tools, kernel features

Callers branch on the class, never on the text.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from translate.dataclass import dataclass
from translate.ir.origin import Origin

__all__ = [
    "Diagnostic",
    "InputError",
    "MachineError",
    "NfparityError",
    "Note",
    "ParseError",
    "Refusal",
    "UnsupportedError",
]

_MOST_LINES: Final = 20


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """An error in an input: its place, a message and a hint.

    ``message`` is lower case without a full stop; ``hint`` says how to correct the input, or is empty.
    """

    origin: Origin
    message: str
    hint: str | None = None

    def render(self) -> str:
        """Return ``file:line:column: message``, the source line and a caret under the column."""
        head = f"{self.origin}: {self.message}"
        if self.hint is not None:
            head += f"; {self.hint}"
        if not self.origin.text:
            return head
        return f"{head}\n{self.origin.caret()}"


@dataclass(frozen=True, slots=True)
class Refusal:
    """A rule that one backend cannot express exactly, with the reason.

    ``feature`` is a short stable name of the missing feature (``recent``, ``dnat-port-range``); tests and the
    coverage table key on it.
    """

    origin: Origin
    backend: str
    feature: str
    reason: str

    def render(self) -> str:
        """Return ``file:line: backend cannot express …`` with the rule under it."""
        head = f"{self.origin.place}: {self.backend}: {self.reason} [{self.feature}]"
        return f"{head}\n    {self.origin.text}" if self.origin.text else head


@dataclass(frozen=True, slots=True)
class Note:
    """A known difference between a rule and its translation by one backend.

    Only for limits that take many packets to reach (the number of addresses in a list), and for effects that
    leave every packet as it is (CHECKSUM).
    ``feature`` is as in :class:`Refusal`.
    """

    origin: Origin
    backend: str
    feature: str
    text: str

    def render(self) -> str:
        """Return ``file:line: backend: what differs [feature]``, on one line."""
        return f"{self.origin.place}: {self.backend}: {self.text} [{self.feature}]"


class NfparityError(Exception):
    """An error that nfparity reports as a message instead of a traceback."""


class InputError(NfparityError):
    """The input is wrong, or cannot be expressed; the command ends with status 2."""


class ParseError(InputError):
    """Text that could not be read; carries every diagnostic found, sorted by position."""

    def __init__(self, diagnostics: tuple[Diagnostic, ...]) -> None:
        self.diagnostics = tuple(sorted(diagnostics, key=lambda d: (d.origin.line, d.origin.column)))
        super().__init__("\n".join(d.render() for d in self.diagnostics))


class UnsupportedError(InputError):
    """Rules that a backend cannot express; carries one refusal per rule and feature.

    Its text groups them by reason.
    """

    def __init__(self, refusals: tuple[Refusal, ...]) -> None:
        self.refusals = refusals
        super().__init__("\n".join(_grouped(refusals)))


def _grouped(refusals: tuple[Refusal, ...]) -> Iterator[str]:
    """Yield the first refusal for each reason in full, with the lines of all other rules refused for it."""
    groups: dict[tuple[str, str, str], list[Refusal]] = {}
    for refusal in refusals:
        groups.setdefault((refusal.backend, refusal.feature, refusal.reason), []).append(refusal)
    for first, *more in groups.values():
        yield first.render()
        if more:
            lines = ", ".join(str(refusal.origin.line) for refusal in more[:_MOST_LINES])
            rest = f" and {len(more) - _MOST_LINES} others" if len(more) > _MOST_LINES else ""
            rules = "1 more rule: line" if len(more) == 1 else f"{len(more)} more rules: lines"
            yield f"    and {rules} {lines}{rest}"


class MachineError(NfparityError):
    """This machine lacks a privilege, a tool or a kernel feature; the command ends with status 3."""
