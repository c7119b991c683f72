"""Names of chains, against those that a kube-proxy gave."""

from __future__ import annotations

from pathlib import Path

import pytest

from nfparity.kubeproxy import ChainKind, KubeProxyState, chain_name, read_objects, recover
from nfparity.kubeproxy.chains import split_chain
from translate.ir import Family, TableName
from translate.read import read_ruleset

REAL = Path(__file__).resolve().parents[3] / "corpus/rulesets/kube-real"


def real_chains(file: str) -> set[str]:
    ruleset = read_ruleset((REAL / file).read_bytes(), name=file)
    table = ruleset.table(TableName.NAT)
    assert table is not None
    return {c.name for c in table.chains if split_chain(c.name) is not None}


@pytest.mark.parametrize(
    ("file", "family"), [("rules.iptables-save", Family.IP), ("rules.ip6tables-save", Family.IP6)]
)
def test_every_chain_of_a_kube_proxy_is_named_after_its_service(file: str, family: Family) -> None:
    """Each name in the dump follows from the API objects alone, endpoints' included."""
    objects = read_objects((REAL / "objects.json").read_text(), name="objects.json")
    possible = set()
    for s in objects.of(family):
        assert s.name is not None
        possible |= {chain_name(kind, s.name, s.protocol) for kind in ChainKind}
        possible |= {chain_name(ChainKind.SEP, s.name, s.protocol, e.text(family)) for e in s.endpoints}
    chains = real_chains(file)
    assert len(chains) > 20
    assert chains <= possible


def test_comments_and_names_of_chains_agree() -> None:
    ruleset = read_ruleset((REAL / "rules.iptables-save").read_bytes(), name="rules")
    state: KubeProxyState = recover(ruleset)
    hashed = [s for s in state.services if s.hash is not None]
    assert len(hashed) == 16
    for s in hashed:
        assert s.name is not None
        assert chain_name(ChainKind.SVC, s.name, s.protocol) == f"KUBE-SVC-{s.hash}"


@pytest.mark.parametrize("name", ["KUBE-SERVICES", "KUBE-SVC-", "KUBE-POD-ABCDEFGHIJKLMNOP", "cali-FORWARD"])
def test_chains_of_no_service_are_told_apart(name: str) -> None:
    assert split_chain(name) is None
