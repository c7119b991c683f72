"""Pauses of Python's cyclic garbage collector while millions of objects are made.

Reading, lowering and emitting make trees of frozen nodes, which have no cycles to collect. The collector
would walk the growing trees again and again, which takes more than half as long as the work itself.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["collector_paused"]


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
