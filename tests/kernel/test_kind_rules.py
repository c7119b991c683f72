"""The kind node's rules on this kernel: what each kind of flow must do, from kube-proxy's intent."""

from __future__ import annotations

from dataclasses import replace

import pytest

from backends.model.flow import Again, IcmpError, Reply
from backends.model.outcome import Outcome, QuotedTuple, Verdict
from backends.model.packet import IcmpType
from translate.ir import Protocol, TcpFlag

DNS, POD, UPLINK, ELSEWHERE = "10.96.0.10", "10.244.0.5", "172.18.0.2", "172.18.0.9"


@pytest.fixture(scope="module")
def kind(opened, kind_node, kind_rules):
    return opened(kind_node, kind_rules)


def endpoint(flows, outcome: Outcome) -> str:
    """Return the device of the DNS endpoint that was drawn, and insist that it is one."""
    ends = {flows.ip("10.244.0.3"): "dns3", flows.ip("10.244.0.4"): "dns4"}
    assert outcome.out == ends[outcome.dst]
    return outcome.out


def test_cluster_ip_to_an_endpoint_and_back(kind, flows):
    there, back = flows.run(kind, flows.udp(POD, DNS, 53, sport=1234), "pod5", Reply())
    endpoint(flows, there)
    assert there == Outcome(
        verdict=Verdict.FORWARD,
        out=there.out,
        src=flows.ip(POD),
        dst=there.dst,
        sport=1234,
        dport=53,
        ttl=63,
        mark=0,
        dnat=True,
    )
    assert back == Outcome(
        verdict=Verdict.FORWARD,
        out="pod5",
        src=flows.ip(DNS),
        dst=flows.ip(POD),
        sport=53,
        dport=1234,
        ttl=63,
        mark=0,
        snat=True,
    )


def test_both_endpoints_are_drawn(kind, flows):
    results = kind.replay(flows.flow(flows.udp(POD, DNS, 53, sport=2000 + n), "pod5") for n in range(200))
    drawn = [endpoint(flows, flows.outcomes(r)[0]) for r in results]
    # Of 200 fair draws, fewer than 50 on one side happen once in 10^12.
    assert drawn.count("dns3") >= 50
    assert drawn.count("dns4") >= 50


def test_a_connection_keeps_its_endpoint(kind, flows):
    packet = flows.tcp(POD, DNS, 9153)
    first, _, second, _, third = flows.run(kind, packet, "pod5", Reply(), Again(), Reply(), Again())
    assert first == second == third


def test_hairpin_comes_back_masqueraded(kind, flows):
    seen = set()
    for n in range(40):
        there, back = flows.run(kind, flows.tcp("10.244.0.3", DNS, 53, sport=3000 + n), "dns3", Reply())
        seen.add(endpoint(flows, there))
        assert (back.src, back.sport, back.dst, back.dport) == (
            flows.ip(DNS),
            53,
            flows.ip("10.244.0.3"),
            3000 + n,
        )
        hairpin = there.out == "dns3"
        assert there.snat is hairpin
        assert there.src == flows.ip("10.244.0.1" if hairpin else "10.244.0.3")
    assert seen == {"dns3", "dns4"}


def test_off_cluster_client_is_masqueraded(kind, flows):
    there, back = flows.run(kind, flows.udp(ELSEWHERE, DNS, 53), "eth0", Reply())
    endpoint(flows, there)
    assert there.snat
    assert there.src == flows.ip("10.244.0.1")
    assert there.mark == 0  # KUBE-POSTROUTING clears 0x4000 before it masquerades
    assert (back.out, back.dst, back.src) == ("eth0", flows.ip(ELSEWHERE), flows.ip(DNS))


def test_masquerade_to_the_world(kind, flows):
    there, back = flows.run(kind, flows.udp(POD, "198.51.100.7", 123), "pod5", Reply())
    assert (there.out, there.src, there.snat, there.dnat) == ("eth0", flows.ip(UPLINK), True, False)
    assert (back.out, back.dst) == ("pod5", flows.ip(POD))


