"""Faults with which the node's process ends."""

from __future__ import annotations

import signal

import pytest

from backends.replay.worker import WorkerEndedError
from tests.lab.mutation.fault import Fault, Place
from tests.lab.mutation.hunt import Verdict, hunt
from tests.lab.mutation.testbed import Testbed


class _Ending(Testbed):
    """A testbed whose process ends with the first fault; a new one accepts the next."""

    def __init__(self, status: int) -> None:
        self.status = status

    def first_difference(self, fault: Fault | None, *, repeated: bool = True) -> str | None:
        if fault is not None and fault.operator == "first":
            raise WorkerEndedError("the replay process ended by itself", self.status)
        return "flow: verdict"


FAULTS = [Fault(operator=name, place=Place("chain", 0, "drop"), after=None) for name in ("first", "second")]


def test_an_assertion_of_libnftables_refuses_the_fault_and_the_next_is_planted() -> None:
    results = [caught.verdict for caught in hunt(FAULTS, _Ending(-signal.SIGABRT))]
    assert results == [Verdict.REFUSED, Verdict.CAUGHT]


def test_a_process_that_was_killed_is_no_refusal() -> None:
    with pytest.raises(WorkerEndedError):
        list(hunt(FAULTS, _Ending(-signal.SIGKILL)))
