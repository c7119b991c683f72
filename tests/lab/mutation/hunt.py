"""The hunt: plant one fault at a time, load the result into a real kernel, and look for a difference."""

from __future__ import annotations

import signal
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from backends.replay.worker import WorkerEndedError
from tests.lab.mutation.fault import Fault
from tests.lab.mutation.testbed import Testbed
from translate.errors import InputError, MachineError

__all__ = ["Caught", "Verdict", "hunt"]


class Verdict(StrEnum):
    """The result for a fault."""

    CAUGHT = "caught"
    """A packet showed the fault."""
    REFUSED = "refused"
    """The loader (nft, the compiler or the verifier) refused the output."""
    SURVIVED = "survived"
    """No packet showed the fault."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Caught:
    """A fault and its result; ``by`` is the flow that showed it, or the refusal."""

    fault: Fault
    verdict: Verdict
    by: str


def hunt(faults: Iterable[Fault], testbed: Testbed, *, proven: Collection[Fault] = ()) -> Iterator[Caught]:
    """Plant each fault in turn and yield its result.

    A fault that is ``proven`` to change nothing meets every flow once: repetitions are for faults that
    only many packets show, and cost most of a survivor's time. An assertion of libnftables ends the node's
    process, and the fault is refused. Raises WorkerEndedError if the process ends in another way.
    """
    for fault in faults:
        try:
            by = testbed.first_difference(fault, repeated=fault not in proven)
        except (InputError, MachineError) as e:
            if isinstance(e, WorkerEndedError) and e.status != -signal.SIGABRT:
                raise
            yield Caught(fault=fault, verdict=Verdict.REFUSED, by=str(e).strip().split("\n")[0])
            continue
        verdict = Verdict.SURVIVED if by is None else Verdict.CAUGHT
        yield Caught(fault=fault, verdict=verdict, by=by or "")
