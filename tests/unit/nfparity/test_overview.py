from __future__ import annotations

from nfparity.overview import overview

KUBE = b"*nat\n:KUBE-SERVICES - [0:0]\n[3:180] -A PREROUTING -j KUBE-SERVICES\n-A OUTPUT -j ACCEPT\nCOMMIT\n"
OTHER = b"*filter\n-A INPUT -j DROP\nCOMMIT\n"
EMPTY = b"*filter\n:INPUT ACCEPT [0:0]\nCOMMIT\n"


def test_a_node_of_kubernetes_is_assessed() -> None:
    lines = list(overview({"iptables-nft-save": KUBE, "ip6tables-save": OTHER}, 0, root=True))
    assert "  iptables-nft: 2 rules, with those of kube-proxy" in lines
    assert "  ip6tables: 1 rule" in lines
    assert "  nfparity capture -o node.tar.gz && nfparity assess node.tar.gz" in lines
    assert "  nfparity migrate plan -o node.plan" in lines


def test_other_rules_are_translated() -> None:
    lines = list(overview({"iptables-save": OTHER}, 0, root=False))
    assert "  sudo nfparity migrate plan -o node.plan" in lines
    assert not any("kube-proxy" in line for line in lines)


def test_a_machine_without_rules_reads_a_snapshot() -> None:
    lines = list(overview({"iptables-save": EMPTY}, 0, root=True))
    assert "  none" in lines
    assert "  nfparity assess node.tar.gz" in lines
    assert not any("migrate" in line for line in lines)


def test_rules_that_cannot_be_read_are_not_called_none() -> None:
    lines = list(overview({}, 4, root=False))
    assert "  some cannot be read: run sudo nfparity" in lines
    assert "  none" not in lines
