"""Normal form of a flow's observed paths, so that random choices do not change a report.

The kernel picks source ports at random (``nf_nat_l4proto_unique_tuple``). A port that differs between runs of
a flow is replaced by the range that it was picked from, wherever it occurs; a constant port stays. A picked
port that happens to be equal to the sent port is replaced, too, and a constant port that happens to be equal
to a picked one stays. Paths are sorted, so that their order does not depend on the order of the runs.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, repeat
from typing import Any, Final

from backends.model.flow import Again, Flow, Pause, Reply, Send
from backends.model.outcome import FlowResult, Outcome, OutcomeBranch
from backends.model.packet import Packet, Port, PortClass
from harness.corpus.formats.outcomes import outcome_to_json
from translate.dataclass import dataclass, replace

__all__ = ["PICKED", "normal_paths", "path_key", "picked_range"]

PICKED: Final = PortClass(1024, 65535)
"""The default range from which the kernel replaces a source port of 1024 or more."""
_CLASSES: Final = (PortClass(1, 511), PortClass(600, 1023), PICKED)
"""The default ranges for source ports below 512, below 1024, and all others."""
_ALL: Final = PortClass(0, 65535)
_SOURCE: Final = ("sport",)
_PORTS: Final = ("sport", "dport")

_Ports = dict[Port | None, Port]
"""The replacements of ports."""

_Paths = dict[tuple[Outcome, ...], list["_Path"]]
"""Paths by shape: their outcomes with placeholders for picked ports."""


def normal_paths(
    flow: Flow, branches: Iterable[OutcomeBranch], *, runs: int, expected: FlowResult | None = None
) -> tuple[OutcomeBranch, ...]:
    """Return the normal form of ``branches``, the paths observed in ``runs`` runs.

    ``expected`` contains further port ranges that rules may specify. After a single run, a source port
    counts as picked if it was changed and is in the kernel's default range for the port that was sent.
    """
    observed = tuple(branches)
    if not observed:
        return ()
    known = frozenset(_sent_ports(flow))
    answers = [not isinstance(step, Send | Again) for step in flow.steps if not isinstance(step, Pause)]
    taken = [_Path.of(branch, known, answers) for branch in observed]
    if len(taken) == 1 and not taken[0].picks:
        return observed
    ranges = _ranges(expected)
    groups: _Paths = {}
    for path in taken:
        groups.setdefault(path.shape, []).append(path)
    normal: dict[tuple[Outcome, ...], OutcomeBranch] = {}
    for shape, paths in _without_coincidences(groups).items():
        columns = zip(*(path.picks for path in paths), strict=True)
        alone = sum(int(path.branch.probability * runs) for path in paths) == 1
        ports = (_shown_as(flow, paths, values, ranges, alone=alone) for values in columns)
        shown: _Ports = {_mark(number): port for number, port in enumerate(ports)}
        outcomes = tuple(_with_ports(outcome, shown) for outcome in shape)
        normal.setdefault(outcomes, replace(paths[0].branch, outcomes=outcomes))
    if len(normal) < 2:
        return tuple(normal.values())
    return tuple(sorted(normal.values(), key=lambda branch: path_key(flow, branch.outcomes)))


def picked_range(port: int) -> PortClass:
    """Return the range from which the kernel replaces a source port (``nf_nat_l4proto_unique_tuple``)."""
    return _CLASSES[(port >= 512) + (port >= 1024)]


def path_key(flow: Flow, outcomes: Sequence[Outcome]) -> str:
    """Return the sort key of a path."""
    return json.dumps([outcome_to_json(outcome, flow.family) for outcome in outcomes])


@dataclass(frozen=True, slots=True)
class _Path:
    """A path with placeholders for the source ports that no sender used.

    ``picks`` are these ports, in order of appearance. A destination port has a placeholder in answers and
    errors only: that of a client's own packet is sent or set by DNAT, and equals a picked port by chance.
    """

    branch: OutcomeBranch
    shape: tuple[Outcome, ...]
    picks: tuple[int, ...]

    @classmethod
    def of(cls, branch: OutcomeBranch, known: frozenset[int], answers: Sequence[bool]) -> _Path:
        picks: dict[int, None] = {}
        for outcome in branch.outcomes:
            for port in (outcome.sport, None if outcome.quoted is None else outcome.quoted.sport):
                if isinstance(port, int) and port not in known:
                    picks.setdefault(port)
        if not picks:
            return cls(branch, branch.outcomes, ())
        marks: _Ports = {port: _mark(number) for number, port in enumerate(picks)}
        shape = tuple(
            _with_ports(outcome, marks, _PORTS if answer else _SOURCE)
            for outcome, answer in zip(branch.outcomes, chain(answers, repeat(True)), strict=False)
        )
        return cls(branch, shape, tuple(picks))


def _mark(number: int) -> PortClass:
    """Return the placeholder in a shape for a picked port."""
    return PortClass(-1 - number, -1)


def _without_coincidences(groups: _Paths) -> _Paths:
    """Merge paths that differ only by chance: in the pick of a port that is equal to another.

    A pick that is equal to the sent port looks like an unchanged port, and one that is equal to a constant
    port makes that look picked. A path without such chance has more picks, or as many in fewer places.
    """
    if len(groups) == 1:
        return groups
    merged: _Paths = {}
    alike: dict[tuple[Outcome, ...], list[tuple[Outcome, ...]]] = {}
    for shape in sorted(groups, key=lambda shape: (-len(groups[shape][0].picks), _placeholders(shape))):
        others = alike.setdefault(tuple(map(_but_ports, shape)), [])
        for path in groups[shape]:
            fitting = ((other, _picks(other, path.branch.outcomes)) for other in others)
            like, picks = next(((other, picks) for other, picks in fitting if picks), (shape, path.picks))
            merged.setdefault(like, []).append(replace(path, picks=picks))
        others.append(shape)
    return merged


def _placeholders(shape: Iterable[Outcome]) -> int:
    ports = chain.from_iterable(map(_ports, shape))
    return sum(isinstance(port, PortClass) and port.low < 0 for port in ports)


def _but_ports(outcome: Outcome) -> Outcome:
    return replace(outcome, sport=None, dport=None, quoted=None, snat=False, dnat=False)


def _picks(shape: Sequence[Outcome], outcomes: Sequence[Outcome]) -> tuple[int, ...]:
    """Return the ports at the placeholders of a shape; empty if the outcomes have another shape."""
    bound: _Ports = {}
    for want, have in zip(shape, outcomes, strict=True):
        for placeholder, port in zip(_ports(want), _ports(have), strict=False):
            if isinstance(placeholder, PortClass) and placeholder.low < 0 and isinstance(port, int):
                bound.setdefault(placeholder, port)
        if replace(_with_ports(want, bound), snat=have.snat, dnat=have.dnat) != have:
            return ()
    return tuple(port for port in bound.values() if isinstance(port, int))


def _shown_as(
    flow: Flow,
    paths: Sequence[_Path],
    values: Sequence[int],
    ranges: Sequence[PortClass],
    *,
    alone: bool,
) -> Port:
    """Return the replacement of a port from its value on each path: the number if it is constant."""
    candidates = (_range_of(flow, path.branch, port) for path, port in zip(paths, values, strict=True))
    own = next((candidate for candidate in candidates if candidate is not None), None)
    if alone and own is not None and values[0] in own:
        return own
    if len(set(values)) == 1:
        return values[0]
    known = (*ranges, _ALL if own is None else own, _ALL)
    fitting = [range_ for range_ in known if all(value in range_ for value in values)]
    return min(fitting, key=lambda range_: (range_.high - range_.low, range_))


def _range_of(flow: Flow, branch: OutcomeBranch, port: int) -> PortClass | None:
    """Return the range from which ``port`` was picked to replace a sent port; None if it was not picked."""
    outcomes = iter(branch.outcomes)
    sent: Packet | None = None
    arrived: Outcome | None = None
    for step in flow.steps:
        if isinstance(step, Pause):
            continue
        outcome = next(outcomes, None)
        if outcome is None:
            break
        sent = step.packet if isinstance(step, Send) else sent
        if outcome.sport == port and outcome.snat and sent is not None:
            before = sent.sport
            if isinstance(step, Reply):
                before = None if arrived is None else arrived.dport
            if sent.is_icmp or not isinstance(before, int):
                return _ALL
            return picked_range(before)
        if isinstance(step, Send | Again):
            arrived = outcome
    return None


def _sent_ports(flow: Flow) -> Iterator[int]:
    for step in flow.steps:
        packet = step.packet if isinstance(step, Send) else None
        while packet is not None:
            ports = (packet.sport, packet.dport, packet.icmp_id)
            yield from (port for port in ports if isinstance(port, int))
            packet = packet.quoted


def _ranges(expected: FlowResult | None) -> tuple[PortClass, ...]:
    branches = () if expected is None else expected.branches
    ports = chain.from_iterable((o.sport, o.dport) for branch in branches for o in branch.outcomes)
    return tuple(dict.fromkeys(port for port in ports if isinstance(port, PortClass)))


def _ports(outcome: Outcome) -> tuple[Port | None, ...]:
    quoted = outcome.quoted
    return (outcome.sport, outcome.dport, *((quoted.sport, quoted.dport) if quoted is not None else ()))


def _with_ports(outcome: Outcome, shown: _Ports, names: Sequence[str] = _PORTS) -> Outcome:
    """Return an outcome with some ports replaced, where ``names`` are the fields that may be."""
    changed: dict[str, Any] = {}
    for name in names:
        port = getattr(outcome, name)
        if port in shown:
            changed[name] = shown[port]
    quoted = outcome.quoted
    if quoted is not None:
        sport, dport = (shown.get(port, port) for port in (quoted.sport, quoted.dport))
        if (sport, dport) != (quoted.sport, quoted.dport):
            changed["quoted"] = replace(quoted, sport=sport, dport=dport)
    return replace(outcome, **changed) if changed else outcome
