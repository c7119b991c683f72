from __future__ import annotations

from nfparity.snapshot.inference import infer_node
from translate.ir import Family, Ruleset, parse_address
from translate.read import read_ruleset


def rules(*lines: str) -> Ruleset:
    text = (
        "*nat\n:PREROUTING ACCEPT [0:0]\n:POSTROUTING ACCEPT [0:0]\n"
        + "".join(f"{x}\n" for x in lines)
        + "COMMIT\n"
    )
    return read_ruleset(text.encode(), name="t")


def shown(ruleset: Ruleset) -> dict[str, list[str]]:
    return {i.name: [str(a) for a in i.addresses] for i in infer_node(ruleset).interfaces}


def dnat(to: str) -> str:
    return f"-A PREROUTING -p tcp -m tcp --dport 80 -j DNAT --to-destination {to}:80"


def test_an_uplink_and_a_pod_interface_per_network() -> None:
    ruleset = rules(dnat("10.244.0.3"), dnat("10.244.0.4"), dnat("10.244.7.9"), dnat("127.0.0.11"))
    assert shown(ruleset) == {"eth0": ["192.0.2.2/24"], "pod0": ["10.244.0.1/24"], "pod1": ["10.244.7.1/24"]}
    node = infer_node(ruleset)
    (default,) = node.routes
    assert default.via == parse_address(Family.IP, "192.0.2.1")
    assert len(node.assumed) == 3
    assert "for 2 endpoints" in node.assumed[1]


def test_the_kind_node(kind: Ruleset) -> None:
    found = shown(kind)
    assert set(found) == {"eth0", "pod0", "pod1"}
    assert found["pod1"] != ["172.18.0.1/24"], "rules name that address; it must not be the node by accident"


def test_an_endpoint_is_not_the_node() -> None:
    assert shown(rules(dnat("10.0.0.1")))["pod0"] == ["10.0.0.254/24"]


def test_an_endpoint_is_not_the_broadcast_address_of_its_network() -> None:
    node = infer_node(rules(dnat("10.0.0.255"), dnat("10.0.0.3")))
    assert [str(a) for a in node.interfaces[1].addresses] == ["10.0.0.1/32"]
    assert [str(r) for r in node.routes[1:]] == ["10.0.0.0/24 dev pod0"]
    assert "the route 10.0.0.0/24 dev pod0, for 2 endpoints" in node.assumed[1]


def test_ipv6_endpoints() -> None:
    text = (
        "*nat\n:PREROUTING ACCEPT [0:0]\n"
        "-A PREROUTING -p tcp -m tcp --dport 80 -j DNAT --to-destination [fd00:10::3]:80\nCOMMIT\n"
    )
    node = infer_node(read_ruleset(text.encode(), name="t", family=Family.IP6))
    assert [str(a) for a in node.interfaces[1].addresses] == ["fd00:10::1/64"]


def test_interfaces_that_rules_name() -> None:
    found = shown(
        rules(
            "-A POSTROUTING -s 172.17.0.0/16 ! -o docker0 -j MASQUERADE",
            "-A PREROUTING -i cali+ -j ACCEPT",
            "-A PREROUTING -i eth0 -j ACCEPT",
            "-A PREROUTING -i lo -j ACCEPT",
        )
    )
    assert found == {"eth1": ["192.0.2.2/24"], "cali0": [], "docker0": ["172.17.0.1/16"], "eth0": []}


def test_many_networks_share_interfaces() -> None:
    found = shown(rules(*(dnat(f"10.{n // 256}.{n % 256}.7") for n in range(300))))
    assert 2 <= len(found) <= 33


def test_endpoints_in_the_documentation_network() -> None:
    assert shown(rules(dnat("192.0.2.9")))["eth0"] == ["198.51.100.2/24"]


def test_groups_are_not_inferred() -> None:
    text = b"*filter\n:INPUT ACCEPT [0:0]\n-A INPUT -m devgroup --src-group 7 -j DROP\nCOMMIT\n"
    node = infer_node(read_ruleset(text, name="rules"))
    assert node.group_of(node.interfaces[0].name) == 0
    assert "every interface in group 0, although rules test for groups" in node.assumed
