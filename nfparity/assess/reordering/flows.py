"""Flows whose outcomes the order of registration can affect; all others need no second replay.

In another order, each component that is registered *later* swaps places with kube-proxy, and with other
components that were registered after it. If a chain has no effect on any packet of a flow, swapping it with
another changes nothing: the other chain sees the same packets, and so does everything after both. A verdict
that accepts a packet is no effect, because the next chain of the hook sees the packet all the same.

*NAT chains* see the first packet of each connection only, because the connection then has its translation
(``nf_nat_inet_fn``). At PREROUTING and OUTPUT this is a packet as it was sent. At POSTROUTING and INPUT its
destination is where it arrived in the first order, and in the second order, too: as long as the moved chains
have no effect, nothing before them differs. A dropped packet arrives at an endpoint or nowhere, or anywhere
if another component may have translated it. A rejected packet is answered by the node, and the answer passes
OUTPUT and POSTROUTING with the connection of the packet, which may have no source translation yet.

A test that is not understood may hold, and a statement that is not understood is an effect. A flow is
replayed if it waits, or if an answer in it is a SYN, because an answer may then be the first packet of a
connection.

*Other chains* at a common place see every packet. Two that do nothing but drop and reject packets let the
same packets pass in both orders, because neither changes a packet for the other. If all packets of a flow
pass in the first order, they pass in the second. If one does not, and not both chains just drop, the flow is
replayed.

Every flow is replayed if other chains at a common place do more, if rules change addresses or zones of
connections without NAT, and if the rules of the new mode are not those that kube-proxy generates.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence, Set
from functools import partial
from typing import Final

from backends.model.flow import Again, Flow, Pause, Reply, Send, Step
from backends.model.outcome import FlowResult, Outcome, Verdict
from backends.model.packet import Packet, Port
from nfparity.assess.node.facts import Facts
from nfparity.assess.reordering.iptables import iptables_effects
from nfparity.assess.reordering.nftables import NftEffects
from nfparity.assess.reordering.packets import ANY_PACKET, NOT_LOCAL, Effect, EffectKind, Possible
from translate.dataclass import dataclass, replace
from translate.ir import (
    TABLE_HOOKS,
    AddressType,
    Family,
    Field,
    Protocol,
    Ruleset,
    TableName,
    TcpFlag,
    Template,
    TranslatePrefix,
)
from translate.nftlisting import Form, Listing, base_chains

__all__ = ["Reordering"]

_SEEN_BY: Final = {"ip": (Family.IP,), "ip6": (Family.IP6,), "inet": tuple(Family)}
_DROPS: Final = frozenset({Effect(EffectKind.DROP)})
_REFUSES: Final = frozenset({Effect(EffectKind.DROP), Effect(EffectKind.REJECT)})
_PASSED: Final = frozenset({Verdict.FORWARD, Verdict.LOCAL})
_ANY_EFFECT: Final = frozenset({Effect(EffectKind.OTHER)})
_AFTERWARDS: Final = frozenset({"postrouting", "input"})
"""The hooks after the routing decision, where sources are translated."""
_ANSWERING: Final = frozenset({"output", "postrouting"})
"""The hooks that an answer of the node passes."""
_TYPES: Final = {Field.SADDR: Field.FIB_SADDR_TYPE, Field.DADDR: Field.FIB_DADDR_TYPE}

_Place = tuple[str, int | None]

_Passing = tuple[frozenset[str], Possible]
"""Hooks that a packet passes, and what is known of it there."""


@dataclass(frozen=True, slots=True)
class _Chain:
    """A base chain of a component: its place, and its effects on a packet."""

    place: _Place
    nat: bool
    effects: Callable[[Possible], frozenset[Effect]]


class Reordering:
    """Decides whether a flow has to be replayed in an order of registration.

    ``components`` are kube-proxy's neighbours in the order in which they are registered at first, ``own`` its
    rules in nftables mode, and ``later`` the names of the components that are registered after it.
    """

    def __init__(
        self,
        facts: Facts,
        components: Iterable[tuple[str, Listing | Ruleset]],
        own: Listing,
        later: Iterable[str],
    ) -> None:
        self._facts = facts
        chains = {name: _chains_of(component, facts.family) for name, component in components}
        kube_proxy = tuple(_own_chains(own, facts.family))
        self._nat = [chain for each in chains.values() for chain in each or () if chain.nat]
        self._moved: list[_Chain] | None = None
        """The NAT chains that swap places with others; None if every flow has to be replayed."""
        self._refusing = False
        """True if it matters which of two chains refuses a packet."""
        self._bits = 0
        if all(each is not None for each in chains.values()):
            known = {name: each for name, each in chains.items() if each is not None}
            self._moved, self._refusing = _moved(known, kube_proxy, frozenset(later))
            own_mark = 1 << 14 if facts.state.mark is None else facts.state.mark
            self._bits = own_mark | _bits(
                effect
                for each in known.values()
                for c in each
                if not c.nat
                for effect in c.effects(ANY_PACKET)
            )
        endpoints = [endpoint for service in facts.services for endpoint in service.endpoints]
        self._endpoints = frozenset(endpoint.address for endpoint in endpoints)
        self._endpoint_ports = frozenset(endpoint.port for endpoint in endpoints)
        self._known: dict[tuple[object, ...], bool] = {}
        self._at_endpoints: dict[tuple[object, ...], list[_Passing]] = {}
        """The forms of a packet at any endpoint, by what they depend on: all endpoints are looked at once."""
        self._effects_there: dict[tuple[object, ...], frozenset[Effect]] = {}

    def may_change(self, flow: Flow, result: FlowResult) -> bool:
        """Return whether a flow with this result in the first order may have another one."""
        if self._moved is None or any(map(_may_begin, flow.steps)):
            return True
        if self._refusing and any(o.verdict not in _PASSED for b in result.branches for o in b.outcomes):
            return True
        acting = [step for step in flow.steps if not isinstance(step, Pause)]
        outcomes = [{branch.outcomes[at] for branch in result.branches} for at in range(len(acting))]
        answered = any(o.verdict is Verdict.REJECT for each in outcomes for o in each)
        for at, step in enumerate(acting):
            if not isinstance(step, Send):
                continue
            ends = set(outcomes[at])
            for further, reached in zip(acting[at + 1 :], outcomes[at + 1 :], strict=True):
                if isinstance(further, Send):
                    break
                if isinstance(further, Again):  # it may begin the connection again, and arrive elsewhere
                    ends |= reached
            key = (step.packet, step.entry, frozenset(ends), answered)
            if key not in self._known:
                self._known[key] = self._reached(step, ends, answered=answered)
            if self._known[key]:
                return True
        return False

    def _reached(self, send: Send, ends: Set[Outcome], *, answered: bool) -> bool:
        """Return whether a moved chain may have an effect on a first packet, or on the answer to it."""
        packet = send.packet
        hook = "output" if send.entry is None else "prerouting"
        passing: list[_Passing] = []
        """The packets that are first of a connection, and the hooks where a chain may see each."""
        before = self._sent(send)
        passing.append((frozenset({hook}), before))
        # Beside the translations of kube-proxy, which lead to endpoints.
        translated = any(chain.effects(before) for chain in self._nat if chain.place[0] == hook)
        lost = _is_lost(ends)
        passing.append((_AFTERWARDS, self._arriving(packet, ends, lost=lost, translated=translated)))
        if answered:
            passing.append((_ANSWERING, self._answer(packet, translated=translated)))
        # With unknown translations, the forms above are at any address, also at that of an endpoint.
        there = None
        if self._endpoints and not translated and (lost or answered):
            there = replace(packet, dst=0), lost, answered
        bits, earlier = self._bits | packet.mark, -1
        while bits != earlier:
            earlier = bits
            bits |= _bits(_effects(self._nat, passing, bits))
            bits |= _bits(self._there("nat", self._nat, there, bits))
        assert self._moved is not None
        return any(_effects(self._moved, passing, bits)) or bool(
            self._there("moved", self._moved, there, bits)
        )

    def _there(
        self, kind: str, chains: Sequence[_Chain], there: tuple[Packet, bool, bool] | None, bits: int
    ) -> frozenset[Effect]:
        """Return the effects of chains on the forms of a packet that are at any endpoint."""
        if there is None:
            return frozenset()
        key = (kind, *there, bits)
        if key not in self._effects_there:
            if there not in self._at_endpoints:
                self._at_endpoints[there] = list(self._forms_there(*there))
            self._effects_there[key] = frozenset(_effects(chains, self._at_endpoints[there], bits))
        return self._effects_there[key]

    def _forms_there(self, packet: Packet, lost: bool, answered: bool) -> Iterator[_Passing]:
        """Yield a lost packet at any endpoint, and the answer of any endpoint."""
        if lost:
            ports = _port(packet, {packet.dport, *self._endpoint_ports})
            numbers = self._from(packet) | self._address(Field.DADDR, self._endpoints) | ports
            yield _AFTERWARDS, Possible(numbers=numbers)
        if answered:
            numbers = self._to(packet) | self._address(Field.SADDR, self._endpoints)
            yield _ANSWERING, Possible(numbers=numbers)

    def _sent(self, send: Send) -> Possible:
        packet = send.packet
        numbers = (
            self._from(packet) | self._address(Field.DADDR, {packet.dst}) | _port(packet, {packet.dport})
        )
        return Possible(numbers=numbers, names={} if send.entry is None else {Field.IIF: {send.entry}})

    def _arriving(self, packet: Packet, ends: Set[Outcome], *, lost: bool, translated: bool) -> Possible:
        """Return a first packet after the routing decision; ``ends`` are its outcomes.

        If it is ``lost``, this is the form that it has where it is not at an endpoint.
        """
        addresses = {end.dst for end in ends if end.dst is not None}
        ports: set[Port | None] = {end.dport for end in ends if end.dst is not None}
        numbers = self._from(packet)
        if lost:
            if translated:
                return Possible(numbers=numbers)
            addresses.add(packet.dst)
            ports.add(packet.dport)
        return Possible(numbers=numbers | self._address(Field.DADDR, addresses) | _port(packet, ports))

    def _answer(self, packet: Packet, *, translated: bool) -> Possible:
        """Return the answer to a rejected packet, which the node sends from any address that it had.

        Unless it is ``translated``, the form of an answer from an endpoint is another one.
        """
        if translated:
            return Possible(numbers=self._to(packet))
        return Possible(
            numbers=self._to(packet) | self._address(Field.SADDR, {packet.dst, *self._facts.places.own})
        )

    def _to(self, packet: Packet) -> dict[Field, Collection[int]]:
        """Return what is known of every answer to a packet."""
        return {
            Field.L4PROTO: {packet.proto, int(Protocol.ICMP), int(Protocol.ICMPV6)},
            **self._address(Field.DADDR, {packet.src}),
        }

    def _from(self, packet: Packet) -> dict[Field, Collection[int]]:
        numbers: dict[Field, Collection[int]] = {Field.L4PROTO: {packet.proto}}
        numbers |= self._address(Field.SADDR, {packet.src})
        if packet.has_ports and isinstance(packet.sport, int):
            numbers[Field.SPORT] = {packet.sport}
        return numbers

    def _address(self, field: Field, addresses: Set[int]) -> dict[Field, Collection[int]]:
        """Return the values of an address and of its type; the type is not known with routing rules."""
        facts, known = self._facts, dict[Field, Collection[int]]({field: addresses})
        routed = any(a in r.dst for a in addresses for r in facts.node.routes if r.type is AddressType.LOCAL)
        if not routed and not facts.node.has_own_rules(facts.family):
            local = {facts.is_own(a) or facts.is_loopback(a) for a in addresses}
            kinds = [{int(AddressType.LOCAL)} if each else NOT_LOCAL for each in local]
            known[_TYPES[field]] = frozenset[int]().union(*kinds)
        return known


def _is_lost(ends: Set[Outcome]) -> bool:
    """Return whether a packet with these outcomes may have ended at an unknown place."""
    known = any(end.dst is not None for end in ends)
    return not known or any(end.dst is None and end.verdict is not Verdict.UNSENT for end in ends)


def _port(packet: Packet, ports: Set[Port | None]) -> dict[Field, Collection[int]]:
    """Return the values of the destination port, if all are known."""
    numbers = {port for port in ports if isinstance(port, int)}
    return {Field.DPORT: numbers} if packet.has_ports and len(numbers) == len(ports) else {}


def _effects(chains: Iterable[_Chain], passing: Sequence[_Passing], bits: int) -> Iterator[Effect]:
    """Yield the effects of chains on packets that pass some hooks, and whose marks have no other bits."""
    for chain in chains:
        for hooks, packet in passing:
            if chain.place[0] in hooks:
                yield from chain.effects(replace(packet, mark_bits=bits))


def _bits(effects: Iterable[Effect]) -> int:
    """Return the bits of the mark that effects may set."""
    bits = 0
    for effect in effects:
        bits |= effect.bits
    return bits


def _may_begin(step: Step) -> bool:
    """Return whether an answer may begin a connection after this step."""
    if isinstance(step, Pause):
        return True
    flags = step.flags if isinstance(step, Reply) else None
    return flags is not None and flags & (TcpFlag.SYN | TcpFlag.ACK) == TcpFlag.SYN


def _chains_of(component: Listing | Ruleset, family: Family) -> tuple[_Chain, ...] | None:
    """Return the base chains of a component; None if it does what the argument does not cover."""
    if isinstance(component, Ruleset):
        actions = (action for rule in component.rules() for action in rule.actions)
        if any(isinstance(action, Template | TranslatePrefix) for action in actions):
            return None
        return tuple(
            _Chain(
                (chain.hook.value.lower(), TABLE_HOOKS[table.name][chain.hook]),
                table.name is TableName.NAT,
                partial(iptables_effects, table, chain),
            )
            for table in component.tables
            for chain in table.chains
            if chain.hook is not None
        )
    if component.form is not Form.JSON:
        return None
    rules = NftEffects(component, family)
    if rules.readdresses:
        return None
    return tuple(
        _Chain((chain.hook, chain.priority), chain.type == "nat", partial(rules.of, chain))
        for chain in base_chains(component)
        if family in _SEEN_BY.get(chain.family, ())
    )


def _own_chains(own: Listing, family: Family) -> Iterator[_Chain]:
    """Yield kube-proxy's base chains; those that are not for NAT refuse packets, and do nothing else."""
    for chain in base_chains(own):
        if family in _SEEN_BY.get(chain.family, ()):
            nat = chain.type == "nat"
            effects = _ANY_EFFECT if nat else _REFUSES
            yield _Chain((chain.hook, chain.priority), nat, partial(_constant, effects))


