"""Replay of flows in each order in which kube-proxy and another component can register their chains.

At equal hook and priority, the chain that was registered last runs first, and the first NAT binding of a
connection is final. After the change of mode, kube-proxy's chains are registered last. If another component
registers its chains later, those run first: its own DNAT, SNAT and marks then come before kube-proxy's. The
outcomes in both orders are observed on the kernel and compared with each other. A difference is a finding of
its own, because each of the two orders can occur. Flows on which the order has provably no influence are not
replayed again (:mod:`nfparity.assess.reordering`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from typing import Final

from backends.combined.places import shared_places
from backends.model.contract import Job
from backends.model.flow import Flow, Send
from backends.model.outcome import FlowResult
from backends.simulator import RuleVisited, Simulation
from harness.diff.compare import differing_paths
from harness.diff.paths import normal_paths
from harness.diff.replay import Progress, ReplayOptions, replay
from harness.diff.sampling import CERTAIN, Sampling
from nfparity.assess.difference import ChangedPacket, Evidence, evidence
from nfparity.assess.fate import Fate
from nfparity.assess.node.components import IPTABLES
from nfparity.assess.node.facts import Facts
from nfparity.assess.reordering import Reordering
from nfparity.assess.replay.backends import NftablesModeBackend
from nfparity.assess.replay.replaying import Trial, changed_packet
from translate.dataclass import dataclass, replace
from translate.ir import (
    Accept,
    Dnat,
    Drop,
    HashMark,
    Masquerade,
    Netmap,
    Redirect,
    Reject,
    RestoreMark,
    RestoreSocketMark,
    Rule,
    Ruleset,
    SaveMark,
    SetConnmark,
    SetMark,
    Snat,
)

__all__ = ["Binding", "Order", "OrderDifference", "compare_orders", "orders_of", "untested_orders"]


class Binding(StrEnum):
    """The decision that depends on the order of registration."""

    DNAT = "DNAT"
    SNAT = "SNAT"
    MARK = "mark"
    VERDICT = "verdict"
    OTHER = "other fields"


_FIELDS: Final = {
    "dst": Binding.DNAT,
    "dport": Binding.DNAT,
    "dnat": Binding.DNAT,
    "src": Binding.SNAT,
    "sport": Binding.SNAT,
    "snat": Binding.SNAT,
    "mark": Binding.MARK,
    "verdict": Binding.VERDICT,
    "reject_with": Binding.VERDICT,
}
_ACTIONS: Final = {
    Binding.DNAT: (Dnat, Redirect, Netmap),
    Binding.SNAT: (Snat, Masquerade, Netmap),
    # The first source NAT ends the chain that would clear kube-proxy's mark.
    Binding.MARK: (
        SetMark,
        HashMark,
        SetConnmark,
        SaveMark,
        RestoreMark,
        RestoreSocketMark,
        Snat,
        Masquerade,
    ),
    Binding.VERDICT: (
        Drop,
        Reject,
        Accept,
        Dnat,
        Redirect,
        SetMark,
        HashMark,
        SetConnmark,
        RestoreMark,
        RestoreSocketMark,
    ),
    Binding.OTHER: (SetMark, HashMark, SetConnmark, SaveMark, RestoreMark, RestoreSocketMark),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """Components whose chains are registered after kube-proxy's, and the places where that counts."""

    later: tuple[str, ...]
    places: tuple[str, ...]
    kubelet: bool = False
    """True if the kubelet of the node creates chains of iptables when it starts."""

    @property
    def kube_proxy_first(self) -> str:
        """The events after which kube-proxy's chains run first."""
        return (
            "kube-proxy starts in nftables mode while the others are loaded, as when the mode changes; recent"
            " releases register their chains again at each start"
        )

    @property
    def others_first(self) -> str:
        """The events after which the chains of the other components run first."""
        causes = []
        if IPTABLES in self.later:
            kubelet = " (on this node the kubelet uses iptables at its start)" if self.kubelet else ""
            causes.append(
                f"the node boots, and kube-proxy adds its table before iptables is first used{kubelet}"
            )
            causes.append(
                "a component runs iptables-nft-restore without --noflush, which adds the table again"
            )
        tables = [name for name in self.later if name != IPTABLES]
        if tables:
            names = " or ".join(f"table {name}" for name in tables)
            causes.append(f"the owner of {names} starts after kube-proxy, or deletes it and adds it again")
        return "; or ".join(causes)


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderDifference:
    """Packets whose outcomes depend on the order of registration in the same way, through the same rules.

    In each of ``examples``, ``before`` is the outcome if kube-proxy's chains were registered last and run
    first, and ``after`` the outcome if those of ``order.later`` were. ``lines`` are the iptables rules of the
    component that apply to the packets before kube-proxy's rules do.
    """

    order: Order
    binding: Binding
    lines: tuple[Evidence, ...]
    examples: tuple[ChangedPacket, ...]

    @property
    def subject(self) -> str:
        """The decision and the components, in words that are the same on every node."""
        return f"{self.binding} by kube-proxy or by {' and '.join(self.order.later)}"


