from __future__ import annotations

from dataclasses import replace

import pytest

from backends.model.flow import Again, IcmpError, Pause, Reply, Send
from backends.model.outcome import Verdict
from translate.ir import Protocol, TcpFlag

# Each state leaves its own mark, so an outcome tells what conntrack said.
STATES = """
    mangle: -A PREROUTING -m conntrack --ctstate NEW -j MARK --set-xmark 0x1/0xffffffff
    mangle: -A PREROUTING -m conntrack --ctstate ESTABLISHED -j MARK --set-xmark 0x2/0xffffffff
    mangle: -A PREROUTING -m conntrack --ctstate RELATED -j MARK --set-xmark 0x3/0xffffffff
    mangle: -A PREROUTING -m conntrack --ctstate INVALID -j MARK --set-xmark 0x4/0xffffffff
    mangle: -A PREROUTING -m conntrack --ctstate UNTRACKED -j MARK --set-xmark 0x5/0xffffffff
"""
NEW, ESTABLISHED, RELATED, INVALID, UNTRACKED = range(1, 6)
SYN, ACK, RST, FIN, PSH, URG = (
    TcpFlag.SYN, TcpFlag.ACK, TcpFlag.RST, TcpFlag.FIN, TcpFlag.PSH, TcpFlag.URG,
)  # fmt: skip


def states(lab, *steps) -> list[int | None]:
    return [o.mark for o in lab.run(STATES, *steps)]


def test_udp_is_new_until_somebody_answers(lab) -> None:
    first = lab.udp("10.1.0.5", "10.2.0.5")
    assert states(lab, first, Again(), Reply(), Again()) == [NEW, NEW, ESTABLISHED, ESTABLISHED]


@pytest.mark.parametrize(
    ("seconds", "state"),
    [(29, ESTABLISHED), (31, NEW)],
)
def test_udp_is_forgotten_after_thirty_seconds(lab, seconds: int, state: int) -> None:
    first = lab.udp("10.1.0.5", "10.2.0.5")
    assert states(lab, first, Reply(), Pause(seconds=seconds), Again())[-1] == state


def test_udp_lives_longer_once_it_is_a_stream(lab) -> None:
    first = lab.udp("10.1.0.5", "10.2.0.5")
    steps = (first, Reply(), Pause(seconds=3), Again(), Pause(seconds=100), Again())
    assert states(lab, *steps)[-1] == ESTABLISHED


def test_a_tcp_connection_from_syn_to_fin(lab) -> None:
    steps = (
        lab.tcp("10.1.0.5", "10.2.0.5"),
        Reply(),
        Again(),
        Again(flags=FIN | ACK),
        Reply(flags=FIN | ACK),
    )
    assert states(lab, *steps) == [NEW] + [ESTABLISHED] * 4


@pytest.mark.parametrize(
    ("flags", "state"),
    [
        (SYN, NEW),
        (SYN | URG, NEW),
        (SYN | PSH, NEW),
        (ACK, NEW),  # picked up in the middle
        (ACK | PSH, NEW),
        (SYN | ACK, INVALID),
        (RST, INVALID),
        (RST | ACK, INVALID),
        (FIN | ACK, INVALID),
        (FIN, INVALID),
        (SYN | FIN, INVALID),
        (SYN | RST, INVALID),
        (TcpFlag(0), INVALID),
        (FIN | PSH | URG, INVALID),
    ],
)
def test_what_a_first_segment_may_be(lab, flags: TcpFlag, state: int) -> None:
    assert states(lab, lab.tcp("10.1.0.5", "10.2.0.5", flags=flags)) == [state]


def test_without_loose_nothing_is_picked_up(lab) -> None:
    lab.sysctls["net.netfilter.nf_conntrack_tcp_loose"] = "0"
    assert states(lab, lab.tcp("10.1.0.5", "10.2.0.5", flags=ACK)) == [INVALID]


def test_an_ack_before_the_syn_ack_is_invalid(lab) -> None:
    assert states(lab, lab.tcp("10.1.0.5", "10.2.0.5"), Again()) == [NEW, INVALID]


def test_a_segment_outside_the_window_is_invalid_unless_liberal(lab) -> None:
    first = lab.tcp("10.1.0.5", "10.2.0.5", seq=1000)
    far = lab.tcp("10.1.0.5", "10.2.0.5", seq=9_000_000, ack=1, flags=ACK)
    assert states(lab, first, Reply(), Again(), far)[-1] == INVALID
    lab.sysctls["net.netfilter.nf_conntrack_tcp_be_liberal"] = "1"
    assert states(lab, first, Reply(), Again(), far)[-1] == ESTABLISHED


