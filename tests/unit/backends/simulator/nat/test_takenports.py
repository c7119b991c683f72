from __future__ import annotations

import pytest

from backends.model.flow import Again, Flow, Reply
from backends.model.outcome import Verdict
from backends.model.packet import PortClass
from backends.simulator import simulate
from translate.ir import TcpFlag


def test_a_connection_without_a_free_port_is_dropped(lab) -> None:
    rules = "nat: -A POSTROUTING -p udp -j MASQUERADE --to-ports 7000-7001"
    clients = (lab.udp(f"10.1.0.{host}", "8.8.8.8") for host in (5, 6, 7))
    first, second, third = lab.run(rules, *clients)
    assert first.sport == second.sport == PortClass(7000, 7001)
    assert third.verdict is Verdict.DROP


@pytest.mark.parametrize(("seq", "kinds"), [(1 << 30, 2), (5, 1)])
def test_a_syn_may_end_a_closed_connection_for_its_port(lab, seq: int, kinds: int) -> None:
    """Linux 6.5 and later do; the sequence number must be after that of the closed connection."""
    rules = "nat: -A POSTROUTING -p tcp -j MASQUERADE --to-ports 7000"
    closed = (Reply(flags=TcpFlag.SYN | TcpFlag.ACK), Again(flags=TcpFlag.RST))
    steps = (lab.tcp("10.1.0.5", "8.8.8.8", seq=1 << 20), *closed, lab.tcp("10.1.0.6", "8.8.8.8", seq=seq))
    result = simulate(lab.job(rules), Flow(id="closed", steps=steps))
    assert len(result.branches) == kinds
    assert result.guessed is (kinds == 2)
    last = {branch.outcomes[-1].verdict for branch in result.branches}
    assert last == ({Verdict.DROP, Verdict.FORWARD} if kinds == 2 else {Verdict.DROP})
