"""A ClusterIP service as kube-proxy writes it, built by hand: the spine of the simulator."""

from __future__ import annotations

from fractions import Fraction

from backends.model.contract import Job
from backends.model.flow import Flow, Reply, Send
from backends.model.node import Address, Interface, Node, Route
from backends.model.outcome import Verdict
from backends.model.packet import Packet, PortClass
from backends.simulator import RuleVisited, simulate, trace
from translate.ir import (
    RANDOM_RANGE,
    Chain,
    Dnat,
    Family,
    Field,
    FieldTest,
    Hook,
    Interval,
    Jump,
    Masquerade,
    NatPorts,
    Policy,
    Protocol,
    Random,
    Return,
    Rule,
    Ruleset,
    SetMark,
    Table,
    TableName,
    parse_address,
)


def ip(text: str) -> int:
    return parse_address(Family.IP, text)


def at(field: Field, value: int, **more: object) -> FieldTest:
    return FieldTest(field=field, values=(Interval.point(value),), **more)  # type: ignore[arg-type]


def rule(*tests: object, do: object) -> Rule:
    return Rule(tests=tests, actions=(do,))  # type: ignore[arg-type]


def endpoint(name: str, address: str) -> Chain:
    return Chain(
        name=name,
        rules=(
            rule(at(Field.SADDR, ip(address)), do=Jump("MARK-MASQ")),
            rule(
                at(Field.L4PROTO, Protocol.UDP),
                do=Dnat(Interval.point(ip(address)), NatPorts(interval=Interval.point(53))),
            ),
        ),
    )


RULES = Ruleset(
    family=Family.IP,
    tables=(
        Table(
            name=TableName.NAT,
            chains=(
                Chain(
                    name="PREROUTING",
                    hook=Hook.PREROUTING,
                    policy=Policy.ACCEPT,
                    rules=(rule(at(Field.DADDR, ip("10.96.0.10")), at(Field.DPORT, 53), do=Jump("SVC")),),
                ),
                Chain(
                    name="OUTPUT",
                    hook=Hook.OUTPUT,
                    policy=Policy.ACCEPT,
                    rules=(rule(at(Field.DADDR, ip("10.96.0.10")), at(Field.DPORT, 53), do=Jump("SVC")),),
                ),
                Chain(
                    name="POSTROUTING",
                    hook=Hook.POSTROUTING,
                    policy=Policy.ACCEPT,
                    rules=(rule(do=Jump("POST")),),
                ),
                Chain(
                    name="POST",
                    rules=(
                        rule(at(Field.MARK, 0x4000, mask=0x4000, negated=True), do=Return()),
                        rule(do=SetMark(0x4000, 0)),
                        rule(do=Masquerade(NatPorts(fully_random=True))),
                    ),
                ),
                Chain(name="MARK-MASQ", rules=(rule(do=SetMark(0x4000, 0x4000)),)),
                Chain(
                    name="SVC",
                    rules=(
                        rule(
                            FieldTest(
                                field=Field.SADDR,
                                values=(Interval.prefix(ip("10.244.0.0"), 16, 32),),
                                negated=True,
                            ),
                            do=Jump("MARK-MASQ"),
                        ),
                        rule(Random(numerator=RANDOM_RANGE // 2), do=Jump("SEP3")),
                        rule(do=Jump("SEP4")),
                    ),
                ),
                endpoint("SEP3", "10.244.0.3"),
                endpoint("SEP4", "10.244.0.4"),
            ),
        ),
    ),
)

NODE = Node(
    interfaces=(
        Interface("eth0", (Address(Family.IP, ip("172.18.0.2"), 16),)),
        Interface("dns3", (Address(Family.IP, ip("10.244.0.1"), 32),)),
        Interface("dns4", (Address(Family.IP, ip("10.244.0.1"), 32),)),
    ),
    routes=(
        Route(family=Family.IP, dst=Interval(0, 0xFFFFFFFF), dev="eth0", via=ip("172.18.0.1")),
        Route(family=Family.IP, dst=Interval.point(ip("10.244.0.3")), dev="dns3"),
        Route(family=Family.IP, dst=Interval.point(ip("10.244.0.4")), dev="dns4"),
    ),
)

JOB = Job(rules=RULES, node=NODE)


def dns(src: str, entry: str | None, *then: object) -> Flow:
    packet = Packet(
        family=Family.IP, src=ip(src), dst=ip("10.96.0.10"), proto=Protocol.UDP, sport=40000, dport=53
    )
    return Flow(id="dns", steps=(Send(packet=packet, entry=entry), *then))  # type: ignore[arg-type]


def test_a_pod_reaches_each_endpoint_half_of_the_time_with_its_own_address() -> None:
    result = simulate(JOB, dns("10.244.0.9", "eth0"))
    assert {b.probability for b in result.branches} == {Fraction(1, 2)}
    outcomes = {o.out: o for b in result.branches for o in b.outcomes}
    assert set(outcomes) == {"dns3", "dns4"}
    third = outcomes["dns3"]
    assert (third.src, third.dst, third.sport, third.dport) == (
        ip("10.244.0.9"), ip("10.244.0.3"), 40000, 53,
    )  # fmt: skip
    assert (third.verdict, third.ttl, third.mark, third.dnat, third.snat) == (
        Verdict.FORWARD, 63, 0, True, False,
    )  # fmt: skip


def test_the_hairpin_branch_is_masqueraded_and_the_reply_comes_back_from_the_service() -> None:
    result = simulate(JOB, dns("10.244.0.3", "dns3", Reply()))
    by_out = {b.outcomes[0].out: b for b in result.branches}
    back = by_out["dns3"]
    assert back.probability == Fraction(1, 2)
    sent, answered = back.outcomes
    assert (sent.src, sent.dst, sent.sport) == (
        ip("10.244.0.1"), ip("10.244.0.3"), PortClass(1024, 65535),
    )  # fmt: skip
    assert (sent.snat, sent.dnat, sent.mark) == (True, True, 0)
    assert (answered.out, answered.src, answered.dst) == ("dns3", ip("10.96.0.10"), ip("10.244.0.3"))
    assert (answered.sport, answered.dport) == (53, 40000)
    other = by_out["dns4"].outcomes[0]
    assert (other.src, other.snat) == (ip("10.244.0.3"), False)


def test_a_client_outside_the_cluster_is_masqueraded_and_the_mark_is_cleared_by_xor() -> None:
    result = simulate(JOB, dns("172.18.0.9", "eth0"))
    for branch in result.branches:
        (outcome,) = branch.outcomes
        assert (outcome.src, outcome.mark, outcome.snat) == (ip("10.244.0.1"), 0, True)


def test_a_packet_made_on_the_node_is_routed_again_after_dnat() -> None:
    result = simulate(JOB, dns("172.18.0.2", None))
    assert {b.outcomes[0].out for b in result.branches} == {"dns3", "dns4"}
    assert {b.outcomes[0].ttl for b in result.branches} == {64}


def test_a_trace_names_every_rule_that_was_visited_and_the_test_that_failed() -> None:
    for branch in trace(JOB, dns("10.244.0.9", "eth0")):
        visited = [e for e in branch.steps[0].events if isinstance(e, RuleVisited)]
        assert [(v.chain, v.index) for v in visited][:2] == [("PREROUTING", 1), ("SVC", 1)]
        assert visited[0].matched
        assert visited[1].failed == RULES.tables[0].chains[5].rules[0].tests[0]