def orders_of(after: NftablesModeBackend, facts: Facts) -> tuple[Order, ...]:
    """Return every order except the one in which kube-proxy's chains are registered last.

    In each order, one component with a chain at a place of kube-proxy's is registered last; in another
    order, all of them are.
    """
    return tuple(order for order, reason in _orders(after, facts) if reason is None)


def untested_orders(after: NftablesModeBackend, facts: Facts) -> tuple[str, ...]:
    """Return a note for each order that cannot be tested."""
    return tuple(
        f"the order in which {' and '.join(order.later)} come last is not tested: {reason}"
        for order, reason in _orders(after, facts)
        if reason is not None
    )


def _orders(after: NftablesModeBackend, facts: Facts) -> Iterator[tuple[Order, str | None]]:
    places: dict[str, tuple[str, ...]] = {}
    for name, component in after.components:
        shared = shared_places(component, after.listing, facts.family)
        if shared:
            places[name] = shared
    groups = [(name,) for name in places] + ([tuple(places)] if len(places) > 1 else [])
    for later in groups:
        order = Order(
            later=later,
            places=tuple(sorted({place for name in later for place in places[name]})),
            kubelet=any(
                chain.name == "KUBE-KUBELET-CANARY"
                for table in facts.other_rules.ruleset.tables
                for chain in table.chains
            ),
        )
        yield order, _obstacle(after, later)


def _obstacle(after: NftablesModeBackend, later: Sequence[str]) -> str | None:
    """Return the reason why an order would not last between flows.

    Tables with rules that count packets are loaded again between flows, which registers them last, and
    iptables-legacy cannot be registered after them.
    """
    if IPTABLES not in later:
        return None
    earlier = [after.listing, *(listing for listing in after.native if listing.source not in later)]
    counting = next((listing for listing in earlier if listing.counting), None)
    if counting is None:
        return None
    return f"{counting.counting[0]} counts packets, and is loaded again between flows"


def compare_orders(
    facts: Facts,
    flows: Sequence[Flow],
    trial: Trial,
    *,
    after: NftablesModeBackend,
    progress: Progress,
    sampling: Sampling = CERTAIN,
) -> tuple[OrderDifference, ...]:
    """Return the differences between ``trial``, in which kube-proxy's chains run last, and every other order.

    Raises MachineError when the backend fails.
    """
    differences: list[OrderDifference] = []
    known = {**trial.inferred, **trial.later}
    for order in orders_of(after, facts):
        other = replace(after, later=frozenset(order.later))
        compared = [flow for flow in flows if flow.id in known]
        if after.generated and sampling.miss < 1:
            moved = Reordering(facts, after.components, after.listing, order.later)
            compared = [flow for flow in compared if moved.may_change(flow, known[flow.id])]
        changed = _changed(facts, compared, trial, (after, other), progress, sampling)
        differences += _grouped(order, changed, _Rules(facts, after, order))
    return tuple(differences)


def _changed(
    facts: Facts,
    compared: Sequence[Flow],
    trial: Trial,
    sides: tuple[NftablesModeBackend, NftablesModeBackend],
    progress: Progress,
    sampling: Sampling,
) -> Iterator[ChangedPacket]:
    """Yield the first packet of each flow that differs between two orders."""
    if not compared:
        return
    job = Job(rules=facts.ruleset, node=facts.node)
    known = {**trial.inferred, **trial.later}
    wanted = {flow.id: _guess(flow, known[flow.id]) for flow in compared}
    spared = {
        flow_id: instead
        for flow_id, instead in trial.spared.items()
        if instead.sent in wanted and instead.first in wanted
    }
    sent = [flow for flow in compared if flow.id not in spared]
    (second,) = replay(
        [sides[1]],
        job,
        sent,
        ReplayOptions(
            progress=progress,
            expected=[wanted[flow.id] for flow in sent],
            sampling=sampling,
            once=trial.inferred,
        ),
    )
    observed = dict(zip((flow.id for flow in sent), second.results, strict=True))
    # A member of a class has been sent once, or another client's flow to it. If an outcome is unexpected,
    # both orders are tested in full.
    differing = {
        flow.id
        for flow in sent
        if (
            any(differing_paths(flow, wanted[flow.id], observed[flow.id]))
            if flow.id in trial.inferred
            else _first_difference(flow, wanted[flow.id], observed[flow.id])
        )
    }
    again = [
        flow
        for flow in compared
        if (flow.id in trial.inferred and flow.id in differing)
        or (flow.id in spared and not differing.isdisjoint((spared[flow.id].sent, spared[flow.id].first)))
    ]
    if again:
        guesses = [wanted[flow.id] for flow in again]
        options = ReplayOptions(progress=progress, expected=guesses, sampling=sampling)
        both = replay(sides, job, again, options)
        for flow, first_result, other_result in zip(again, *(side.results for side in both), strict=True):
            wanted[flow.id], observed[flow.id] = _guess(flow, first_result), other_result
    tested = {flow.id for flow in again}
    for flow in compared:
        if flow.id in trial.inferred and flow.id not in tested:
            continue
        first = _first_difference(flow, wanted[flow.id], observed[flow.id])
        if first is not None:
            yield first


