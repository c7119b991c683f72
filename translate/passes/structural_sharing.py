"""Structural sharing between the Programs before and after a pass.

A chain that a pass does not change is the same object in both. This avoids building a hundred thousand equal
objects again, and lets the next pass recognise an unchanged chain without comparing its statements.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import is_

from translate.ir import LoweredChain, Statement

__all__ = ["holding", "is_same"]


def is_same(new: Sequence[object], old: Sequence[object]) -> bool:
    """Return whether both sequences have the same objects in the same order."""
    return len(new) == len(old) and all(map(is_, new, old))


def holding(chain: LoweredChain, statements: Sequence[Statement]) -> LoweredChain:
    """Return the chain with these statements; the chain itself if they are unchanged."""
    if is_same(statements, chain.statements):
        return chain
    return LoweredChain(
        name=chain.name,
        table=chain.table,
        statements=tuple(statements),
        hook=chain.hook,
        priority=chain.priority,
        policy=chain.policy,
        origin=chain.origin,
    )
