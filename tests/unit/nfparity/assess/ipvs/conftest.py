"""The facts of a node in ipvs mode, from the rules, ipsets and virtual services of the corpus."""

from __future__ import annotations

from pathlib import Path

import pytest

from backends.model.ipvs import IpvsTable, read_table
from backends.model.node import node_from_json
from nfparity.assess.node.facts import Facts, gather
from nfparity.kubeproxy import recover
from translate.read import read_ipsets, read_ruleset, with_sets

KUBE_IPVS = Path(__file__).resolve().parents[4] / "corpus/rulesets/kube-ipvs"


@pytest.fixture(scope="session")
def table() -> IpvsTable:
    return read_table((KUBE_IPVS / "ipvs-save").read_bytes(), name="ipvs-save")


@pytest.fixture(scope="session")
def facts(table: IpvsTable) -> Facts:
    sets = read_ipsets((KUBE_IPVS / "ipset-save").read_bytes(), name="ipset-save")
    rules = (KUBE_IPVS / "rules.iptables-save").read_bytes()
    ruleset = with_sets(read_ruleset(rules, name="iptables-save"), sets)
    node = node_from_json((KUBE_IPVS / "node.json").read_text(), name="node.json")
    return gather(ruleset, node, recover(ruleset, ipvs=table), version=(1, 36))
