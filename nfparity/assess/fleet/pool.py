"""The protocol of a pool of workers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from nfparity.assess.fleet.node import Answer

__all__ = ["Pool"]


class Pool(Protocol):
    """Assesses several snapshots at a time."""

    def answers(self, paths: Sequence[str]) -> Iterator[Answer]:
        """Yield one answer for each path, in the order in which they come.

        When a worker is lost, another one takes its snapshot. A snapshot that has ended several workers is
        given up, with a failure that says so.
        """
        ...
