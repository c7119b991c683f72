"""Services found by where packets go, by their endpoints and by lines of the dump."""

from __future__ import annotations

from pathlib import Path

from nfparity.kubeproxy import Part, Protocol, ServicePlaces, recover
from translate.ir import Family, parse_address
from translate.read import read_ruleset

REAL = Path(__file__).resolve().parents[3] / "corpus/rulesets/kube-real"


def address(text: str) -> int:
    return parse_address(Family.IP, text)


def test_a_packet_finds_its_service() -> None:
    state = recover(read_ruleset((REAL / "rules.iptables-save").read_bytes(), name="rules"))
    places = ServicePlaces.of(state)

    def name(dst: str, protocol: Protocol, port: int, *, on_node: bool = False) -> str | None:
        found = places.service_of(address(dst), protocol, port, on_node=on_node)
        return None if found is None else found.name

    assert name("10.96.0.10", Protocol.UDP, 53) == "kube-system/kube-dns:dns"
    assert name("10.96.0.10", Protocol.TCP, 53) == "kube-system/kube-dns:dns-tcp"
    assert name("10.96.0.10", Protocol.TCP, 54) is None
    assert name("203.0.113.11", Protocol.TCP, 443) == "web/shop:https"
    assert name("198.51.100.77", Protocol.TCP, 8000) == "legacy/erp:erp"
    assert name("192.168.0.2", Protocol.TCP, 30432) is None
    assert name("192.168.0.2", Protocol.TCP, 30432, on_node=True) == "data/postgres:pg"
    shared = places.behind(address("10.244.0.2"), Protocol.TCP, 53)
    assert [s.name for s in shared] == ["kube-system/kube-dns:dns-tcp"]
    assert places.behind(address("10.244.0.2"), Protocol.UDP, 54) == ()
    redis = next(s for s in state.services if s.name == "data/redis:redis")
    for line in redis.lines_for(*Part):
        assert places.of_line(line.origin.line) is redis
    assert places.of_line(1) is None


def test_the_first_of_two_rules_has_a_destination() -> None:
    """legacy/erp's external IP and port as the cluster IP of another, whose rule stands behind it."""
    text = (REAL / "rules.iptables-save").read_text()
    taken = text.replace("203.0.113.20/32", "198.51.100.77/32").replace("--dport 9000", "--dport 8000")
    state = recover(read_ruleset(taken.encode(), name="rules"))
    found = ServicePlaces.of(state).service_of(address("198.51.100.77"), Protocol.TCP, 8000)
    assert found is not None
    assert found.name == "legacy/erp:erp"
    ahead = "-A KUBE-SERVICES -d 198.51.100.77/32"
    erp = next(line for line in taken.splitlines() if line.startswith(ahead) and "erp" in line)
    last = taken.replace(f"{erp}\n", "").replace(
        '-A KUBE-SERVICES -m comment --comment "kubernetes service nodeports',
        f'{erp}\n-A KUBE-SERVICES -m comment --comment "kubernetes service nodeports',
    )
    state = recover(read_ruleset(last.encode(), name="rules"))
    found = ServicePlaces.of(state).service_of(address("198.51.100.77"), Protocol.TCP, 8000)
    assert found is not None
    assert found.name == "web/api:grpc"
