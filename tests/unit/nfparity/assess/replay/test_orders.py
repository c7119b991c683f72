"""The orders of registration that can differ, and how a node gets into each."""

from __future__ import annotations

from nfparity.assess.node.components import IPTABLES
from nfparity.assess.node.facts import Facts
from nfparity.assess.replay.backends import NftablesModeBackend
from nfparity.assess.replay.orders import Order, orders_of, untested_orders
from translate.nftlisting import read_listing
from translate.read import read_ruleset

KUBE_PROXY = "table ip kube-proxy {\n\tchain p { type nat hook prerouting priority -100; }\n}\n"
REST = "*nat\n:PREROUTING ACCEPT [0:0]\n-A PREROUTING -p tcp -j DNAT --to-destination 10.0.0.1\nCOMMIT\n"


def backend(*tables: tuple[str, str], own: str = KUBE_PROXY, rest: str = REST) -> NftablesModeBackend:
    listings = tuple(read_listing(text, name=name) for name, text in tables)
    return NftablesModeBackend(
        read_listing(own, name="own"), read_ruleset(rest.encode(), name="rest"), listings
    )


def table(name: str, priority: int, rule: str = "") -> tuple[str, str]:
    base = f"type nat hook prerouting priority {priority};"
    return f"ip {name}", f"table ip {name} {{\n\tchain c {{\n\t{base}\n\t{rule}\n\t}}\n}}\n"


def test_each_component_at_a_place_of_kube_proxy_comes_later_alone_and_all_do(facts: Facts) -> None:
    orders = orders_of(backend(table("a", -100), table("b", -90)), facts)
    assert [order.later for order in orders] == [(IPTABLES,), ("ip a",), (IPTABLES, "ip a")]
    assert {order.places for order in orders} == {("prerouting, priority -100",)}


def test_without_a_common_place_there_is_no_other_order(facts: Facts) -> None:
    assert not orders_of(backend(table("b", -90), rest="*nat\n:PREROUTING ACCEPT [0:0]\nCOMMIT\n"), facts)


def test_an_order_that_would_not_last_is_not_tested_and_named(facts: Facts) -> None:
    after = backend(table("a", -100, "limit rate 5/second accept"))
    assert [order.later for order in orders_of(after, facts)] == [("ip a",), (IPTABLES, "ip a")]
    (note,) = untested_orders(after, facts)
    assert note.startswith(f"the order in which {IPTABLES} come last is not tested: ip a:4")


def test_each_order_says_how_a_node_gets_into_it() -> None:
    order = Order(later=(IPTABLES, "ip a"), places=(), kubelet=True)
    assert "starts in nftables mode" in order.kube_proxy_first
    assert "the kubelet uses iptables at its start" in order.others_first
    assert "the owner of table ip a starts after kube-proxy" in order.others_first
    assert "kubelet" not in Order(later=(IPTABLES,), places=()).others_first
