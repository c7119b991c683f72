"""Nodes that stay up while faults are planted in them one after the other.

Building a node and loading a translation take longer than the packets that show most faults. So a node is
kept, and the loaded translation is changed from one fault to the next where possible. The flows that have
shown a fault of the same block run first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, Final, Self

from backends.model.outcome import FlowResult
from backends.replay.session import KernelSession, open_session
from harness.diff.compare import compare
from harness.diff.share_counts import share_tallies
from harness.diff.shares import unfair_shares
from tests.lab.mutation.fault import Fault
from tests.lab.mutation.planter import Planter
from tests.lab.mutation.workload import Workload
from translate.errors import MachineError

__all__ = ["Testbed", "parts"]

FALSE_ALARM_RATE: Final = 1e-6
"""The chance, per fault, that fair shares count as a difference."""

_MOST_SHOWING: Final = 8
"""The number of flows that showed a fault of a block and run first for the block's next fault."""

_FIRST_PART: Final = 64
"""The number of other flows that run next, if those flows do not show a fault."""

_PARTED: Final = 8
"""The fraction of the flows that run in parts, before all run together to test shares."""


@dataclass(slots=True)
class _Place:
    """The node of one workload; ``planting`` is loaded there while ``session`` is open."""

    workload: Workload
    stack: ExitStack = field(default_factory=ExitStack)
    session: KernelSession | None = None
    planting: Any = None
    showing: dict[str, list[tuple[int, ...]]] = field(default_factory=dict)
    """Indices of the flows or repetitions that showed a fault, by its block, the latest first."""

    def close(self) -> None:
        """Close the node."""
        self.session = None
        self.stack.close()


@dataclass(slots=True)
class Testbed:
    """The workloads' nodes for one planter; a context manager that closes them."""

    planter: Planter[Any]
    workloads: Sequence[Workload]
    _places: list[_Place] = field(init=False)

    def __post_init__(self) -> None:
        self._places = [_Place(workload) for workload in self.workloads]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for place in self._places:
            place.close()

    def first_difference(self, fault: Fault | None, *, repeated: bool = True) -> str | None:
        """Return a description of the first flow with an outcome that the reference excludes, or None.

        Without ``repeated`` every flow runs once, and no shares are tested. Raises MachineError when the
        translation with the fault does not load.
        """
        for place in self._places:
            try:
                if difference := self._at(place, fault, repeated=repeated):
                    return difference
            except BaseException:
                place.close()
                raise
        return None

    def _at(self, place: _Place, fault: Fault | None, *, repeated: bool) -> str | None:
        session = self._planted(place, fault)
        showing = place.showing.setdefault("" if fault is None else fault.place.block, [])
        workload = place.workload
        groups: list[Sequence[int]] = [group for group in showing if repeated or len(group) == 1]
        every = range(len(workload.flows))
        if repeated:
            groups += (*parts(every[: len(every) // _PARTED]), every)
        else:
            groups += parts(every[: len(workload.batch.flows)])
        for indexes in groups:
            shares = indexes is every or indexes in showing
            if shown := _ask(session, workload, indexes, shares=shares):
                difference, shown_by = shown
                if shown_by not in showing:
                    showing.insert(0, shown_by)
                    del showing[_MOST_SHOWING:]
                return difference
        return None

    def _planted(self, place: _Place, fault: Fault | None) -> KernelSession:
        """Return a session with the planted fault; the open session is replaced if it cannot be changed."""
        session = place.session
        if session is not None:
            planting = self.planter.planted(fault, place.planting)
            change = self.planter.change(place.planting, planting)
            if change is not None:
                session.change(change)
                place.planting = planting
                return session
            place.close()
        while True:
            planting = self.planter.planted(fault, None)
            loader = self.planter.loader(planting)
            try:
                opened = place.stack.enter_context(open_session(place.workload.batch.node, loader))
            except MachineError:
                if not self.planter.divide(fault):
                    raise
                continue
            place.session, place.planting = opened, planting
            return opened


def parts(flows: range) -> Iterator[range]:
    """Yield parts of the flows; each part is as large as all earlier parts together.

    A replay always runs to its end. As the first parts are small, a fault that an early flow shows is found
    quickly.
    """
    start, stop = 0, _FIRST_PART
    while start < len(flows):
        yield flows[start:stop]
        start, stop = stop, 2 * stop


def _ask(
    session: KernelSession, workload: Workload, indexes: Sequence[int], *, shares: bool
) -> tuple[str, tuple[int, ...]] | None:
    """Return the first difference among these flows of the workload, and the flows that show it.

    ``shares``: whether they are all repetitions of their flows, whose shares are tested.
    """
    flows, expected = [workload.flows[i] for i in indexes], [workload.expected[i] for i in indexes]
    results: list[FlowResult] = []
    for index, flow, want, result in zip(indexes, flows, expected, session.replay(flows), strict=True):
        results.append(result)
        for mismatch in compare(flow, want, result):
            return f"{flow.id}: {mismatch.field} {mismatch.observed!r} for {mismatch.expected!r}", (index,)
    if not shares or len(flows) == 1:
        return None
    tallies = share_tallies(flows, expected, results, workload.repeats)
    for unfair in unfair_shares(tallies, false_alarm_rate=FALSE_ALARM_RATE):
        text = f"{unfair.flow_id}: share {unfair.count}/{unfair.runs} for {unfair.expected}"
        return text, workload.repeated(unfair.flow_id)
    return None
