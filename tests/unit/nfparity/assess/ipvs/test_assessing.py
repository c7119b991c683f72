"""Runs of a flow for all endpoints that nftables mode can choose."""

from __future__ import annotations

from dataclasses import replace

from backends.model.ipvs import IpvsTable
from nfparity.assess.ipvs.assessing import most_endpoints
from nfparity.assess.ipvs.probes import probes_of
from nfparity.assess.node.facts import Facts


def test_a_service_has_the_endpoints_of_all_its_addresses(facts: Facts, table: IpvsTable) -> None:
    probes = probes_of(facts, table)
    several = next(p for p in probes if p.virtual is not None and len(p.virtual.servers) > 1)
    assert several.virtual is not None
    local = replace(several, virtual=replace(several.virtual, servers=several.virtual.servers[:1]))
    assert most_endpoints([local]) == {several.subject: 1}
    for both in ([local, several], [several, local]):
        assert most_endpoints(both) == {several.subject: len(several.virtual.servers)}
