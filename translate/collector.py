"""Python's cyclic garbage collector, out of the way while millions of objects are made.

What reading, lowering and emitting make are trees of frozen nodes: no cycles, nothing to collect. The
collector would walk all of them again and again as they grow, which takes longer than half of the
work itself.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["collector_paused"]


@contextmanager
def collector_paused() -> Iterator[None]:
    """Keep the cyclic collector from running meanwhile, in the whole process.

    Also a decorator. Afterwards it runs again if it ran before. What is freed by reference counts is
    freed as ever.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
