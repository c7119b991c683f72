"""Random rulesets like those of kube-proxy: keys, chains of services, chains of endpoints.

Small on purpose, so that keys clash, chains are shared and shapes are equal.
"""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from tests.unit.translate.passes.helpers.evaluate import State
from tests.unit.translate.passes.helpers.rulesets import is_
from translate.ir import (
    RANDOM_RANGE,
    Action,
    Chain,
    ConnectionState,
    Dnat,
    Drop,
    Family,
    Field,
    Goto,
    Hook,
    Interval,
    Jump,
    NatPorts,
    Policy,
    Random,
    Return,
    Rule,
    Ruleset,
    SetMark,
    Table,
    TableName,
    Test,
)

ADDRESSES = (1, 2, 3)
PORTS = (53, 80, 81)


@dataclass(frozen=True)
class Plan:
    """The common part of chains of one shape."""

    masquerades: bool
    sources: int
    draws: int
    direct: bool
    odd: int


PLANS = st.builds(
    Plan,
    masquerades=st.booleans(),
    sources=st.integers(0, 2),
    draws=st.integers(1, 3),
    direct=st.integers(0, 7).map(lambda n: n == 0),
    odd=st.integers(0, 7),
)


def endpoint(draw: st.DrawFn, name: str, plan: Plan) -> Chain:
    address = draw(st.sampled_from(ADDRESSES))
    ports = NatPorts(interval=Interval.point(draw(st.sampled_from(PORTS))), random=plan.odd == 1)
    proto = is_(Field.L4PROTO, draw(st.sampled_from((6, 6, 6, 17))))
    rules = [
        Rule(tests=(is_(Field.SADDR, address),), actions=(SetMark(1, 1),)),
        Rule(tests=(proto,), actions=(Dnat(Interval.point(address), ports),)),
    ]
    if plan.odd in (2, 3):
        leave: Action = Drop() if plan.odd == 2 else Return()
        rules.insert(0, Rule(tests=(is_(Field.SADDR, draw(st.sampled_from((2, 9)))),), actions=(leave,)))
    return Chain(name=name, rules=tuple(rules))


def service(draw: st.DrawFn, name: str, plan: Plan, callees: list[str]) -> Chain:
    rules: list[Rule] = []
    if plan.masquerades:
        tests: tuple[Test, ...] = (
            is_(Field.SADDR, 3, negated=True),
            is_(Field.DADDR, draw(st.sampled_from(ADDRESSES))),
            is_(Field.L4PROTO, 6),
            is_(Field.DPORT, draw(st.sampled_from(PORTS))),
        )
        rules.append(Rule(tests=tests, actions=(SetMark(2, 2),)))
    for number in range(plan.sources):
        target = draw(st.sampled_from(callees))
        call: Action = Goto(target) if plan.odd == 4 and number else Jump(target)
        rules.append(Rule(tests=(is_(Field.SADDR, draw(st.sampled_from(ADDRESSES))),), actions=(call,)))
    for left in range(plan.draws, 0, -1):
        drawn: tuple[Test, ...] = () if left == 1 else (Random(numerator=round(RANDOM_RANGE / left)),)
        actions: tuple[Action, ...] = (Jump(draw(st.sampled_from(callees))),)
        if plan.direct:
            actions = (Dnat(Interval.point(draw(st.sampled_from(ADDRESSES))), NatPorts()),)
        rules.append(Rule(tests=drawn, actions=actions))
    return Chain(name=name, rules=tuple(rules))


@st.composite
def service_rulesets(draw: st.DrawFn) -> Ruleset:
    """Draw a chain that dispatches by address, protocol and port, one by protocol and port, and their
    targets.
    """
    plans = draw(st.lists(PLANS, min_size=1, max_size=2))
    endpoints = [f"SEP-{n}" for n in range(draw(st.integers(2, 6)))]
    services = [f"SVC-{n}" for n in range(draw(st.integers(2, 5)))]
    outer = [f"EXT-{n}" for n in range(draw(st.sampled_from((0, 0, 2))))]
    chains = [endpoint(draw, name, plans[0]) for name in endpoints]
    chains += [service(draw, name, draw(st.sampled_from(plans)), endpoints) for name in services]
    chains += [service(draw, name, plans[-1], services) for name in outer]
    roots = services + outer
    goes = draw(st.sampled_from((False, False, True)))

    def calling(name: str) -> Jump | Goto:
        return Goto(name) if goes else Jump(name)

    def dispatching(at_least: int, *fields: Field) -> list[Rule]:
        values = {Field.DADDR: ADDRESSES, Field.L4PROTO: (6, 6, 17), Field.DPORT: PORTS}
        return [
            Rule(
                tests=tuple(is_(f, draw(st.sampled_from(values[f]))) for f in fields),
                actions=(calling(draw(st.sampled_from(roots))),),
            )
            for _ in range(draw(st.integers(at_least, 7)))
        ]

    chains.append(Chain(name="NODEPORTS", rules=tuple(dispatching(0, Field.L4PROTO, Field.DPORT))))
    first = dispatching(3, Field.DADDR, Field.L4PROTO, Field.DPORT)
    rest = [Rule(tests=(is_(Field.MARK, 0, 1),), actions=(Jump("NODEPORTS"),))]
    if draw(st.integers(0, 3)) == 0:
        rest.append(Rule(tests=(is_(Field.SADDR, 2),), actions=(Jump(draw(st.sampled_from(roots))),)))
    base = Chain(name="PREROUTING", rules=(*first, *rest), hook=Hook.PREROUTING, policy=Policy.ACCEPT)
    return Ruleset(family=Family.IP, tables=(Table(name=TableName.NAT, chains=(base, *chains)),))


@st.composite
def service_packets(draw: st.DrawFn) -> State:
    """Draw packets of the two protocols, most of them with a key that the rules may have."""
    return State.of(
        {
            Field.SADDR: draw(st.sampled_from((*ADDRESSES, 9))),
            Field.DADDR: draw(st.sampled_from(ADDRESSES)),
            Field.L4PROTO: draw(st.sampled_from((6, 6, 17))),
            Field.FRAGMENT: 0,
            Field.SPORT: 1000,
            Field.DPORT: draw(st.sampled_from(PORTS)),
            Field.MARK: draw(st.integers(0, 3)),
            Field.IIF: "eth0",
            Field.CT_STATE: int(ConnectionState.NEW),
        }
    )