def test_a_rst_that_answers_a_syn_ends_the_connection_at_once(lab) -> None:
    steps = (lab.tcp("10.1.0.5", "10.2.0.5"), Reply(flags=RST | ACK), Again(flags=SYN))
    assert states(lab, *steps) == [NEW, ESTABLISHED, NEW]


def test_a_closed_connection_can_be_opened_again(lab) -> None:
    steps = (lab.tcp("10.1.0.5", "10.2.0.5"), Reply(), Again(), Again(flags=RST | ACK), Again(flags=SYN))
    assert states(lab, *steps) == [NEW, ESTABLISHED, ESTABLISHED, ESTABLISHED, NEW]


@pytest.mark.parametrize(
    ("kind", "state"),
    [(8, NEW), (13, NEW), (15, NEW), (17, NEW), (0, INVALID), (14, INVALID), (9, INVALID), (40, INVALID)],
)
def test_which_icmp_can_begin_a_connection(lab, kind: int, state: int) -> None:
    assert states(lab, lab.icmp("10.1.0.5", "10.2.0.5", icmp_type=kind)) == [state]


def test_an_echo_and_its_reply(lab) -> None:
    assert states(lab, lab.icmp("10.1.0.5", "10.2.0.5"), Reply(), Again()) == [NEW, ESTABLISHED, ESTABLISHED]


def test_an_icmp_error_is_related_to_what_it_quotes(lab) -> None:
    first = lab.udp("10.1.0.5", "10.2.0.5")
    assert states(lab, first, IcmpError(type=3, code=3)) == [NEW, RELATED]


def test_an_icmp_error_about_nothing_known_is_invalid(lab) -> None:
    stray = lab.udp("10.1.0.5", "10.2.0.5").packet
    error = lab.icmp("10.2.0.5", "10.1.0.5", "east", icmp_type=3, icmp_code=3, icmp_id=None, quoted=stray)
    assert states(lab, error) == [INVALID]


@pytest.mark.parametrize(("made", "state"), [(False, INVALID), (True, 0)])
def test_checksums_are_verified_where_packets_come_in(lab, made: bool, state: int) -> None:
    src, entry = ("10.1.0.1", None) if made else ("10.1.0.5", "west")
    assert states(lab, lab.udp(src, "10.2.0.5", entry, bad_checksum=True)) == [state]


def test_checksums_are_not_verified_when_told_not_to(lab) -> None:
    lab.sysctls["net.netfilter.nf_conntrack_checksum"] = "0"
    assert states(lab, lab.udp("10.1.0.5", "10.2.0.5", bad_checksum=True)) == [NEW]


def test_a_dropped_first_packet_leaves_no_entry(lab) -> None:
    rules = (
        STATES + "filter: -A FORWARD -m mark --mark 0x1 -m statistic --mode nth --every 2 --packet 0 -j DROP"
    )
    for outcomes in lab.branches(rules, lab.udp("10.1.0.5", "10.2.0.5"), Again(), Reply()):
        verdicts = [o.verdict for o in outcomes]
        if verdicts[0] is Verdict.DROP:
            assert [o.mark for o in outcomes[1:]] == [NEW, ESTABLISHED]


def test_udplite_is_new_only_where_its_checksum_is_not_looked_at(lab) -> None:
    lite = lab.packet(136, "10.1.0.5", "10.2.0.5", sport=4000, dport=53)
    assert states(lab, Send(packet=lite, entry="west"), Reply()) == [INVALID, INVALID]
    lab.sysctls["net.netfilter.nf_conntrack_checksum"] = "0"
    assert states(lab, Send(packet=lite, entry="west"), Reply()) == [NEW, ESTABLISHED]


GRE_HEADERS = {
    "00006558": NEW,
    "0001880b00080007": NEW,
    "0001880b": NEW,  # cut short: as if it had no key
    "0001655800080007": INVALID,  # enhanced GRE carries PPP alone (gre_pkt_to_tuple)
}


@pytest.mark.parametrize(("header", "state"), GRE_HEADERS.items())
def test_gre_is_told_by_its_header(lab, header: str, state: int) -> None:
    gre = lab.packet(47, "10.1.0.5", "10.2.0.5", payload=bytes.fromhex(header))
    assert states(lab, Send(packet=gre, entry="west")) == [state]


