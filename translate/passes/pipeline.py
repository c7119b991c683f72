"""The optimisation levels: which passes run, in which order.

Level 0
    ``flatten``: rule by rule, for reading side by side with the input.
"""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import Final

from translate.ir import Program, Ruleset
from translate.passes.flatten import flatten

__all__ = ["LEVELS", "lower"]

Pass = Callable[[Program], Program]

LEVELS: Final = MappingProxyType[int, tuple[Pass, ...]]({0: ()})
"""The passes of each optimisation level, in order, after ``flatten``."""


def lower(ruleset: Ruleset, *, level: int) -> Program:
    """Return the Program of ``ruleset`` at an optimisation level of :data:`LEVELS`.

    Every level means the same; the levels differ in how much an emitter can put into maps.
    Raises ValueError for a level that does not exist.
    """
    if level not in LEVELS:
        raise ValueError(f"no optimisation level {level}; there are {', '.join(map(str, LEVELS))}")
    program = flatten(ruleset)
    for step in LEVELS[level]:
        program = step(program)
    return program
