"""The predicted outcome of a probe before the change, computed from the recovered services.

The simulator computes what the node's iptables rules do with the packet up to its delivery, because
addresses of services are the node's own: whether they drop it, and the mark that they set. Then ip_vs takes
it, if a virtual service has its address, protocol and port (``ip_vs_in_hook``), and sends it to one of the
servers. Rules after that (OUTPUT, POSTROUTING) are those of kube-proxy: they masquerade packets with its
mark, and those of an endpoint to itself (KUBE-LOOP-BACK).
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from backends.model.contract import Job
from backends.model.flow import Flow
from backends.model.ipvs import VirtualService
from backends.model.outcome import Outcome, Verdict
from backends.simulator import Simulation
from nfparity.assess.fate import Fate, fate_of
from nfparity.assess.ipvs.passages import Passage, Target
from nfparity.assess.ipvs.probes import Kind, Probe
from nfparity.assess.node.facts import Facts
from translate.dataclass import dataclass, replace
from translate.ir import Family, TableName, format_address

__all__ = ["IN_TURN", "Prediction", "Predictor"]

IN_TURN: Final = frozenset({"rr", "wrr", "lc", "wlc", "sed", "nq"})
"""Schedulers that give each of n servers of one weight one of n new connections."""

_BY_SOURCE: Final = frozenset({"sh"})
"""Schedulers that send all connections of one client to one server."""


_UNKNOWN: Final = Outcome(verdict=Verdict.UNKNOWN)
_NO_SERVER: Final = "icmp-port-unreachable"
"""The answer of a virtual service without servers (``ip_vs_leave``)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """The predicted outcome of every connection of a probe; anything, if rules that are not modelled decide.

    ``delivered`` is the simulated outcome without ip_vs. If ``targets`` is not empty, ip_vs sends the packet
    to one of them, and otherwise ``rejects`` it, or does not take it. ``masquerade`` are the targets to
    which the source changes.
    """

    family: Family
    delivered: Outcome
    virtual: VirtualService | None = None
    targets: frozenset[Target] = frozenset()
    masquerade: frozenset[Target] = frozenset()
    rejects: bool = False

    def fault(self, run: tuple[Passage, ...]) -> str | None:
        """Return the first difference between an observed run and the prediction, in words."""
        for number, passage in enumerate(run, 1):
            fault = self._fault(passage)
            if fault is not None:
                return f"connection {number}: {fault}"
        return self._wrong_turn(run) if self.targets else None

    def _fault(self, passage: Passage) -> str | None:
        first, answer = passage.first, passage.answer
        if self.delivered.verdict is Verdict.UNKNOWN:
            return None
        if not self.targets:
            if self.rejects:
                if _plain(first.reject_with) == _NO_SERVER:
                    return None
                return f"{_NO_SERVER} predicted, {first.reject_with or first.verdict} observed"
            expected = self.delivered
            for name in ("verdict", "reject_with", "out"):
                if getattr(expected, name) != getattr(first, name):
                    return f"{name}: {getattr(expected, name)} predicted, {getattr(first, name)} observed"
            return None
        target = passage.target
        if target is None:
            return f"an endpoint predicted, {fate_of(first)} observed"
        if target not in self.targets:
            return f"{format_address(self.family, target[0])}:{target[1]} is no endpoint of the service"
        if first.snat is not (target in self.masquerade):
            return f"masquerading {'not ' if first.snat else ''}predicted"
        if answer is not None and answer.verdict not in (Verdict.FORWARD, Verdict.LOCAL):
            return f"an answer to the client predicted, {answer.verdict} observed"
        if answer is not None and self.virtual is not None:
            sender = (answer.src, answer.sport)
            if sender != (self.virtual.address, self.virtual.port):
                return "the answer does not come from the address of the service"
        return None

    def _wrong_turn(self, run: tuple[Passage, ...]) -> str | None:
        """Return a violation of the scheduler's order."""
        assert self.virtual is not None
        counts = Counter(passage.target for passage in run)
        weights = {server.weight for server in self.virtual.servers if server.weight}
        if self.virtual.persistent or self.virtual.scheduler in _BY_SOURCE:
            return None if len(counts) == 1 else "one endpoint for all connections predicted"
        if self.virtual.scheduler in IN_TURN and len(weights) == 1 and len(run) <= len(self.targets):
            return None if max(counts.values()) == 1 else "every endpoint once predicted"
        return None


def _plain(reject: str | None) -> str | None:
    """Return an ICMP error of ip_vs in the words of iptables."""
    return {"icmp6-port-unreachable": "icmp-port-unreachable"}.get(reject or "", reject)


class Predictor:
    """Predictions for the probes of one family of a node."""

    def __init__(self, facts: Facts) -> None:
        rules, self._facts = facts.ruleset, facts
        self._simulation = Simulation(Job(rules=rules, node=facts.node))
        # ip_vs takes the node's own packets in OUTPUT, after the nat table and before the filter table.
        tables = tuple(table for table in rules.tables if table.name is not TableName.FILTER)
        self._before_filters = Simulation(Job(rules=replace(rules, tables=tables), node=facts.node))

    def of(self, probe: Probe) -> Prediction:
        """Return the prediction of a probe."""
        family, own = self._facts.family, probe.client.entry is None
        # A connection begins with a SYN only (ip_vs_scheduler's caller tcp_conn_schedule).
        virtual = None if probe.kind is Kind.LATE else probe.virtual
        early = own and virtual is not None
        simulation = self._before_filters if early else self._simulation
        simulated = simulation.simulate(_first_only(probe))
        delivered = _UNKNOWN if simulated.is_open else simulated.branches[0].outcomes[0]
        if virtual is None or fate_of(delivered) is not Fate.LOCAL:
            return Prediction(family=family, delivered=delivered)
        targets = frozenset((server.address, server.port) for server in virtual.servers if server.weight)
        # Without ip_vs, a packet of the node would have passed POSTROUTING on its way to lo.
        marked = delivered.snat if own else bool((delivered.mark or 0) & (self._facts.state.mark or 0))
        itself = frozenset(target for target in targets if target[0] == probe.client.address)
        return Prediction(
            family=family,
            delivered=delivered,
            virtual=virtual,
            targets=targets,
            masquerade=targets if marked else itself,
            rejects=not targets,
        )


def _first_only(probe: Probe) -> Flow:
    return replace(probe.flow, steps=probe.flow.steps[:1])
