"""First packets of UDP, of which replays send many at once: each must come to what the reference says.

Most leave, and are read in bursts; some are rejected, delivered or dropped, and sent again one by one.
"""

from __future__ import annotations

import random

import pytest

from backends.model.contract import Job
from backends.model.flow import Flow, Send
from backends.model.outcome import Verdict
from backends.model.packet import Packet
from backends.simulator import SimulatorBackend
from harness.diff.backends import backend
from harness.diff.compare import compare
from tests.kernel.helpers.availability import require
from tests.lab.kuberules import Cluster, Shape, draw_cluster, kube_proxy_rules
from translate.ir import Family, Protocol
from translate.read import read_ruleset

FLOWS = 600


def flows_of(cluster: Cluster, draw: random.Random) -> list[Flow]:
    services = [s for s in cluster.services if s.protocol == "udp"]
    (uplink,) = (i for i in cluster.node.interfaces if i.name == "eth0")
    own = next(a.value for a in uplink.addresses if a.family is cluster.family)
    flows = []
    for n in range(FLOWS):
        service = draw.choice(services)
        src, dst, entry = cluster.pods.low + 100, service.cluster_ip, "cni0"
        match draw.randrange(40):
            case 0:
                dst = cluster.pods.low + draw.randrange(500, 60_000)
            case 1:
                src, entry = own + 5, "eth0"
            case 2:
                dst = own
            case 3:
                src = service.endpoints[0].address if service.endpoints else src
        packet = Packet(
            family=cluster.family,
            src=src,
            dst=dst,
            proto=Protocol.UDP,
            sport=draw.randrange(1024, 65_536),
            dport=service.port,
        )
        flows.append(Flow(id=str(n), steps=(Send(packet=packet, entry=entry),)))
    return flows


@pytest.mark.parametrize(
    ("name", "family"),
    [
        *(("iptables-legacy", family) for family in Family),
        *(("nftables", family) for family in Family),
        ("tc-ebpf", Family.IP),
        pytest.param("tc-ebpf", Family.IP6, marks=pytest.mark.slow),
    ],
)
def test_what_is_sent_at_once_comes_to_what_the_reference_says(name: str, family: Family) -> None:
    require(backend(name))
    shape = Shape(services=20, endpoints=3, udp=20, without_endpoints=2, family=family)
    cluster = draw_cluster(shape)
    flows = flows_of(cluster, random.Random(1))
    text = kube_proxy_rules(cluster).encode()
    job = Job(rules=read_ruleset(text, name="rules", family=family), node=cluster.node)
    with SimulatorBackend().open(job) as reference, backend(name).open(job) as kernel:
        wanted, got = list(reference.replay(flows)), list(kernel.replay(flows))
    different = {f.id: d for f, w, g in zip(flows, wanted, got, strict=True) if (d := compare(f, w, g))}
    assert not different
    verdicts = {o.verdict for r in got for b in r.branches for o in b.outcomes}
    assert {Verdict.FORWARD, Verdict.LOCAL, Verdict.REJECT} <= verdicts
    assert not [r.notes for r in got if r.notes]
