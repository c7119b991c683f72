"""A kube-proxy in ipvs mode is recognised, and known as far as its ipsets go."""

from __future__ import annotations

from pathlib import Path

import pytest

from nfparity.kubeproxy import Mode, recover
from translate.ir import Family
from translate.read import read_ipsets, read_ruleset, with_sets

RULESETS = Path(__file__).resolve().parents[4] / "corpus/rulesets"


@pytest.mark.parametrize(
    ("folder", "file", "family"),
    [
        ("kube-ipvs", "rules.iptables-save", Family.IP),
        ("kube-ipvs6", "rules.ip6tables-save", Family.IP6),
    ],
)
def test_services_are_those_of_the_sets(folder: str, file: str, family: Family) -> None:
    ruleset = read_ruleset((RULESETS / folder / file).read_bytes(), name=file)
    alone = recover(ruleset)
    assert alone.mode is Mode.IPVS
    assert not alone.services
    assert len(alone.notes) == 2
    assert alone.remainder
    sets = read_ipsets((RULESETS / folder / "ipset-save").read_bytes(), name="ipset-save")
    state = recover(with_sets(ruleset, sets))
    assert len(state.notes) == 1
    assert state.mark == 0x4000
    assert any(s.cluster_ip is not None for s in state.services)
    assert any(s.load_balancer_ips for s in state.services)
    assert all(s.name is None and not s.endpoints for s in state.services)
    assert state.family is family