def test_echo_request_is_masqueraded_by_its_identifier(kind, flows):
    echo = flows.packet(
        Protocol.ICMP, POD, "198.51.100.7", icmp_type=IcmpType.ECHO_REQUEST, icmp_code=0, icmp_id=77
    )
    there, back = flows.run(kind, echo, "pod5", Reply())
    assert (there.out, there.src, there.sport, there.dport) == ("eth0", flows.ip(UPLINK), 77, None)
    assert (back.out, back.dst, back.sport) == ("pod5", flows.ip(POD), 77)


@pytest.mark.parametrize("proto", [99, Protocol.SCTP])
def test_other_protocols_are_forwarded(kind, flows, proto):
    ports = {} if proto == 99 else {"sport": 4000, "dport": 4001}
    there, back = flows.run(kind, flows.packet(proto, POD, "10.244.0.3", **ports), "pod5", Reply())
    assert (there.verdict, there.out, back.verdict, back.out) == ("forward", "dns3", "forward", "pod5")
    assert (there.sport, there.dport) == (ports.get("sport"), ports.get("dport"))


def test_udp_lite_needs_a_lenient_conntrack(kind, opened, kind_node, kind_rules, flows):
    packet = flows.packet(Protocol.UDPLITE, POD, "10.244.0.3", sport=4000, dport=4001)
    (strict,) = flows.run(kind, packet, "pod5")
    sysctls = {**kind_node.sysctls, "net.netfilter.nf_conntrack_checksum": "0"}
    lenient = opened(replace(kind_node, sysctls=sysctls), kind_rules)
    there, back = flows.run(lenient, packet, "pod5", Reply())
    assert [strict.verdict, there.verdict, back.verdict] == ["drop", "forward", "forward"]


def test_local_delivery_over_udp(kind, flows):
    there, answer, again, _ = flows.run(
        kind, flows.udp(ELSEWHERE, UPLINK, 10250), "eth0", Reply(), Again(), Reply()
    )
    assert there == again
    assert (there.verdict, there.out, there.ttl, there.dport) == (Verdict.LOCAL, None, 64, 10250)
    assert (answer.verdict, answer.out, answer.sport) == (Verdict.FORWARD, "eth0", 10250)


def test_local_delivery_over_tcp_stays_established(kind, flows):
    # The stack answers each of these with a RST; were it not kept away, conntrack would call the
    # node's own SYN+ACK invalid, and KUBE-FORWARD and friends would see another state.
    steps = (Reply(), Again(), Reply(), Again(flags=TcpFlag.FIN | TcpFlag.ACK), Reply())
    outcomes = flows.run(kind, flows.tcp(ELSEWHERE, UPLINK, 10250), "eth0", *steps)
    assert [o.verdict for o in outcomes] == [Verdict.LOCAL, Verdict.FORWARD] * 3


def test_made_on_the_node_to_a_cluster_ip(kind, flows):
    there, back = flows.run(kind, flows.udp(UPLINK, DNS, 53), None, Reply())
    endpoint(flows, there)
    assert (there.ttl, there.dnat, there.snat, there.src) == (64, True, True, flows.ip("10.244.0.1"))
    assert (back.verdict, back.src, back.dst, back.dport) == (
        Verdict.LOCAL,
        flows.ip(DNS),
        flows.ip(UPLINK),
        40000,
    )


def test_made_on_the_node_for_the_node(kind, flows):
    there, back = flows.run(kind, flows.udp(UPLINK, UPLINK, 7, mark=0x20), None, Reply())
    assert (there.verdict, there.out, there.mark) == (Verdict.LOCAL, None, 0x20)
    assert (back.verdict, back.sport) == (Verdict.LOCAL, 7)


def test_mark_leaves_with_the_packet(kind, flows):
    (there,) = flows.run(kind, flows.udp(UPLINK, "10.244.0.5", 7, mark=0x1234), None)
    assert (there.out, there.mark) == ("pod5", 0x1234)


def test_kubelet_drops_its_mark(kind, flows):
    (there,) = flows.run(kind, flows.udp(UPLINK, "10.244.0.5", 7, mark=0x8000), None)
    assert there == Outcome(verdict=Verdict.DROP)


