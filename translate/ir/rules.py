"""Rules in any form: a Ruleset, or a large ruleset of which a sample has been read."""

from __future__ import annotations

from typing import Protocol

from translate.ir.family import Family
from translate.ir.ruleset import Ruleset

__all__ = ["Rules"]


class Rules(Protocol):
    """The rules of one family, for everything that can work on a sample of them or has others to ask.

    A :class:`Ruleset` is its own sample. The other form is that of :mod:`translate.condense`.
    """

    @property
    def family(self) -> Family:
        """The family of the rules."""
        ...

    @property
    def sample(self) -> Ruleset:
        """Everything but the rules of chains that are like other chains: policies, notes, tests of ipsets."""
        ...

    def whole(self) -> Ruleset:
        """Return the ruleset with every rule, read once. Raises ParseError where a rule cannot be read."""
        ...

    def noted(self, note: str) -> Rules:
        """Return the rules with one more of :attr:`Ruleset.notes`."""
        ...
