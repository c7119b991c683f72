"""Pauses of Python's cyclic garbage collector while millions of objects are made.

Reading, lowering and emitting make trees of frozen nodes, which have no cycles to collect. The collector
would walk the growing trees again and again, which takes more than half as long as the work itself. Other
work runs with :func:`collector_seldom`.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

__all__ = ["collector_paused", "collector_seldom", "present_objects_kept"]

_NEW_OBJECTS: Final = 100_000


@contextmanager
def collector_paused() -> Iterator[None]:
    """Pause the cyclic collector of the whole process inside a ``with`` block or a decorated function.

    Afterwards it is enabled again if it was enabled before. Reference counting still frees objects.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@contextmanager
def collector_seldom() -> Iterator[None]:
    """Run the cyclic collector of the whole process after every 100,000 new objects instead of Python's 700.

    Packets and traces are trees too: with Python's value, an eighth of a simulation's time goes into walking
    them. Garbage in cycles takes at most about ten MB more. Afterwards the old value is restored.
    """
    before = gc.get_threshold()
    gc.set_threshold(_NEW_OBJECTS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


@contextmanager
def present_objects_kept() -> Iterator[None]:
    """Keep the cyclic collector from walking the objects that exist when the block begins (``gc.freeze``).

    Millions of objects that live until the end would be walked again and again. Their garbage in cycles is
    collected after the block, unless the process had frozen objects before: then it is not collected.
    """
    frozen = gc.get_freeze_count()
    gc.freeze()
    try:
        yield
    finally:
        if not frozen:
            gc.unfreeze()
