"""The protocol of a pool of workers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from nfparity.assess.fleet.node import Answer

__all__ = ["Pool"]


class Pool(Protocol):
    """A pool that assesses several snapshots at a time."""

    def answers(self, paths: Sequence[str]) -> Iterator[Answer]:
        """Yield one answer for each path, in order of completion.

        When a worker is lost, another one takes its snapshot. A snapshot that kills several workers is given
        up, with a failure as its answer.
        """
        ...
