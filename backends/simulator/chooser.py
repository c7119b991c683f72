"""Chance as an oracle: every branch of a run, each with its exact probability.

The simulator is plain imperative code that asks a :class:`Chooser` whenever the kernel would draw
a random number. :func:`branches` runs it once per way that the answers can fall: from the beginning,
or from a checkpoint, where the run gave one as it was asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from backends.model.outcome import Assumption

if TYPE_CHECKING:
    from backends.simulator.checkpoint import Checkpoint

__all__ = ["MOST_BRANCHES", "Chooser", "TooManyBranches", "branches"]

MOST_BRANCHES: Final = 20_000
"""How many ways of one flow are followed: seconds, and more than any service has endpoints."""
_MOST_CHOICES: Final = 10_000
"""On one way: each leaves another way to follow, and they take longer the more there are."""

T = TypeVar("T")

_reduced = lru_cache(maxsize=4096)(Fraction)
"""Services with as many endpoints have the same fractions, and reducing one takes a while."""


class TooManyBranches(Exception):  # noqa: N818  # told to the user in words by who knows the flow
    """There are more ways than are followed; chance is drawn anew for each packet of a flow.

    ``number`` is how many there are at least.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class _Start(NamedTuple):
    """Where a run begins: ``script`` answers its first choices.

    With a ``checkpoint``, all of them but the last have been taken before it, with a probability of
    ``numerator / denominator``, and nothing is assumed yet.
    """

    script: tuple[int, ...] = ()
    numerator: int = 1
    denominator: int = 1
    checkpoint: Checkpoint | None = None


_BEGINNING: Final = _Start()


class Chooser:
    """Answers the choices of one run: first from a script, then always the first possible one."""

    __slots__ = ("_denominator", "_numerator", "_script", "_taken", "assuming", "here", "start", "untaken")

    def __init__(self, start: _Start = _BEGINNING) -> None:
        self._script, numerator, denominator, checkpoint = start
        self._taken = [] if checkpoint is None else list(start.script[:-1])
        self.untaken: list[_Start] = []
        """The starts that lead to the alternatives first passed over in this run."""
        self._numerator, self._denominator = (1, 1) if checkpoint is None else (numerator, denominator)
        self.start = checkpoint
        """Where the run takes off; None: at the beginning."""
        self.here: Callable[[], Checkpoint | None] | None = None
        """Makes the checkpoint of the choice that is due, where there can be one."""
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
        self._numerator *= weights[index].numerator
        self._denominator *= weights[index].denominator
        return index

    def draw(self, numerator: int, denominator: int) -> bool:
        """Return whether something of this probability happens in this run."""
        if not 0 < numerator < denominator:
            return numerator > 0
        happens = self._take((0, 1)) == 0
        self._numerator *= numerator if happens else denominator - numerator
        self._denominator *= denominator
        return happens

    def happens(self, probability: Fraction) -> bool:
        """Return whether something of this probability happens in this run."""
        return self.draw(probability.numerator, probability.denominator)

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
            if place >= _MOST_CHOICES:
                raise TooManyBranches(_MOST_CHOICES)
            index = possible[0]
            prefix = tuple(self._taken)
            for other in possible[1:]:
                here = None if self.here is None else self.here()
                self.untaken.append(_Start((*prefix, other), self._numerator, self._denominator, here))
        self._taken.append(index)
        return index

    @property
    def probability(self) -> Fraction:
        """Of this run: the product of what it took, reduced once."""
        return _reduced(self._numerator, self._denominator)


def branches(run: Callable[[Chooser], T]) -> Iterator[tuple[Fraction, T]]:
    """Call ``run`` once per branch and yield its probability and result, depth first.

    ``run`` must depend on nothing but its chooser, and go on from ``start`` as it would have come there
    from the beginning. The probabilities sum to 1, unless something is assumed. Raises
    TooManyBranches.
    """
    pending = [_BEGINNING]
    done = 0
    while pending:
        if done == MOST_BRANCHES:
            raise TooManyBranches(MOST_BRANCHES)
        done += 1
        chooser = Chooser(pending.pop())
        result = run(chooser)
        yield chooser.probability, result
        pending.extend(reversed(chooser.untaken))
