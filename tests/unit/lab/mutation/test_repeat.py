from __future__ import annotations

from backends.model.flow import Flow, Reply, Send
from backends.model.packet import Packet
from tests.lab.mutation.repeat import repetitions
from translate.ir import Family


def udp(sport: int) -> Packet:
    return Packet(family=Family.IP, src=1, dst=2, proto=17, sport=sport, dport=53)


def test_each_has_its_own_port_and_name() -> None:
    flow = Flow(id="a", steps=(Send(packet=udp(65534), entry="eth0"), Reply()))
    found = list(repetitions(flow, 4))
    assert [f.id for f in found] == ["a#1", "a#2", "a#3", "a#4"]
    assert [f.first.packet.sport for f in found] == [65535, 1024, 1025, 1026]
    assert all(f.steps[1] == Reply() for f in found)


def test_ports_stay_in_the_class_that_nat_keeps_them_in() -> None:
    for start, low, high in ((53, 1, 511), (700, 600, 1023), (2000, 1024, 65535)):
        flow = Flow(id="a", steps=(Send(packet=udp(start), entry=None),))
        ports = {f.first.packet.sport for f in repetitions(flow, 600)}
        assert min(p for p in ports if isinstance(p, int)) >= low
        assert max(p for p in ports if isinstance(p, int)) <= high


def test_ports_that_clash_on_purpose_still_do() -> None:
    flow = Flow(id="a", steps=(Send(packet=udp(5000), entry="eth0"), Send(packet=udp(5000), entry="pod0")))
    for one in repetitions(flow, 3):
        first, second = one.steps
        assert isinstance(first, Send)
        assert isinstance(second, Send)
        assert first.packet.sport == second.packet.sport != 5000


def test_icmp_moves_its_identifier() -> None:
    ping = Packet(family=Family.IP, src=1, dst=2, proto=1, icmp_type=8, icmp_code=0, icmp_id=65535)
    (one,) = repetitions(Flow(id="p", steps=(Send(packet=ping, entry=None),)), 1)
    assert one.first.packet.icmp_id == 0
