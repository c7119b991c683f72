"""Counts of random choices: the branch that each repetition of a flow took, and kept source ports.

If the kernel picks the source port from a class of n ports, the packet keeps its original port with
probability 1/n. A translation that loses ``--random-fully`` keeps every port; this shows only in the count,
because each single port is in the class.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from backends.model.flow import Flow
from backends.model.outcome import FlowResult
from backends.model.packet import Port, PortClass
from harness.diff.compare import matching_branches
from harness.diff.shares import Tally

__all__ = ["share_tallies"]


def share_tallies(
    flows: Sequence[Flow],
    expected: Sequence[FlowResult],
    results: Sequence[FlowResult],
    repeats: Mapping[str, str] | None = None,
) -> tuple[Tally, ...]:
    """Count the outcomes in ``results``, per flow that was run several times.

    With ``repeats``, which maps each repetition to its original flow, the repetitions are the runs. A
    repetition counts for the branches if the reference gives it the same odds as its original.
    """
    odds = {f.id: tuple(b.probability for b in e.branches) for f, e in zip(flows, expected, strict=True)}
    branches: dict[str, list[int]] = {}
    kept: dict[tuple[str, PortClass], list[int]] = {}
    for flow, want, have in zip(flows, expected, results, strict=True):
        original = flow.id if repeats is None and have.runs > 1 else (repeats or {}).get(flow.id)
        if original is None or want.guessed or want.is_open:
            continue
        for branch in have.branches:
            times = int(branch.probability * have.runs)
            matches = matching_branches(flow, want, branch)
            if len(matches) == 1 and odds[flow.id] == odds[original] and len(odds[original]) > 1:
                branches.setdefault(original, [0] * len(odds[original]))[matches[0]] += times
            classes = {want.branches[m].outcomes[0].sport for m in matches}
            for drawn in classes:
                if isinstance(drawn, PortClass):
                    same = branch.outcomes[0].sport == _sent_port(flow)
                    kept.setdefault((original, drawn), [0, 0])[not same] += times
    tallies = [
        Tally(flow_id=original, what="branch", probabilities=odds[original], counts=tuple(counts))
        for original, counts in branches.items()
    ]
    for (original, drawn), counts in kept.items():
        share = Fraction(1, drawn.high - drawn.low + 1)
        what = f"port of {drawn} kept, drawn:"
        tallies.append(
            Tally(flow_id=original, what=what, probabilities=(share, 1 - share), counts=tuple(counts))
        )
    return tuple(tallies)


def _sent_port(flow: Flow) -> Port | None:
    packet = flow.first.packet
    return packet.sport if packet.has_ports else packet.icmp_id
