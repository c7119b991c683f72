"""Distribution of snapshots to a pool, with progress reports and retries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from nfparity.assess.fleet.node import Answer
from nfparity.assess.fleet.pool import Pool
from translate.errors import MachineError

__all__ = ["TRIES", "Tell", "gather_answers"]

TRIES: Final = 3
"""The maximum number of tries for a snapshot."""

Tell = Callable[[Answer, int, bool], None]
"""Callback for each answer: the answer, the number of finished snapshots, and whether it will be retried."""


def gather_answers(pool: Pool, paths: Sequence[str], tell: Tell, *, tries: int = TRIES) -> tuple[Answer, ...]:
    """Return an answer for each path, in the order of ``paths``.

    Failures of the machine are retried after all other snapshots, when there may be more memory. If every
    snapshot in a round of several fails for the same reason, nothing is retried.
    Raises MachineError when the pool gives no answer for a path, or two.
    """
    done: dict[str, Answer] = {}
    waiting = list(paths)
    for left in range(tries - 1, -1, -1):
        again: list[Answer] = []
        round_ = list(waiting)
        for answer in pool.answers(round_):
            if answer.path not in waiting:
                raise MachineError(f"{answer.path}: the pool gave two answers, or was not given this path")
            waiting.remove(answer.path)
            if left and answer.failure is not None and answer.failure.again:
                again.append(answer)
                tell(answer, len(done), True)
            else:
                done[answer.path] = answer
                tell(answer, len(done), False)
        if waiting:
            raise MachineError(f"the pool gave no answer for {waiting[0]} and {len(waiting) - 1} more")
        if not again:
            break
        if len(again) == len(round_) > 1 and len({a.failure for a in again}) == 1:
            for answer in again:
                done[answer.path] = answer
                tell(answer, len(done), False)
            break
        waiting = [answer.path for answer in again]
    return tuple(done[path] for path in paths)
