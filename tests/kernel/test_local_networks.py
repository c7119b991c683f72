"""``-m addrtype --dst-type LOCAL`` on a node with a route that makes a whole network of IPv6 local.

The first address of a network is an anycast address for ``ipv6_anycast_destination``. ``xt_addrtype`` takes
it for LOCAL and ANYCAST, and ``fib`` of nftables for ANYCAST alone.
"""

from __future__ import annotations

import os

import pytest

from backends.model.contract import Job
from backends.model.node import node_from_json
from backends.simulator import Simulation
from harness.corpus.formats.jsonlines import read_flows
from harness.diff.backends import backend
from harness.diff.compare import compare
from translate.ir import Family
from translate.read import read_ruleset

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.skipif(os.geteuid() != 0, reason="kernel backends need root"),
]

NODE = """{"interfaces": {"in0": ["fd00:1::1/64"], "out0": ["fd00:2::1/64"]},
"routes": [{"dst": "fd00:7::/64", "type": "local", "dev": "lo"}]}"""
RULES = b"""*mangle
-A PREROUTING -m addrtype --dst-type LOCAL -j MARK --set-mark 1
-A PREROUTING -m addrtype ! --dst-type LOCAL -j MARK --set-mark 2
COMMIT
"""
FIRST = "fd00:7::"
ADDRESSES = ("fd00:1::1", "fd00:1::", "fd00:2::1", "fd00:2::9", FIRST, "fd00:7::1")


@pytest.mark.parametrize(
    ("name", "expected"), [("iptables-legacy", set()), ("iptables-nft", set()), ("nftables", {FIRST})]
)
def test_the_first_address_of_a_local_network(name: str, expected: set[str]) -> None:
    node = node_from_json(NODE, name="node")
    job = Job(rules=read_ruleset(RULES, name="rules", family=Family.IP6), node=node)
    lines = (
        f'{{"id": "{address}", "in": "in0", "src": "fd00:1::5", "dst": "{address}", "proto": "udp",'
        ' "sport": 5, "dport": 6}'
        for address in ADDRESSES
    )
    flows = read_flows("\n".join(lines).encode(), name="flows", node=node)
    simulation = Simulation(job)
    with backend(name).open(job) as session:
        results = list(session.replay(flows))
    different = {
        flow.id
        for flow, result in zip(flows, results, strict=True)
        if list(compare(flow, simulation.simulate(flow), result))
    }
    assert different == expected
