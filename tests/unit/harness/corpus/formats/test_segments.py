"""SYNs of made flows announce a size where rules limit it: above, at and just beyond each limit."""

from __future__ import annotations

from backends.model.flow import Again, Flow, Send
from backends.model.packet import Packet
from harness.corpus.formats.segments import announced_sizes, announcing
from translate.ir import Family, Ruleset, TcpFlag
from translate.read import read_ruleset


def rules(*targets: str, family: Family = Family.IP) -> Ruleset:
    lines = [f"-A FORWARD -p tcp -m tcp --tcp-flags SYN SYN -j {target}" for target in targets]
    text = "\n".join(("*mangle", ":FORWARD ACCEPT [0:0]", *lines, "COMMIT", ""))
    return read_ruleset(text.encode(), name="rules", family=family)


def test_sizes_lie_around_the_limits() -> None:
    assert announced_sizes(rules("ACCEPT")) == ()
    assert announced_sizes(rules("TCPMSS --set-mss 0")) == (9000, 0, 1)
    both = rules("TCPMSS --set-mss 1200", "TCPMSS --clamp-mss-to-pmtu")
    assert announced_sizes(both) == (9000, 1199, 1200, 1201, 1459, 1460, 1461)
    six = rules("TCPMSS --clamp-mss-to-pmtu", family=Family.IP6)
    assert announced_sizes(six) == (9000, 1439, 1440, 1441)


def test_each_syn_that_is_sent_gets_one() -> None:
    syn = Packet(family=Family.IP, src=1, dst=2, proto=6, sport=3, dport=4)
    ack = Packet(family=Family.IP, src=1, dst=2, proto=6, sport=3, dport=4, flags=TcpFlag.ACK)
    flow = Flow(id="f", steps=(Send(packet=syn, entry=None), Again(), Send(packet=ack, entry=None)), why="w")
    assert announcing(flow, (), 5) is flow
    made = announcing(flow, (9000, 1200), 1)
    assert [getattr(step, "packet", ack).mss for step in made.steps] == [1200, None, None]
    assert (made.id, made.why) == ("f", "w")
