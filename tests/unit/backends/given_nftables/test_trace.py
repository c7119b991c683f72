"""Randomness and state of the chains of a listing."""

from __future__ import annotations

from fractions import Fraction

import pytest

from backends.given_nftables.trace import ListedChain, filled_sets, listed_port_boundaries, read_chains

LISTING = """\
table ip kube {
	comment "numgen random mod 2"
	map endpoints {
		type ipv4_addr : verdict
		elements = { 10.0.0.1 : goto a,
				10.0.0.2 : goto b }
	}
	chain a {
		comment "numgen random mod 9 vmap { 0 : accept }"
		ip daddr 10.0.0.1 drop comment "update @x { numgen random mod 7 0 }"
	}
	chain b {
RULE
	}
}
table inet other {
	chain b {
		type filter hook forward priority filter; policy accept;
		update @seen { ip saddr }
	}
}
"""


def chain(*rules: str) -> ListedChain:
    text = "\n".join(f"\t\t{rule}" for rule in rules)
    return read_chains(LISTING.replace("RULE", text)).get(("ip", "kube", "b"), ListedChain())


@pytest.mark.parametrize(
    ("rule", "share"),
    [
        ("numgen random mod 3 vmap { 0 : goto x, 1 : goto y, 2 : goto z }", Fraction(1, 3)),
        ("numgen random mod 1 vmap { 0 : goto x }", Fraction(1)),
        ("numgen random mod 100 vmap { 0-89 : goto x, 90-99 : goto y }", Fraction(1, 10)),
        ("numgen random mod 100 vmap { 0-89 : goto x, 90-94 : goto y }", Fraction(1, 20)),
        ("dnat to numgen random mod 2 map { 0 : 10.0.0.1, 1 : 10.0.0.2 }", Fraction(1, 2)),
        ("numgen random mod 10 offset 5 map { 5-13 : 1.1.1.1, 14 : 2.2.2.2 }", Fraction(1, 10)),
        ("numgen random mod 10 < 2 drop", Fraction(1, 5)),
        ("numgen random mod 10 <= 2 drop", Fraction(3, 10)),
        ("numgen random mod 10 != 2 drop", Fraction(1, 10)),
        ("numgen random mod 10 0-6 drop", Fraction(3, 10)),
        ("numgen random mod 10 0 drop", Fraction(1, 10)),
        ("numgen inc mod 4 vmap { 0 : drop, 1-3 : accept }", Fraction(1, 4)),
        ("dnat ip to ip daddr . numgen random mod 5 map @endpoints", Fraction(1, 5)),
        ("numgen random mod 2147483648 vmap @endpoints", Fraction(1, 1000)),
        ("meta mark set jhash ip saddr mod 2", Fraction(1)),
        ("ip daddr 10.0.0.1 drop", Fraction(1)),
    ],
)
def test_the_least_likely_way_through_a_rule(rule: str, share: Fraction) -> None:
    assert chain(rule).rarest == share


def test_choices_of_a_chain_multiply() -> None:
    assert chain("numgen random mod 3 0 goto x", "numgen random mod 2 0 goto y").rarest == Fraction(1, 6)


def test_rules_that_count_or_hash_make_one_run_depend_on_another() -> None:
    assert chain("numgen inc mod 4 vmap { 0 : drop }").dependent
    assert chain("dnat to jhash ip saddr mod 2 seed 0x1 map { 0 : 1.1.1.1, 1 : 2.2.2.2 }").dependent
    assert chain("meta mark set symhash mod 2").dependent
    assert not chain("numgen random mod 4 vmap { 0 : drop }").dependent


def test_rules_that_no_trace_explains_and_sets_that_change() -> None:
    assert chain("meta random < 1000 drop").varies
    assert not chain("ip daddr vmap @endpoints").varies
    expiring = LISTING.replace("10.0.0.1 : goto a", "10.0.0.1 timeout 5s expires 3s : goto a")
    rules = "\t\tip daddr vmap @endpoints"
    assert read_chains(expiring.replace("RULE", rules))["ip", "kube", "b"] == ListedChain(varies=True)


def test_the_rules_of_a_chain_without_a_name_are_those_of_the_chain_that_it_is_in() -> None:
    found = chain("ip daddr 10.0.0.9 jump {", "numgen random mod 3 0 drop", "}", "add @x { ip saddr }")
    assert found == ListedChain(rarest=Fraction(1, 3), fills=frozenset({"x"}))


def test_chains_are_told_apart_by_family_and_table_and_strings_are_no_rules() -> None:
    found = read_chains(LISTING.replace("RULE", "\t\tadd @x { ip saddr }"))
    assert found == {
        ("ip", "kube", "b"): ListedChain(fills=frozenset({"x"})),
        ("inet", "other", "b"): ListedChain(fills=frozenset({"seen"}), base=True),
    }
    assert filled_sets(found) == {("ip", "kube", "x"), ("inet", "other", "seen")}


@pytest.mark.parametrize(
    ("rule", "reads"),
    [
        ("ip daddr 10.0.0.1 dnat to 10.0.0.2", False),
        ("ip daddr 10.0.0.1 numgen random mod 2 vmap { 0 : goto a, 1 : goto a }", False),
        ("masquerade fully-random", False),
        ("update @seen { ip saddr }", False),
        ("tcp sport 80 drop", True),
        ("ct original proto-src 80 drop", True),
        ("ip daddr 10.0.0.1 dnat to 10.0.0.2-10.0.0.9", True),
        (
            "dnat to jhash ip saddr mod 2 map { 0 : 10.0.0.2, 1 : 10.0.0.3 }",
            True,
        ),
        ("@th,0,16 80 drop", True),
        ("limit rate 5/second accept", True),
    ],
)
def test_rules_that_may_read_the_source_port(rule: str, *, reads: bool) -> None:
    listing = LISTING.replace("RULE", rule)
    assert (listed_port_boundaries(listing, read_chains(listing).values()) is None) is reads


@pytest.mark.parametrize(
    ("rule", "boundaries"),
    [
        ("tcp dport 40000-45000 drop", {40000, 45001}),
        ("tcp dport != 0x9c40 drop", {40000, 40001}),
        ("ct reply proto-dst { 2049, 3000 } drop", {2049, 2050, 3000, 3001}),
        ("th dport > 50000 drop", {50001}),
        ("th dport & 1 == 1 drop", None),
        ("ct reply proto-dst and 0x1 == 0x1 drop", None),
        ('tcp dport 80 drop comment "from port 40000"', {80, 81}),
    ],
)
def test_the_ports_that_a_listing_distinguishes(rule: str, boundaries: set[int] | None) -> None:
    listing = LISTING.replace("RULE", rule)
    ports = listed_port_boundaries(listing, read_chains(listing).values())
    if boundaries is None:
        assert ports is None
    else:
        assert ports is not None
        assert boundaries <= set(ports)
        assert list(ports) == sorted(ports)
        assert 40000 in boundaries or 40000 not in ports
