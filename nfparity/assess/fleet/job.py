"""One snapshot of a fleet as a job of a worker."""

from __future__ import annotations

import traceback
from typing import Final

from nfparity.assess.fleet.node import Answer, Failure, answer_of
from nfparity.assess.snapshots import AssessOptions, assess_snapshot
from nfparity.snapshot import load_snapshot
from translate.errors import InputError, MachineError

__all__ = ["answer"]

_ABLE: Final[set[str]] = set()
"""The backends that have passed their probe in this process."""


def answer(options: AssessOptions, path: str) -> Answer:
    """Read the snapshot at ``path``, assess it, and return a summary.

    Raises nothing: an error of one snapshot becomes its answer. Bad input is final; a failure of the machine
    may be retried, here or on another machine.
    """
    try:
        summary = assess_snapshot(load_snapshot(path), options, progress=_silent, able=_ABLE)
        return answer_of(summary, path)
    except InputError as e:
        failure = Failure(2, str(e))
    except MachineError as e:
        failure = Failure(3, str(e), again=True)
    except MemoryError:
        failure = Failure(3, "not enough memory", again=True)
    except Exception as e:
        where = traceback.extract_tb(e.__traceback__)[-1]
        failure = Failure(
            1, f"a bug of nfparity: {type(e).__name__}: {e} ({where.name}, line {where.lineno})"
        )
    return Answer(path=path, failure=failure)


def _silent(backend: str, done: int, total: int) -> None:
    """Ignore progress: a worker has no terminal."""