def _constant(effects: frozenset[Effect], packet: Possible) -> frozenset[Effect]:
    return effects


def _moved(
    chains: Mapping[str, tuple[_Chain, ...]], own: tuple[_Chain, ...], later: Container[str]
) -> tuple[list[_Chain] | None, bool]:
    """Return the NAT chains that swap places with another, and whether it matters which chain refuses.

    None stands for chains that swap places and are not covered by the argument.
    """
    moved: list[_Chain] = []
    refusing = False
    names = list(chains)
    for at, name in enumerate(names):
        if name not in later:
            continue
        behind = [c for other in names[at + 1 :] if other not in later for c in chains[other]]
        for mine in chains[name]:
            others = [c for c in (*own, *behind) if _meet(mine, c)]
            if mine.nat and all(other.nat for other in others):
                moved += [mine] if others else []
                continue
            for other in others:
                effects = [chain.effects(ANY_PACKET) for chain in (mine, other)]
                if not all(effects) or all(each <= _DROPS for each in effects):
                    continue
                if not all(each <= _REFUSES for each in effects):
                    return None, False
                refusing = True
    return moved, refusing


def _meet(mine: _Chain, other: _Chain) -> bool:
    """Return whether two chains are at one place, or may be: a priority may be unknown."""
    (hook, priority), (other_hook, other_priority) = mine.place, other.place
    return hook == other_hook and (priority == other_priority or None in (priority, other_priority))
