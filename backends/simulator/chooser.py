"""Chance as an oracle: every branch of a run, each with its exact probability.

The simulator is plain imperative code that asks a :class:`Chooser` whenever the kernel would draw
a random number. :func:`branches` runs it once per way that the answers can fall.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Final, TypeVar

from backends.outcome import Assumption

__all__ = ["MOST_BRANCHES", "Chooser", "TooManyBranches", "branches"]

MOST_BRANCHES: Final = 20_000
"""How many ways of one flow are followed: seconds, and more than any service has endpoints."""

T = TypeVar("T")


class TooManyBranches(Exception):  # noqa: N818  # told to the user in words by who knows the flow
    """There are more than :data:`MOST_BRANCHES` ways; chance is drawn anew for each packet of a flow."""


class Chooser:
    """Answers the choices of one run: first from a script, then always the first possible one."""

    __slots__ = ("_script", "_taken", "_untaken", "_weights", "assuming")

    def __init__(self, script: tuple[int, ...] = ()) -> None:
        self._script = script
        self._taken: list[int] = []
        self._untaken: list[tuple[int, ...]] = []
        self._weights: list[Fraction] = []
        self.assuming: list[Assumption] = []
        """What this run assumes about that which the rules hide."""

    def choose(self, weights: Sequence[Fraction]) -> int:
        """Return the index of one alternative; ``weights`` are probabilities that sum to 1.

        Alternatives of probability 0 are never taken; a sure one is no choice at all.
        """
        possible = [i for i, w in enumerate(weights) if w]
        if len(possible) == 1:
            return possible[0]
        index = self._take(possible)
        self._weights.append(weights[index])
        return index

    def assume(self, either: tuple[Assumption, Assumption]) -> Assumption:
        """Return one of two answers, neither of which is likelier than the other."""
        made = either[self._take((0, 1))]
        self.assuming.append(made)
        return made

    def _take(self, possible: Sequence[int]) -> int:
        place = len(self._taken)
        if place < len(self._script):
            index = self._script[place]
        else:
            index = possible[0]
            prefix = tuple(self._taken)
            self._untaken.extend((*prefix, other) for other in possible[1:])
        self._taken.append(index)
        return index

    def happens(self, probability: Fraction) -> bool:
        """Return whether something of this probability happens in this run."""
        return self.choose((probability, 1 - probability)) == 0

    @property
    def probability(self) -> Fraction:
        """Of this run: the product of what it took, reduced once."""
        numerator = denominator = 1
        for weight in self._weights:
            numerator *= weight.numerator
            denominator *= weight.denominator
        return Fraction(numerator, denominator)

    def untaken(self) -> tuple[tuple[int, ...], ...]:
        """Return the scripts that lead to the alternatives first passed over in this run."""
        return tuple(self._untaken)


def branches(run: Callable[[Chooser], T]) -> Iterator[tuple[Fraction, T]]:
    """Call ``run`` once per branch and yield its probability and result, depth first.

    ``run`` must depend on nothing but its chooser. The probabilities sum to 1, unless something is
    assumed. Raises TooManyBranches.
    """
    pending: list[tuple[int, ...]] = [()]
    done = 0
    while pending:
        if done == MOST_BRANCHES:
            raise TooManyBranches
        done += 1
        chooser = Chooser(pending.pop())
        result = run(chooser)
        yield chooser.probability, result
        pending.extend(reversed(chooser.untaken()))
