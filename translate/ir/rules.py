"""Rules in any form: a Ruleset, or a large ruleset of which a sample has been read."""

from __future__ import annotations

from typing import Protocol

from translate.ir.family import Family
from translate.ir.ruleset import Ruleset

__all__ = ["Rules"]


class Rules(Protocol):
    """The rules of one family, with a sample that has one chain of each kind.

    A :class:`Ruleset` is its own sample. The other implementation is in :mod:`translate.condense`.
    """

    @property
    def family(self) -> Family:
        """The family of the rules."""
        ...

    @property
    def sample(self) -> Ruleset:
        """The ruleset without the rules of chains that differ from other chains in constants only."""
        ...

    def whole(self) -> Ruleset:
        """Return the ruleset with every rule, read once. Raises ParseError where a rule cannot be read."""
        ...

    def noted(self, note: str) -> Rules:
        """Return the rules with one more note in :attr:`Ruleset.notes`."""
        ...
