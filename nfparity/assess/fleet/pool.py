"""What a pool of workers has to do; any that does it will do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from nfparity.assess.fleet.node import Answer

__all__ = ["Pool"]


class Pool(Protocol):
    """Answers for snapshots, several at a time."""

    def answers(self, paths: Sequence[str]) -> Iterator[Answer]:
        """Yield one answer for each path, in the order in which they come.

        A worker that is lost is no answer: another one takes its snapshot. Only a snapshot that has ended
        several workers is given up, with a failure that says so.
        """
        ...
