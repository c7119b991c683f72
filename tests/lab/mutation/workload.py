"""The flows that must show faults, on nodes, with the outcomes that the reference expects.

The flows are those of the regression corpus, or generated ones. A few first packets with random outcomes are
repeated many times, so that the shares of endpoints and the spread of drawn ports are tested, too.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from backends.model.contract import Backend, Job
from backends.model.flow import Flow
from backends.model.outcome import FlowResult, Outcome
from backends.model.packet import PortClass
from harness.diff.batch import Batch
from tests.lab.mutation.repeat import repetitions

__all__ = ["Workload", "prepare"]

_LOOPBACK: Final = {1, 0x7F000001}
"""``::1`` and ``127.0.0.1``."""


@dataclass(frozen=True, slots=True)
class Workload:
    """Flows on one node with the outcomes that the reference expects; ``repeats`` maps a repetition to its
    flow.

    The flows of ``batch`` come first, then the repetitions in rounds, each of which has every repeated flow
    once. So a fault that one of three connections shows is found in one of the first rounds.
    """

    batch: Batch
    flows: tuple[Flow, ...]
    expected: tuple[FlowResult, ...]
    repeats: dict[str, str]

    def repeated(self, flow_id: str) -> tuple[int, ...]:
        """Return the indices of a flow and of its repetitions."""
        return tuple(
            i for i, flow in enumerate(self.flows) if flow_id in (flow.id, self.repeats.get(flow.id))
        )


def prepare(batches: Iterable[Batch], reference: Backend, *, few: int, many: int) -> tuple[Workload, ...]:
    """Simulate every flow, and repeat the first packet of flows with random outcomes.

    Each is repeated ``few`` times, so that every branch occurs. The first packet to each destination with
    several endpoints is repeated ``many`` times, so that shares can be tested. All addresses of a node count
    as one destination.
    """
    workloads: list[Workload] = []
    distinct: set[tuple[object, ...]] = set()
    for batch in batches:
        job = Job(rules=batch.ruleset, node=batch.node)
        own = {a.value for i in batch.node.interfaces for a in i.addresses} | _LOOPBACK
        with reference.open(job) as session:
            expected = list(session.replay(batch.flows))
            repeats: dict[str, str] = {}
            rounds: list[tuple[int, Flow, FlowResult]] = []
            for flow, result in zip(batch.flows, tuple(expected), strict=True):
                times = _times(flow, result, distinct, own, few=few, many=many)
                if not times:
                    continue
                first = replace(flow, id=f"{flow.id}:first", steps=flow.steps[:1])
                again = (first, *repetitions(first, times))
                repeats |= {copy.id: first.id for copy in again[1:]}
                results = zip(again, session.replay(again), strict=True)
                rounds += ((n, copy, expects) for n, (copy, expects) in enumerate(results))
        # Another order in each round, so that a counter (``nth``) does not give a flow the same share in all.
        random.Random(len(rounds)).shuffle(rounds)
        rounds.sort(key=lambda copy: copy[0])
        flows = (*batch.flows, *(flow for _, flow, _ in rounds))
        expected += (result for _, _, result in rounds)
        workloads.append(Workload(batch, flows, tuple(expected), repeats))
    return tuple(workloads)


def _times(
    flow: Flow, result: FlowResult, distinct: set[tuple[object, ...]], own: set[int], *, few: int, many: int
) -> int:
    """Return the number of repetitions of the first packet of a flow."""
    packet, first = flow.first.packet, _firsts(result)
    endpoints = frozenset((o.verdict, o.dst, o.dport) for o in first)
    if len(endpoints) > 1:
        service: tuple[object, ...] = (frozenset(o.verdict for o in first),)
        if any(o.dnat for o in first):
            service = (endpoints, packet.dst not in own and packet.dst, packet.proto, packet.dport)
        if service not in distinct:
            distinct.add(service)
            return many
        return few
    if any(isinstance(o.sport, PortClass) for o in first):
        return few
    # If the rules have one endpoint, a fault may draw among several, including this one.
    return few // 2 if any(o.dnat for o in first) else 0


def _firsts(result: FlowResult) -> set[Outcome]:
    return {branch.outcomes[0] for branch in result.branches}