def _guess(flow: Flow, result: FlowResult) -> FlowResult:
    """Return an observed result as the expected one: its paths, whose probabilities are not known."""
    paths = normal_paths(flow, result.branches, runs=result.runs)
    return replace(result, branches=paths, guessed=True)


def _first_difference(flow: Flow, wanted: FlowResult, other: FlowResult) -> ChangedPacket | None:
    """Return the first packet of a path that only one of the orders has."""
    for different in differing_paths(flow, wanted, other):
        return changed_packet(flow, wanted, different)
    for different in differing_paths(flow, _guess(flow, other), wanted):
        swapped = changed_packet(flow, _guess(flow, other), different)
        return replace(swapped, before=swapped.after, after=swapped.before)
    return None


class _Rules:
    """The iptables rules among the later components, and the packets that they decide about."""

    def __init__(self, facts: Facts, after: NftablesModeBackend, order: Order) -> None:
        rest = dict(after.components).get(IPTABLES) if IPTABLES in order.later else None
        self._simulation: Simulation | None = None
        if isinstance(rest, Ruleset):
            self._simulation = Simulation(Job(rules=rest, node=facts.node))
        hooks = {place.partition(",")[0] for place in order.places}
        self._policies = tuple(
            Evidence(denial.chain.origin)
            for denial in facts.other_rules.denials
            if denial.rule is None and denial.hook.value.lower() in hooks
        )

    def of(self, changed: ChangedPacket, binding: Binding) -> tuple[Evidence, ...]:
        """Return the lines that decide about a packet, in a simulation of these rules without kube-proxy's.

        Without such a rule, the policy of a chain decides about a lost packet.
        """
        lines = self._matched(changed.flow, changed.step, binding)
        if not lines and isinstance(changed.before.dst, int) and changed.before.dnat:
            # The rules after the routing decision see the destination that kube-proxy chose.
            packet = replace(changed.packet, dst=changed.before.dst, dport=changed.before.dport)
            lines = self._matched(
                replace(changed.flow, steps=(Send(packet=packet, entry=changed.entry),)), 0, binding
            )
        return lines if lines or binding is not Binding.VERDICT else self._policies

    def _matched(self, flow: Flow, step: int, binding: Binding) -> tuple[Evidence, ...]:
        if self._simulation is None:
            return ()
        matched: dict[int, Rule] = {}
        for path in self._simulation.trace(flow, every_rule=False):
            for traced in path.steps[: step + 1]:
                for event in traced.events:
                    if isinstance(event, RuleVisited) and event.matched:
                        matched.setdefault(event.rule.origin.line, event.rule)
        kinds = _ACTIONS[binding]
        return evidence(rule for rule in matched.values() if any(isinstance(a, kinds) for a in rule.actions))


_Key = tuple[Binding, tuple[int, ...], Fate, Fate]
"""The decision, the lines that make it, and the fates in both orders."""


def _grouped(order: Order, changed: Iterable[ChangedPacket], rules: _Rules) -> Iterator[OrderDifference]:
    """Yield one difference for the packets that differ in the same way through the same rules."""
    groups: dict[_Key, list[ChangedPacket]] = {}
    lines: dict[_Key, tuple[Evidence, ...]] = {}
    for packet in changed:
        binding = _binding(packet)
        shown = rules.of(packet, binding)
        key = (binding, tuple(line.origin.line for line in shown), packet.fate_before, packet.fate_after)
        groups.setdefault(key, []).append(packet)
        lines[key] = shown
    for key, packets in groups.items():
        yield OrderDifference(order=order, binding=key[0], lines=lines[key], examples=tuple(packets))


def _binding(changed: ChangedPacket) -> Binding:
    """Return the decision that comes first among the fields that differ."""
    bindings = {_FIELDS.get(name, Binding.OTHER) for name in changed.fields}
    return next((binding for binding in Binding if binding in bindings), Binding.OTHER)
