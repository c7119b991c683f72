"""Every branch of a run that draws random numbers, each with its exact probability.

The simulator is ordinary sequential code that calls a :class:`Chooser` wherever the kernel would draw a
random number. :func:`branches` repeats the run once for each possible series of answers. A repeated run
starts from the beginning, or from a checkpoint if the first run could make one at that choice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Final, Generic, NamedTuple, Protocol, TypeVar

from backends.model.outcome import Assumption

__all__ = ["MOST_BRANCHES", "Chance", "Choices", "Chooser", "TooManyBranches", "branches"]

MOST_BRANCHES: Final = 20_000
"""The limit of branches of a flow: a few seconds of work, and more than the endpoints of any service."""
_MOST_CHOICES: Final = 10_000
"""The limit of choices in one run: each adds a branch, and branches with more choices take longer."""

C = TypeVar("C")
T = TypeVar("T")

Choices = tuple[int, ...]
"""The choices of a run, each as the index of an alternative."""

_reduced = lru_cache(maxsize=4096)(Fraction)
"""A cached constructor of Fraction.

Reducing a fraction is slow, and services with equal numbers of endpoints use the same fractions.
"""


class TooManyBranches(Exception):  # noqa: N818  # the caller, who knows the flow, turns it into a message
    """A flow has more branches than the limit, because each of its packets makes new choices.

    ``number`` is the limit that was reached.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class Chance(Protocol):
    """The source of random decisions, for the code that makes them."""

    def choose(self, weights: Sequence[Fraction]) -> int:
        """Return the index of one alternative; ``weights`` are probabilities that sum to 1."""
        ...

    def draw(self, numerator: int, denominator: int) -> bool:
        """Return whether an event of probability ``numerator / denominator`` happens in this run."""
        ...

    def happens(self, probability: Fraction) -> bool:
        """Return whether an event of this probability happens in this run."""
        ...

    def assume(self, either: tuple[Assumption, Assumption]) -> Assumption:
        """Return one of two assumptions; this choice has no probabilities."""
        ...


class _Start(NamedTuple, Generic[C]):
    """The beginning of a run: ``script`` has its first choices.

    With a ``checkpoint``, the run starts there. The choices before it are those of the script except the
    last; their probability is ``numerator / denominator``, and none is an assumption.
    """

    script: tuple[int, ...] = ()
    numerator: int = 1
    denominator: int = 1
    checkpoint: C | None = None


class Chooser(Generic[C]):
    """Makes the choices of one run: first those of a script, then likely ones, or the first possible ones.

    ``C`` is the type of the checkpoints from which other runs start.
    """

    __slots__ = (
        "_denominator",
        "_likely",
        "_numerator",
        "_script",
        "_taken",
        "assuming",
        "here",
        "start",
        "untaken",
    )

    def __init__(self, start: _Start[C] | None = None, likely: Choices = ()) -> None:
        self._script, numerator, denominator, checkpoint = _Start[C]() if start is None else start
        self._taken = [] if checkpoint is None else list(self._script[:-1])
        self._likely = likely
        self.untaken: list[_Start[C]] = []
        """The starts of the branches that this run found but did not follow."""
        self._numerator, self._denominator = (1, 1) if checkpoint is None else (numerator, denominator)
        self.start = checkpoint
        """The checkpoint where the run starts; None: at the beginning."""
        self.here: Callable[[], C | None] | None = None
        """Makes a checkpoint at the next choice; None if that is not possible."""
        self.assuming: list[Assumption] = []
        """The assumptions of this run about hidden parts of rules."""

    def choose(self, weights: Sequence[Fraction]) -> int:
        """Return the index of one alternative; ``weights`` are probabilities that sum to 1.

        Alternatives of probability 0 are never taken; a single possible alternative is not a choice.
        """
        possible = [i for i, w in enumerate(weights) if w]
        if len(possible) == 1:
            return possible[0]
        index = self._take(possible)
        self._numerator *= weights[index].numerator
        self._denominator *= weights[index].denominator
        return index

    def draw(self, numerator: int, denominator: int) -> bool:
        """Return whether an event of probability ``numerator / denominator`` happens in this run."""
        if not 0 < numerator < denominator:
            return numerator > 0
        happens = self._take((0, 1)) == 0
        self._numerator *= numerator if happens else denominator - numerator
        self._denominator *= denominator
        return happens

    def happens(self, probability: Fraction) -> bool:
        """Return whether an event of this probability happens in this run."""
        return self.draw(probability.numerator, probability.denominator)

    def assume(self, either: tuple[Assumption, Assumption]) -> Assumption:
        """Return one of two assumptions; this choice has no probabilities."""
        assumption = either[self._take((0, 1))]
        self.assuming.append(assumption)
        return assumption

    def _take(self, possible: Sequence[int]) -> int:
        # A run that starts at a checkpoint makes the choice of the checkpoint first.
        place, here, self.here = len(self._taken), self.here, None
        if place < len(self._script):
            index = self._script[place]
        else:
            if place >= _MOST_CHOICES:
                raise TooManyBranches(_MOST_CHOICES)
            index, others = possible[0], possible[1:]
            if place < len(self._likely) and self._likely[place] in others:
                index = self._likely[place]
                others = [other for other in possible if other != index]
            prefix = tuple(self._taken)
            for other in others:
                checkpoint = None if here is None else here()
                self.untaken.append(_Start((*prefix, other), self._numerator, self._denominator, checkpoint))
        self._taken.append(index)
        return index

    @property
    def taken(self) -> Choices:
        """The choices of this run, in order."""
        return tuple(self._taken)

    @property
    def probability(self) -> Fraction:
        """The probability of this run: the product of its choices' probabilities."""
        return _reduced(self._numerator, self._denominator)


def branches(run: Callable[[Chooser[C]], T], first: Choices = ()) -> Iterator[tuple[Fraction, T]]:
    """Call ``run`` once per branch and yield its probability and result, depth first.

    The first branch makes the choices ``first``, as far as they are possible. The result of ``run`` must
    depend on its chooser alone. A run with a ``start`` must continue as if it had begun at the beginning. The
    probabilities sum to 1, unless there are assumptions. Raises TooManyBranches.
    """
    pending: list[_Start[C]] = [_Start()]
    followed = 0
    while pending:
        if followed == MOST_BRANCHES:
            raise TooManyBranches(MOST_BRANCHES)
        followed += 1
        chooser = Chooser(pending.pop(), first if followed == 1 else ())
        result = run(chooser)
        yield chooser.probability, result
        pending.extend(reversed(chooser.untaken))
