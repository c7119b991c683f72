from __future__ import annotations

from fractions import Fraction

import pytest

from backends.model.flow import Again, Reply
from backends.model.outcome import Verdict
from backends.model.packet import PortClass

FORWARD, DROP, REJECT = Verdict.FORWARD, Verdict.DROP, Verdict.REJECT


def verdict(lab, rules: str, step) -> Verdict:
    return lab.run(rules, step)[0].verdict


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ("filter: -P FORWARD DROP", DROP),
        ("filter: -P FORWARD DROP\nfilter: -A FORWARD -p udp -j ACCEPT", FORWARD),
        ("filter: -P FORWARD DROP\nfilter: -A FORWARD -j RETURN\nfilter: -A FORWARD -j ACCEPT", DROP),
        # a user chain that ends comes back behind the jump
        ("filter: -N X\nfilter: -A FORWARD -j X\nfilter: -A FORWARD -j DROP\n"
            "filter: -A X -p tcp -j ACCEPT", DROP),
        # from a chain that was gone to, back to where its caller was jumped to from
        (
            "filter: -N X\nfilter: -N Y\nfilter: -A FORWARD -j X\nfilter: -A FORWARD -j DROP\n"
            "filter: -A X -g Y\nfilter: -A X -j ACCEPT\nfilter: -A Y -j RETURN",
            DROP,
        ),
        # gone to from a built-in chain: the policy
        ("filter: -N Y\nfilter: -P FORWARD DROP\nfilter: -A FORWARD -g Y\n"
            "filter: -A FORWARD -j ACCEPT", DROP),
        # ACCEPT ends this table only
        ("mangle: -A FORWARD -j ACCEPT\nfilter: -A FORWARD -j DROP", DROP),
        # interfaces: absent is the empty name
        ("mangle: -A PREROUTING ! -i west -j DROP", FORWARD),
        ("filter: -A FORWARD -i we+ -o ea+ -j DROP", DROP),
        # an absent field never matches, negated or not
        ("filter: -A FORWARD -p udp -m conntrack ! --ctstate NEW -j DROP", FORWARD),
        ("raw: -A PREROUTING -j CT --notrack\n"
            "filter: -A FORWARD -m conntrack --ctstate UNTRACKED -j DROP", DROP),
        ("raw: -A PREROUTING -j CT --notrack\n"
            "filter: -A FORWARD -m conntrack ! --ctstatus ASSURED -j DROP", FORWARD),
        ("filter: -A FORWARD -m addrtype --dst-type UNICAST -j DROP", DROP),
    ],
)  # fmt: skip
def test_which_rule_decides(lab, rules: str, expected: Verdict) -> None:
    assert verdict(lab, rules, lab.udp("10.1.0.5", "10.2.0.5")) is expected


def test_ports_of_a_protocol_without_ports_never_match(lab) -> None:
    rules = "filter: -A FORWARD -m multiport -p udp ! --dports 53 -j DROP"
    assert verdict(lab, rules, lab.icmp("10.1.0.5", "10.2.0.5")) is FORWARD


def test_a_mark_is_masked_and_then_xored(lab) -> None:
    rules = """
        mangle: -A PREROUTING -j MARK --set-xmark 0xf0/0xff
        mangle: -A FORWARD -j MARK --set-xmark 0x30/0x0
        mangle: -A FORWARD -m mark --mark 0xc0/0xff -j MARK --set-xmark 0x100/0x100
    """
    assert lab.run(rules, lab.udp("10.1.0.5", "10.2.0.5"))[0].mark == 0x1C0


def test_the_mark_of_a_packet_made_here_comes_from_its_socket(lab) -> None:
    (out,) = lab.run("", lab.udp("10.1.0.1", "10.2.0.5", None, mark=5))
    assert (out.mark, out.out) == (5, "east")


def test_chance_is_exact_to_the_31st_bit(lab) -> None:
    rules = "filter: -A FORWARD -m statistic --mode random --probability 0.33333333349 -j DROP"
    found = lab.branches(rules, lab.udp("10.1.0.5", "10.2.0.5"))
    assert found[next(o for o in found if o[0].verdict is DROP)] == Fraction(715827883, 1 << 31)


def test_nth_starts_anywhere_and_then_counts(lab) -> None:
    rules = "filter: -A FORWARD -m statistic --mode nth --every 3 --packet 0 -j DROP"
    found = lab.branches(rules, lab.udp("10.1.0.5", "10.2.0.5"), Again(), Again())
    assert {tuple(o.verdict for o in outcomes): p for outcomes, p in found.items()} == {
        (DROP, FORWARD, FORWARD): Fraction(1, 3),
        (FORWARD, DROP, FORWARD): Fraction(1, 3),
        (FORWARD, FORWARD, DROP): Fraction(1, 3),
    }


def test_postrouting_knows_where_a_forwarded_packet_came_in(lab) -> None:
    rules = "mangle: -N IN\nmangle: -A POSTROUTING -j IN\nmangle: -A IN -i west -j DROP"
    assert verdict(lab, rules, lab.udp("10.1.0.5", "10.2.0.5")) is DROP
    assert verdict(lab, rules, lab.udp("10.1.0.1", "10.2.0.5", None)) is FORWARD


def test_a_rule_on_a_picked_port_splits_the_branch_exactly(lab) -> None:
    rules = """
        nat: -A POSTROUTING -o east -j MASQUERADE --random-fully
        mangle: -A PREROUTING -i east -p udp -m udp --dport 1024:2047 -j DROP
    """
    found = lab.branches(rules, lab.udp("10.1.0.5", "10.2.0.5"), Reply())
    share = Fraction(1024, 64512)
    assert {(o[0].sport, o[1].verdict): p for o, p in found.items()} == {
        (PortClass(1024, 65535), DROP): share,
        (PortClass(1024, 65535), FORWARD): 1 - share,
    }
