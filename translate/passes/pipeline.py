"""The optimisation levels: their passes, in order.

Level 0
    ``flatten``: rule by rule, for reading side by side with the input.
Level 1
    ``prune``, ``normalise``, ``choose``, ``lookup``, ``prune``: runs of rules become lookups and
    random ladders become draws, chain by chain. The first ``prune`` removes unreachable callers, so that
    ``choose`` can prove more. ``choose`` runs before ``lookup``, which could take the last rung of a
    ladder as the beginning of a run.
Level 2
    The same with ``gather`` before ``lookup``, for longer runs, and then ``template`` and ``prune``: chains
    of equal shape become one, whose constants are looked up.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import MappingProxyType
from typing import Final

from translate.collector import collector_paused
from translate.ir import Program, Ruleset
from translate.passes.choose import choose
from translate.passes.flatten import flatten
from translate.passes.gather import gather
from translate.passes.lookup import lookup
from translate.passes.normalise import normalise
from translate.passes.prune import prune
from translate.passes.template import template

__all__ = ["LEVELS", "lower", "pass_names"]

Pass = Callable[[Program], Program]

_ONE: Final[tuple[Pass, ...]] = (prune, normalise, choose, lookup, prune)

_TWO: Final[tuple[Pass, ...]] = (prune, normalise, choose, gather, lookup, prune, template, prune)

LEVELS: Final = MappingProxyType[int, tuple[Pass, ...]]({0: (), 1: _ONE, 2: _TWO})
"""The passes of each optimisation level, in order, after ``flatten``."""


def pass_names(level: int) -> tuple[str, ...]:
    """Return the names of a level's passes in their order, ``flatten`` first.

    A pass that runs again has a number after its name: ``prune``, ``prune-2``.
    """
    names = [step.__name__ for step in (flatten, *LEVELS[level])]
    counts = [names[: at + 1].count(name) for at, name in enumerate(names)]
    return tuple(name if n == 1 else f"{name}-{n}" for name, n in zip(names, counts, strict=True))


@collector_paused()
def lower(ruleset: Ruleset, *, level: int, after: str | None = None) -> Program:
    """Return the Program of ``ruleset`` at an optimisation level of :data:`LEVELS`.

    Every level means the same; the levels differ in how much an emitter can put into maps. With ``after``,
    one of :func:`pass_names`, the result is the Program after that pass, with every rule. Raises ValueError
    for a level or a pass that does not exist.
    """
    if level not in LEVELS:
        raise ValueError(f"no optimisation level {level}; there are {', '.join(map(str, LEVELS))}")
    if after is not None:
        names = pass_names(level)
        if after not in names:
            raise ValueError(f"level {level} has no pass {after}; its passes are {', '.join(names)}")
        return _lowered(ruleset, LEVELS[level][: names.index(after)])
    return _lowered(ruleset, LEVELS[level])


def _lowered(ruleset: Ruleset, passes: Sequence[Pass]) -> Program:
    program = flatten(ruleset)
    for step in passes:
        program = step(program)
    return program
