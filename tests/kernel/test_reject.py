"""Every way to be refused, told apart from silence and from the stack's own answers."""

from __future__ import annotations

from functools import partial
from typing import NoReturn

import pytest

from backends.model.flow import Reply
from backends.model.outcome import Outcome, Verdict
from backends.replay.worker import Worker
from backends.testbed.command import run
from backends.testbed.suppress_stack_rst import ResetFallback, suppress_stack_rst
from translate.errors import MachineError
from translate.ir import Family, TcpFlag

KINDS = {
    1: "icmp-net-unreachable",
    2: "icmp-host-unreachable",
    3: "icmp-proto-unreachable",
    4: "icmp-port-unreachable",
    5: "icmp-net-prohibited",
    6: "icmp-host-prohibited",
    7: "icmp-admin-prohibited",
}
RULES = "\n".join(
    [
        "*filter",
        ":INPUT ACCEPT [0:0]",
        ":FORWARD ACCEPT [0:0]",
        ":OUTPUT ACCEPT [0:0]",
        *(
            f"-A {chain} -p udp --dport {port} -j REJECT --reject-with {kind}"
            for chain in ("INPUT", "FORWARD", "OUTPUT")
            for port, kind in KINDS.items()
        ),
        *(
            f"-A {chain} -p tcp --dport 9 -j REJECT --reject-with tcp-reset"
            for chain in ("INPUT", "FORWARD", "OUTPUT")
        ),
        *(f"-A {chain} -p udp --dport 8 -j DROP" for chain in ("INPUT", "FORWARD", "OUTPUT")),
        "-A FORWARD -p tcp -m conntrack --ctstate INVALID -j REJECT --reject-with tcp-reset",
        "COMMIT",
        "*nat",
        "-A PREROUTING -d 10.96.0.1 -j DNAT --to-destination 10.244.0.3",
        "COMMIT",
        "",
    ]
)
PLACES = {
    "INPUT": ("10.244.0.5", "172.18.0.2", "pod5"),
    "FORWARD": ("10.244.0.5", "10.244.0.3", "pod5"),
    "FORWARD, translated": ("10.244.0.5", "10.96.0.1", "pod5"),
    "OUTPUT": ("172.18.0.2", "10.244.0.3", None),
    "OUTPUT, to itself": ("172.18.0.2", "172.18.0.2", None),
}


@pytest.fixture(scope="module")
def rejecting(opened, kind_node):
    return opened(kind_node, RULES)


@pytest.mark.parametrize("place", PLACES)
def test_each_kind(rejecting, flows, place):
    src, dst, entry = PLACES[place]
    for port, kind in KINDS.items():
        (there,) = flows.run(rejecting, flows.udp(src, dst, port), entry)
        assert there == Outcome(verdict=Verdict.REJECT, reject_with=kind)


@pytest.mark.parametrize("place", PLACES)
def test_tcp_reset(rejecting, flows, place):
    src, dst, entry = PLACES[place]
    for flags in (TcpFlag.SYN, TcpFlag.ACK):
        (there,) = flows.run(rejecting, flows.tcp(src, dst, 9, flags=flags, ack=7), entry)
        assert there == Outcome(verdict=Verdict.REJECT, reject_with="tcp-reset")


@pytest.mark.parametrize("place", PLACES)
def test_drop_is_silence(rejecting, flows, place):
    src, dst, entry = PLACES[place]
    (there,) = flows.run(rejecting, flows.udp(src, dst, 8), entry)
    assert there == Outcome(verdict=Verdict.DROP)


def test_reset_of_a_packet_without_a_connection(rejecting, flows):
    # No connection is attached to this RST, as none is to the stack's own.
    packet = flows.tcp("10.244.0.5", "10.244.0.3", 80, flags=TcpFlag.SYN | TcpFlag.FIN)
    (there,) = flows.run(rejecting, packet, "pod5")
    assert there == Outcome(verdict=Verdict.REJECT, reject_with="tcp-reset")


def test_the_stack_refusing_a_port_is_no_reject(rejecting, flows):
    udp, _ = flows.run(rejecting, flows.udp("10.244.0.5", "172.18.0.2", 4000), "pod5", Reply())
    tcp, _ = flows.run(rejecting, flows.tcp("10.244.0.5", "172.18.0.2", 4000), "pod5", Reply())
    assert udp.verdict is tcp.verdict is Verdict.LOCAL


def test_hundreds_of_rejects_are_not_rate_limited(rejecting, flows):
    many = (
        flows.flow(flows.udp("10.244.0.5", "10.244.0.3", 4, sport=n), "pod5") for n in range(10000, 13000)
    )
    found = {flows.outcomes(r)[0].reject_with for r in rejecting.replay(many)}
    assert found == {"icmp-port-unreachable"}


def _table(family: Family, *, bindings: bool) -> str:
    def missing() -> NoReturn:
        raise MachineError("no bindings")

    if not bindings:
        suppress_stack_rst.__globals__["NftHandle"] = missing
    suppress_stack_rst(ResetFallback.UNTRACKED, family)
    return run(("nft", "list", "ruleset")).stdout


@pytest.mark.parametrize("family", list(Family))
def test_the_stacks_resets_are_dropped_by_the_same_table_without_bindings(family: Family) -> None:
    listed = []
    for bindings in (True, False):
        with Worker(partial(eval, "lambda message: message()")) as worker:
            listed.append(worker.ask(partial(_table, family, bindings=bindings)))
    assert "nfparity_stack_rst" in listed[0]
    assert listed[0] == listed[1]
