"""Names of services as destinations of packets."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lab.commands import run_command

KIND = Path(__file__).parents[4] / "tests/corpus/rulesets/kind-node"
RULES = (str(KIND / "rules.iptables-save"), "--node", str(KIND / "worker.json"))


def test_a_service_stands_for_its_cluster_ip_and_port() -> None:
    by_name = run_command("explain", *RULES, "--packet", "udp 10.244.0.3 -> kube-system/kube-dns:dns in dns3")
    by_address = run_command("explain", *RULES, "--packet", "udp 10.244.0.3 > 10.96.0.10:53 in dns3")
    assert by_name.returncode == 0
    assert by_name.stdout == by_address.stdout


@pytest.mark.parametrize(
    ("packet", "said"),
    [
        ("udp 10.244.0.3 > kube-system/kube-dn:dns", "these rules have no service 'kube-system/kube-dn:dns'"),
        ("sctp 10.244.0.3 > kube-system/kube-dns:dns", "has no cluster IP for sctp in these rules, only udp"),
    ],
)
def test_a_service_that_is_not_there(packet: str, said: str) -> None:
    done = run_command("explain", *RULES, "--packet", packet)
    assert done.returncode == 2
    assert said in done.stderr
    assert "kube-system/kube-dns:dns" in done.stderr
    assert "^" in done.stderr
