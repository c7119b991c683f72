"""Flows that are not sent, or run once only, because another client's flow tests the same.

A detector sends a packet from each kind of client to each address and port of a service. These flows are in
different classes, whose first and last flows are tested in full. The rules that kube-proxy writes for one
member have no constant of such a client. So one packet tests the constants of a member for all clients: of
the flows that differ in the client only, one is sent, and the clients take turns from member to member. If
its outcome is not the expected one, the others are tested in full, too.

An endpoint that uses its own service is a constant of the service, so each of its flows is sent. The same is
true of services with source ranges, and of every flow of a generated corpus, which looks for what no detector
knows.

In iptables mode the simulator knows what each client's flow may come to, and the kernel has to confirm it. So
of the flows that make the same choice, one runs there until it has shown each outcome, and the others run
once (:mod:`harness.diff.entrances`).
"""

from __future__ import annotations

from collections.abc import Container, Hashable, Mapping, Sequence

from backends.model.flow import Flow
from backends.model.outcome import FlowResult
from harness.diff.entrances import SharedRuns, shared_runs
from nfparity.assess.fate import Fate, fate_of
from nfparity.assess.replay.alike import FlowClass, known_difference
from translate.dataclass import dataclass, replace

__all__ = ["Spared", "flows_that_share_runs", "spared_flows", "waiting"]


@dataclass(frozen=True, slots=True)
class Spared:
    """The flows that stand for one that is not sent, by id."""

    sent: str
    """The flow of another client to the same member."""
    first: str
    """The first flow of its class."""


def spared_flows(
    flows: Sequence[Flow], classes: Sequence[FlowClass], measured: Container[str]
) -> dict[str, Spared]:
    """Return the flows that are not sent, by id; none of them is ``measured``."""
    class_of = {
        flow_id: number
        for number, group in enumerate(classes)
        if group.foreign
        for flow_id, _ in group.others
        if flow_id not in measured
    }
    entrances: dict[Hashable, list[str]] = {}
    for flow in flows:
        if flow.id in class_of and (entrance := _entrance(flow)) is not None:
            entrances.setdefault(entrance, []).append(flow.id)
    turns: dict[tuple[int, ...], int] = {}
    spared: dict[str, Spared] = {}
    for ids in entrances.values():
        clients = tuple(class_of[flow_id] for flow_id in ids)
        turn = turns[clients] = turns.get(clients, len(turns)) + 1
        sent = ids[turn % len(ids)]
        for flow_id in ids:
            if flow_id != sent:
                spared[flow_id] = Spared(sent, classes[class_of[flow_id]].first)
    return spared


def _entrance(flow: Flow) -> Hashable:
    """Return what flows have in common that differ in the client only; None for a flow of a corpus."""
    if not known_difference(flow):
        return None
    packet = replace(flow.first.packet, src=0)
    return known_difference(flow), packet, flow.steps[1:]


def waiting(spared: Mapping[str, Spared], doubtful: Container[str]) -> set[str]:
    """Return the flows whose sent flow is ``doubtful``."""
    return {flow_id for flow_id, instead in spared.items() if instead.sent in doubtful}


def flows_that_share_runs(flows: Sequence[Flow], expected: Mapping[str, FlowResult]) -> SharedRuns:
    """Return the flows that need fewer runs in iptables mode, because other flows make the same choice.

    The outcomes of a flow that may leave the node untranslated are shown, so each of them has to be seen.
    """
    results = [expected[flow.id] for flow in flows]
    translated = {
        flow.id
        for flow, result in zip(flows, results, strict=True)
        if all(fate_of(branch.outcomes[0]) is not Fate.ROUTED for branch in result.branches)
    }
    return shared_runs(flows, results, translated)
