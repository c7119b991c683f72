from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from backends.model.flow import Again, Flow, IcmpError, Pause, Reply, Send
from backends.model.outcome import FlowResult, Outcome, OutcomeBranch, QuotedTuple, Verdict
from backends.model.packet import Packet
from backends.replay.pipe import pack_flows, pack_results, unpack_flows, unpack_results
from backends.wire.datagrams import to_datagram
from translate.ir import Family, Protocol, TcpFlag

U8, U16, U32 = st.integers(0, 0xFF), st.integers(0, 0xFFFF), st.integers(0, 0xFFFFFFFF)
FLAGS = st.integers(0, 63).map(TcpFlag)


def _packets(quoted: st.SearchStrategy[Packet | None]) -> st.SearchStrategy[Packet]:
    return st.builds(
        Packet,
        family=st.sampled_from(Family),
        src=st.integers(0, 2**128 - 1),
        dst=U32,
        proto=st.one_of(U8, st.sampled_from(Protocol)),
        sport=st.none() | U16,
        dport=st.none() | U16,
        icmp_type=st.none() | U8,
        icmp_code=st.none() | U8,
        icmp_id=st.none() | U16,
        flags=FLAGS,
        seq=U32,
        ack=U32,
        ttl=U8,
        mark=U32,
        payload=st.binary(),
        quoted=quoted,
        bad_checksum=st.booleans(),
    )


PACKETS = _packets(st.none() | _packets(st.none()))
STEPS = st.one_of(
    st.builds(Send, packet=PACKETS, entry=st.none() | st.text()),
    st.builds(Reply, flags=st.none() | FLAGS),
    st.builds(Again, flags=st.none() | FLAGS),
    st.builds(IcmpError, type=U8, code=U8, source=st.none() | U32),
    st.builds(Pause, seconds=st.floats(0, 1e6)),
)
OUTCOMES = st.builds(
    Outcome,
    verdict=st.sampled_from(Verdict),
    out=st.none() | st.text(),
    src=st.none() | U32,
    dst=st.none() | U32,
    sport=st.none() | U16,
    dport=st.none() | U16,
    ttl=st.none() | U8,
    mark=st.none() | U32,
    dnat=st.booleans(),
    snat=st.booleans(),
    reject_with=st.none() | st.text(),
    quoted=st.none() | st.builds(QuotedTuple, U32, U32, st.none() | U16, st.none() | U16),
)


FLOWS = st.builds(Flow, id=st.text(), steps=st.lists(STEPS, max_size=4).map(tuple))


@given(st.lists(FLOWS, max_size=3), st.sampled_from(Family))
def test_flows_arrive_whole(flows, family):
    wanted = [to_datagram(flow, family) or flow for flow in flows]
    assert unpack_flows(pack_flows(flows, family)) == wanted


@given(st.text(), st.lists(OUTCOMES, max_size=4), st.lists(st.text(), max_size=2), st.booleans())
def test_results_arrive_whole(flow_id, outcomes, notes, settled):
    branch = OutcomeBranch(Fraction(1), tuple(outcomes))
    results = [FlowResult(flow_id, (branch,), tuple(notes), settled=settled)]
    assert unpack_results(pack_results(results)) == results


def test_types_arrive_too():
    packet = Packet(family=Family.IP, src=1, dst=2, proto=Protocol.TCP, flags=TcpFlag.ACK)
    (flow,) = unpack_flows(pack_flows([Flow(id="f", steps=(Send(packet=packet, entry=None),))], Family.IP))
    assert isinstance(flow.first.packet.family, Family)
    assert isinstance(flow.first.packet.flags, TcpFlag)
    outcome = Outcome(verdict=Verdict.DROP)
    (result,) = unpack_results(pack_results([FlowResult("f", (OutcomeBranch(Fraction(1), (outcome,)),))]))
    assert isinstance(result.branches[0].outcomes[0].verdict, Verdict)
