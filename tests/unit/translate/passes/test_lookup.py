from __future__ import annotations

from tests.unit.translate.rules import program, statements
from translate.ir import Apply, Field, Interval, Jump, Lookup
from translate.passes import verify

KUBE_SERVICES = (
    "-A PREROUTING -d 10.96.0.10/32 -p udp -m udp --dport 53 -j dns",
    "-A PREROUTING -d 10.96.0.10/32 -p tcp -m tcp --dport 53 -j dns-tcp",
    "-A PREROUTING -d 10.96.0.1/32 -p tcp -m tcp --dport 443 -j api",
    *(
        f"-A {c} -p {p} -m {p} -j DNAT --to-destination 10.244.0.3:53"
        for c, p in (("dns", "udp"), ("dns-tcp", "tcp"), ("api", "tcp"))
    ),
)


def only(table: str, chain: str, *rules: str) -> Lookup:
    (found,) = statements(verify(program(table, *rules, level=1)), chain)
    assert isinstance(found, Lookup)
    return found


def lookups(table: str, chain: str, *rules: str) -> list[int]:
    """How many entries each statement of the chain has; 0 for a rule that stayed one."""
    found = statements(verify(program(table, *rules, level=1)), chain)
    return [len(s.entries) if isinstance(s, Lookup) else 0 for s in found]


def test_tcp_and_udp_services_share_one_key() -> None:
    found = only("nat", "nat/PREROUTING", *KUBE_SERVICES)
    assert found.fields == (Field.DADDR, Field.L4PROTO, Field.DPORT)
    assert found.tests == ()
    points = [tuple(v.low for v in e.key if isinstance(v, Interval)) for e in found.entries]
    assert points == [(0x0A60000A, 17, 53), (0x0A60000A, 6, 53), (0x0A600001, 6, 443)]
    assert [e.actions for e in found.entries] == [(Jump(f"nat/{c}"),) for c in ("dns", "dns-tcp", "api")]


def test_every_entry_keeps_its_rule() -> None:
    found = only("nat", "nat/PREROUTING", *KUBE_SERVICES)
    assert [e.origin.text for e in found.entries] == list(KUBE_SERVICES[:3])


def test_a_constant_that_all_rules_share_is_a_test_and_no_key() -> None:
    rules = (f"-A FORWARD -i eth0 -d 10.0.0.{n}/32 -j DROP" for n in (1, 2))
    found = only("filter", "filter/FORWARD", *rules)
    assert found.fields == (Field.DADDR,)
    assert [t.field for t in found.tests] == [Field.IIF]  # type: ignore[union-attr]


def test_a_mark_that_a_called_chain_changes_is_no_key() -> None:
    # The first rule's chain sets the second rule's mark: both chains run, so this is no map.
    # (nft -o makes one of it.)
    rules = (
        "-A PREROUTING -m mark --mark 0x1 -j one",
        "-A PREROUTING -m mark --mark 0x2 -j two",
        "-A one -s 10.0.0.1/32 -j deeper",
        "-A deeper -d 10.0.0.1/32 -j MARK --set-xmark 0x2/0xffffffff",
        "-A two -s 10.0.0.9/32 -j DROP",
    )
    assert lookups("mangle", "mangle/PREROUTING", *rules) == [0, 0]


def test_a_mark_that_no_called_chain_changes_is_a_key() -> None:
    rules = (
        "-A PREROUTING -m mark --mark 0x1 -j one",
        "-A PREROUTING -m mark --mark 0x2 -j two",
        "-A one -s 10.0.0.1/32 -j DROP",
        "-A two -s 10.0.0.9/32 -j DROP",
    )
    assert lookups("mangle", "mangle/PREROUTING", *rules) == [2]


def test_the_first_of_two_equal_keys_wins_when_its_actions_end_there() -> None:
    rules = (
        "-A FORWARD -d 10.0.0.1/32 -j DROP",
        "-A FORWARD -d 10.0.0.2/32 -j ACCEPT",
        "-A FORWARD -d 10.0.0.1/32 -j ACCEPT",
    )
    found = only("filter", "filter/FORWARD", *rules)
    assert [e.origin.text for e in found.entries] == list(rules[:2])


def test_an_equal_key_whose_actions_come_back_ends_the_run() -> None:
    rules = (
        "-A FORWARD -d 10.0.0.1/32 -j maybe",
        "-A FORWARD -d 10.0.0.2/32 -j ACCEPT",
        "-A FORWARD -d 10.0.0.1/32 -j DROP",
        "-A FORWARD -d 10.0.0.3/32 -j DROP",
        "-A maybe -s 10.0.0.9/32 -j ACCEPT",
    )
    assert lookups("filter", "filter/FORWARD", *rules) == [2, 2]


def test_prefixes_are_keys_when_disjoint() -> None:
    disjoint = ("-A FORWARD -s 10.1.0.0/16 -j DROP", "-A FORWARD -s 10.2.0.0/16 -j ACCEPT")
    nested = ("-A FORWARD -s 10.1.0.0/16 -j DROP", "-A FORWARD -s 10.1.2.0/24 -j ACCEPT")
    assert lookups("filter", "filter/FORWARD", *disjoint) == [2]
    assert lookups("filter", "filter/FORWARD", *nested) == [0, 0]


def test_tests_with_chance_or_alternatives_are_not_shared() -> None:
    chance = "-m statistic --mode random --probability 0.50000000000"
    either = "-m conntrack --ctstate NEW,DNAT"
    for shared in (chance, either):
        rules = (f"-A FORWARD -d 10.0.0.{n}/32 {shared} -j DROP" for n in (1, 2))
        assert lookups("filter", "filter/FORWARD", *rules) == [0, 0]


def test_a_port_list_is_one_entry_per_port() -> None:
    rules = (
        "-A INPUT -p tcp -m multiport --dports 80,81,443 -j ACCEPT",
        "-A INPUT -p tcp -m multiport --dports 22,80 -j DROP",
    )
    found = only("filter", "filter/INPUT", *rules)
    assert len(found.entries) == 4  # the second rule's port 80 is dead


def test_one_rule_alone_stays_a_rule() -> None:
    (found,) = statements(program("filter", "-A INPUT -s 10.0.0.1/32 -j DROP", level=1), "filter/INPUT")
    assert isinstance(found, Apply)