def test_firewall_guards_loopback(kind, flows):
    (there,) = flows.run(kind, flows.udp(ELSEWHERE, "127.0.0.1", 10255), "eth0")
    assert there.verdict is Verdict.DROP


def test_icmp_error_is_translated_inside_and_out(kind, flows):
    there, error = flows.run(kind, flows.udp(POD, DNS, 53), "pod5", IcmpError(type=3, code=3))
    assert there.dnat
    assert (error.verdict, error.out, error.src) == (Verdict.FORWARD, "pod5", flows.ip(DNS))
    assert (error.sport, error.dport) == (None, None)
    assert error.quoted == QuotedTuple(flows.ip(POD), flows.ip(DNS), 40000, 53)


def test_icmp_error_from_a_router_keeps_its_source(kind, flows):
    _, error = flows.run(
        kind,
        flows.tcp(POD, "198.51.100.7", 80),
        "pod5",
        IcmpError(type=11, code=0, source=flows.ip("203.0.113.1")),
    )
    assert (error.out, error.src, error.dst) == ("pod5", flows.ip("203.0.113.1"), flows.ip(POD))
    assert error.quoted == QuotedTuple(flows.ip(POD), flows.ip("198.51.100.7"), 40000, 80)


def test_invalid_packets_are_dropped(kind, flows):
    flags = TcpFlag.SYN | TcpFlag.FIN
    (impossible,) = flows.run(kind, flows.tcp(POD, "10.244.0.3", 80, flags=flags), "pod5")
    (spoiled,) = flows.run(kind, flows.udp(POD, "10.244.0.3", 80, bad_checksum=True), "pod5")
    (sound,) = flows.run(kind, flows.udp(POD, "10.244.0.3", 80), "pod5")
    assert [impossible.verdict, spoiled.verdict, sound.verdict] == ["drop", "drop", "forward"]


def test_spent_ttl_is_told_to_the_sender(kind, flows):
    (there,) = flows.run(kind, flows.udp(POD, "10.244.0.3", 80, ttl=1), "pod5")
    assert there == Outcome(verdict=Verdict.REJECT, reject_with="icmp-11-0")


def test_no_route_is_told_to_the_sender(opened, kind_node, kind_rules, flows):
    node = replace(kind_node, routes=tuple(r for r in kind_node.routes if r.via is None))
    session = opened(node, kind_rules)
    (forwarded,) = flows.run(session, flows.udp(POD, "198.51.100.7", 80), "pod5")
    (own,) = flows.run(session, flows.udp(UPLINK, "198.51.100.7", 80), None)
    assert forwarded == Outcome(verdict=Verdict.REJECT, reject_with="icmp-net-unreachable")
    assert own == Outcome(verdict=Verdict.DROP)


def test_flows_do_not_meet(kind, flows):
    # The same addresses and ports over and over: without forgetting, the second flow would be
    # bound to the endpoint of the first, and 64 draws would all be one.
    packet = flows.udp(POD, DNS, 53)
    results = kind.replay(flows.flow(packet, "pod5") for _ in range(64))
    assert {endpoint(flows, flows.outcomes(r)[0]) for r in results} == {"dns3", "dns4"}


def test_nothing_to_answer_is_unsent(kind, flows):
    outcomes = flows.run(
        kind, flows.udp(ELSEWHERE, "127.0.0.1", 1), "eth0", Reply(), IcmpError(type=3, code=3)
    )
    assert [o.verdict for o in outcomes] == [Verdict.DROP, Verdict.UNSENT, Verdict.UNSENT]


def test_counters_name_the_rules_that_matched(opened, kind_node, kind_rules, flows):
    session = opened(kind_node, kind_rules)
    flows.run(session, flows.udp(POD, DNS, 53), "pod5")
    counters = session.counters()
    assert len(counters) == kind_rules.count("\n-A ")
    assert counters["nat", "PREROUTING", 0] == 1  # -j KUBE-SERVICES
    assert counters["nat", "KUBE-SERVICES", 0] == 1  # 10.96.0.10 udp 53
    assert counters["nat", "KUBE-SERVICES", 1] == 0  # tcp
    assert counters["filter", "KUBE-FORWARD", 0] == 0  # INVALID