def test_gre_is_assured_once_it_is_answered(lab) -> None:
    assured = "mangle: -A PREROUTING -m conntrack --ctstatus ASSURED -j MARK --set-xmark 0x9/0xffffffff"
    gre = Send(packet=lab.packet(47, "10.1.0.5", "10.2.0.5"), entry="west")
    steps = (gre, Reply(), Again(), Pause(seconds=170), Again(), Pause(seconds=190), Again())
    marks = [o.mark for o in lab.run(f"{STATES}\n{assured}", *steps)]
    assert marks == [NEW, ESTABLISHED, 9, 9, NEW]


def test_gre_of_a_version_that_nat_does_not_know_is_dropped(lab) -> None:
    rules = "nat: -A PREROUTING -j DNAT --to-destination 10.2.0.9"
    for header, verdict in (
        ("0000655800000000", Verdict.FORWARD),
        ("0002655800000000", Verdict.DROP),
        ("00006558", Verdict.DROP),  # shorter than what NAT wants to write to
    ):
        gre = lab.packet(47, "10.1.0.5", "10.2.0.5", payload=bytes.fromhex(header))
        assert lab.run(rules, Send(packet=gre, entry="west"))[0].verdict is verdict


NOTRACK = """
    raw: -A PREROUTING -j CT --notrack
    raw: -A OUTPUT -j CT --notrack
"""


@pytest.mark.parametrize(("state", "verdict"), [("INVALID", Verdict.DROP), ("UNTRACKED", Verdict.REJECT)])
def test_notrack_passes_by_an_answer_to_an_untracked_packet(lab, state: str, verdict: Verdict) -> None:
    rules = f"""{NOTRACK}
        filter: -A OUTPUT -m conntrack --ctstate {state} -j DROP
        filter: -A FORWARD -p tcp -j REJECT --reject-with tcp-reset
        filter: -A FORWARD -d 10.2.0.7 -j REJECT"""
    spent, refused = lab.udp("10.1.0.5", "10.2.0.5", ttl=1), lab.udp("10.1.0.5", "10.2.0.7")
    assert [lab.run(rules, step)[0].verdict for step in (spent, refused)] == [verdict] * 2
    assert lab.run(rules, lab.tcp("10.1.0.5", "10.2.0.5"))[0].verdict is verdict


def test_notrack_takes_what_is_invalid_when_it_comes_through_the_loopback_device(lab) -> None:
    rules = """
        raw: -A PREROUTING -i lo -j CT --notrack
        filter: -A INPUT -m conntrack --ctstate UNTRACKED -j DROP"""
    stray = lab.tcp("10.1.0.1", "10.1.0.1", None, flags=RST)
    assert lab.run(rules, stray)[0].verdict is Verdict.DROP


def test_a_udp_reply_without_the_zone_of_its_connection_is_dropped_where_nat_leaves_the_clash(lab) -> None:
    rules = """
        raw: -A PREROUTING -i west -j CT --zone-reply 2
        nat: -A PREROUTING -d 10.99.0.1 -j DNAT --to-destination 10.99.0.2
    """
    udp = lab.udp("10.1.0.5", "8.8.8.8")
    sctp = Send(packet=replace(udp.packet, proto=Protocol.SCTP), entry="west")
    dropped, moved = (lab.run(rules, first, Reply())[1] for first in (udp, sctp))
    assert dropped.verdict is Verdict.DROP
    assert moved.snat  # only UDP's clashes are left to the confirmation (nf_nat_used_tuple_new)


def test_a_tuple_of_both_directions_is_that_of_the_reply(lab) -> None:
    to_itself = lab.udp("10.1.0.5", "10.1.0.5", sport=123, dport=123)
    assert states(lab, to_itself, Again(), Again()) == [NEW, ESTABLISHED, ESTABLISHED]
    assert states(lab, lab.udp("10.1.0.5", "10.1.0.5", sport=123), Again()) == [NEW, NEW]


def test_a_rule_that_resets_a_connection_may_close_it(lab) -> None:
    """Linux 6.3 and later close it: then it is forgotten after ten seconds, and else after five days."""
    rules = STATES + "filter: -A FORWARD -p tcp -m tcp --tcp-flags PSH PSH -j REJECT --reject-with tcp-reset"
    opened = (lab.tcp("10.1.0.5", "10.2.0.5"), Reply(), Again())
    branches = lab.branches(rules, *opened, Again(flags=PSH | ACK), Pause(seconds=11), Again(flags=ACK))
    assert {outcomes[-1].mark for outcomes in branches} == {NEW, ESTABLISHED}
    (only,) = lab.branches(rules, *opened, Again(flags=PSH | ACK), Again(flags=ACK))
    assert (only[-2].verdict, only[-1].mark) == (Verdict.REJECT, ESTABLISHED)
