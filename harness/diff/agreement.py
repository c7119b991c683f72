"""Agreement of an observed branch of a flow with an expected one.

A port that the kernel picks is a class of ports in the expected branch; any port of the class agrees.

A masquerade may pick the port (and address) that the packet already had. Then source NAT is not visible, so
the ``snat`` of that packet and the ``dnat`` of the answer are not compared.
"""

from __future__ import annotations

from itertools import takewhile
from typing import Final

from backends.model.flow import Again, Flow, Pause, Send, Step
from backends.model.outcome import Outcome, OutcomeBranch, Verdict
from backends.model.packet import Port, PortClass
from translate.dataclass import fields

__all__ = [
    "PORTS",
    "acting_steps",
    "distance",
    "ignored_fields",
    "paired_outcomes",
    "port_agrees",
    "quoted_agrees",
]

PORTS: Final = ("sport", "dport")
"""The fields of an Outcome that may be a class of ports; so may those in its ``quoted``."""

_PLAIN: Final = tuple(field.name for field in fields(Outcome) if field.name not in (*PORTS, "quoted"))
"""The fields that are compared for equality."""


def acting_steps(flow: Flow) -> list[tuple[int, Step]]:
    """Return the steps that have an outcome, with their indices."""
    return [(i, s) for i, s in enumerate(flow.steps) if not isinstance(s, Pause)]


def distance(flow: Flow, expected: OutcomeBranch, observed: OutcomeBranch) -> int:
    """Return the number of fields that differ; a different verdict weighs more than any field."""
    if len(expected.outcomes) != len(observed.outcomes):
        return 1000
    total = 0
    for (_, want, have), ignored in zip(
        paired_outcomes(flow, expected, observed), ignored_fields(flow, expected, observed), strict=False
    ):
        if want == have:
            continue
        total += 20 * (want.verdict is not have.verdict)
        total += sum(getattr(want, f) != getattr(have, f) for f in _PLAIN if f not in ignored)
        total += sum(not port_agrees(getattr(want, f), getattr(have, f)) for f in PORTS)
        total += not quoted_agrees(want, have)
    return total


def paired_outcomes(
    flow: Flow, expected: OutcomeBranch, observed: OutcomeBranch
) -> list[tuple[int, Outcome, Outcome]]:
    """Return the index, expected and observed outcome of each step with one.

    Ends before the first step whose outcome the rules leave open.
    """
    steps = [i for i, _ in acting_steps(flow)]
    paired = zip(steps, expected.outcomes, observed.outcomes, strict=False)
    return list(takewhile(lambda triple: triple[1].verdict is not Verdict.UNKNOWN, paired))


def port_agrees(expected: Port | None, observed: Port | None) -> bool:
    """Return whether a port is the expected one, or of the expected class."""
    if isinstance(expected, PortClass):
        if isinstance(observed, PortClass):
            return expected.low <= observed.low and observed.high <= expected.high
        return observed is not None and observed in expected
    return expected == observed


def quoted_agrees(expected: Outcome, observed: Outcome) -> bool:
    """Return whether both outcomes quote the same packet in an ICMP error, or none."""
    want, have = expected.quoted, observed.quoted
    if want is None or have is None:
        return want is have
    return (
        (want.src, want.dst) == (have.src, have.dst)
        and port_agrees(want.sport, have.sport)
        and port_agrees(want.dport, have.dport)
    )


def ignored_fields(flow: Flow, expected: OutcomeBranch, observed: OutcomeBranch) -> list[frozenset[str]]:
    """Return for each outcome the fields that are not compared, because source NAT may be invisible."""
    ignored = []
    sent: Send | None = None
    coincided = False
    for (_, step), want, have in zip(acting_steps(flow), expected.outcomes, observed.outcomes, strict=False):
        if isinstance(step, Send):
            sent = step
        if isinstance(step, Send | Again):
            packet = None if sent is None else sent.packet
            coincided = (
                packet is not None
                and isinstance(want.sport, PortClass)
                and (have.src, have.sport) == (packet.src, packet.icmp_id if packet.is_icmp else packet.sport)
            )
            ignored.append(frozenset({"snat"}) if coincided else frozenset[str]())
        else:
            ignored.append(frozenset({"dnat"}) if coincided else frozenset[str]())
    return ignored
