"""The places at which the order of registration counts."""

from __future__ import annotations

from backends.combined.places import Place, places_of, shared_places
from translate.ir import Family
from translate.nftlisting import Listing, read_listing
from translate.read import read_ruleset

RULES = """\
*nat
:PREROUTING ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
-A POSTROUTING -j MASQUERADE
COMMIT
*filter
:INPUT ACCEPT [0:0]
:FORWARD DROP [0:0]
COMMIT
"""


def table(priority: str, family: str = "inet") -> Listing:
    text = f"table {family} t {{\n\tchain c {{ type nat hook postrouting priority {priority}; }}\n}}\n"
    return read_listing(text, name="t")


def test_only_chains_of_iptables_that_can_do_something_count() -> None:
    rules = read_ruleset(RULES.encode(), name="rules")
    assert places_of(rules, Family.IP) == {Place("postrouting", 100), Place("forward", 0)}


def test_places_are_shared_at_equal_hook_and_priority() -> None:
    rules = read_ruleset(RULES.encode(), name="rules")
    assert shared_places(table("srcnat"), rules, Family.IP) == ("postrouting, priority 100",)
    assert shared_places(table("srcnat - 1"), rules, Family.IP) == ()


def test_a_table_of_the_other_family_shares_nothing() -> None:
    assert places_of(table("100", "ip6"), Family.IP) == frozenset()
    assert places_of(table("100"), Family.IP6) == {Place("postrouting", 100)}


def test_an_unknown_priority_is_shared_with_every_priority_of_its_hook() -> None:
    listing = read_listing(
        "define p = 1\nadd table ip t\nadd chain ip t c { type nat hook postrouting priority $p; }\n",
        name="t",
    )
    rules = read_ruleset(RULES.encode(), name="rules")
    assert shared_places(listing, rules, Family.IP) == ("postrouting, priority 100",)
