"""Assessments with hostile names in them, and with as many findings as a test wants."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from backends.model.contract import Job
from backends.model.flow import Flow, Reply, Send
from backends.model.node import node_from_json
from backends.model.outcome import Outcome, Verdict
from backends.model.packet import Packet
from backends.simulator import simulate
from nfparity.assess.assessing import Assessment, Checked, Finding
from nfparity.assess.catalogue import entry
from nfparity.assess.difference import ChangedPacket, Evidence
from nfparity.assess.leaks import Leak
from nfparity.assess.node.facts import Facts, gather
from nfparity.assess.replay.replaying import Disputed
from nfparity.assess.summary import Summary, Untested
from nfparity.kubeproxy import recover
from tests.unit.nfparity.report.pages.helpers.hostile import CHAIN, COMMENT, HOSTILE
from translate.ir import Family, Origin, Protocol, parse_address
from translate.read import read_ruleset

RULES = f"""*nat
:PREROUTING ACCEPT [0:0]
:KUBE-SERVICES - [0:0]
:KUBE-SVC-AAAAAAAAAAAAAAAA - [0:0]
:KUBE-SEP-AAAAAAAAAAAAAAAA - [0:0]
:KUBE-MARK-MASQ - [0:0]
-A PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-A KUBE-MARK-MASQ -j MARK --set-xmark 0x4000/0x4000
-A KUBE-SERVICES -d 10.96.0.10/32 -p tcp -m comment --comment "web/shop:http cluster IP" -m tcp --dport 80 \
-j KUBE-SVC-AAAAAAAAAAAAAAAA
-A KUBE-SVC-AAAAAAAAAAAAAAAA -m comment --comment "web/shop:http -> 10.244.0.5:8080" \
-j KUBE-SEP-AAAAAAAAAAAAAAAA
-A KUBE-SEP-AAAAAAAAAAAAAAAA -s 10.244.0.5/32 -m comment --comment "web/shop:http" -j KUBE-MARK-MASQ
-A KUBE-SEP-AAAAAAAAAAAAAAAA -p tcp -m comment --comment "web/shop:http" -m tcp -j DNAT \
--to-destination 10.244.0.5:8080
COMMIT
*filter
:FORWARD ACCEPT [0:0]
:{CHAIN} - [0:0]
-A FORWARD -j {CHAIN}
-A {CHAIN} -m comment --comment "{COMMENT}" -j ACCEPT
COMMIT
"""
NODE = """{"interfaces": {"eth0": ["192.168.0.2/24"], "cni0": ["10.244.0.1/24"]},
"routes": [{"dst": "default", "via": "192.168.0.1", "dev": "eth0"}]}"""


DROPPED = Outcome(verdict=Verdict.DROP)


def ip(text: str) -> int:
    return parse_address(Family.IP, text)


@pytest.fixture(scope="session")
def facts() -> Facts:
    ruleset = read_ruleset(RULES.encode(), name="rules")
    return gather(ruleset, node_from_json(NODE, name="node"), recover(ruleset), version=(1, 37))


def changed(
    facts: Facts, name: str, *, sport: int = 40000, reply: bool = False, after: Outcome = DROPPED
) -> ChangedPacket:
    """A packet from outside to the service, with the outcome of the rules before, and another one after."""
    packet = Packet(
        family=Family.IP,
        src=ip("198.51.100.7"),
        dst=ip("10.96.0.10"),
        proto=Protocol.TCP,
        sport=sport,
        dport=80,
    )
    steps = (Send(packet=packet, entry="eth0"), *((Reply(),) if reply else ()))
    flow = Flow(id=name, steps=steps, why=f"the purpose of {name}")
    (branch,) = simulate(Job(rules=facts.ruleset, node=facts.node), flow).branches
    return ChangedPacket(
        flow=flow,
        step=len(steps) - 1,
        packet=packet,
        entry="eth0",
        before=branch.outcomes[-1],
        after=after,
        fields=("verdict",),
    )


@pytest.fixture(scope="session")
def summary(facts: Facts) -> Summary:
    """Every kind of finding; texts that come from outside are hostile."""
    line = Evidence(Origin("rules", 9, 0, f'-A X -m comment --comment "{HOSTILE}" -j Y'), 3)
    broken = Finding(
        entry=entry("K04"),
        subject=f"web/{HOSTILE}",
        lines=(line,),
        examples=(
            changed(facts, HOSTILE.replace("\udcff", "")),
            changed(facts, "K04/other", sport=40001, reply=True),
        ),
    )
    client, service = ip("198.51.100.7"), ip("10.96.0.10")
    local = Outcome(verdict=Verdict.LOCAL, src=client, dst=service, sport=40000, dport=80)
    moved = replace(local, verdict=Verdict.FORWARD, out="eth0", dst=ip("10.244.0.6"), dnat=True)
    assessment = Assessment(
        facts=facts,
        findings=(
            broken,
            Finding(entry=entry("K08"), subject="Linux", description=f"Linux is {HOSTILE}"),
            Finding(
                entry=entry("K17"), subject="web/shop:http", examples=(changed(facts, "K17/a", after=moved),)
            ),
        ),
        unexplained=(
            Finding(entry=None, subject="?", examples=(changed(facts, "odd", reply=True, after=local),)),
        ),
        leaks=(Leak(kind="an address", device="eth0", examples=(changed(facts, "LEAK/x"),)),),
        checked=(Checked(entry=entry("K01"), flows=2),),
        flows=9,
        disputed=(Disputed("doubted", f"verdict: {HOSTILE}"),),
    )
    return Summary(
        snapshot=f"node{HOSTILE}",
        version=(1, 37),
        against=None,
        assessments=(assessment,),
        untested=(Untested(Family.IP6, "no table is for it"),),
    )


@pytest.fixture(scope="session")
def many(facts: Facts) -> Callable[[int], Summary]:
    """``many(count)``: so many findings, each for a service of its own."""
    first = changed(facts, "K04/0")

    def make(count: int) -> Summary:
        findings = tuple(
            Finding(
                entry=entry("K04"), subject=f"team-{number % 100}/service-{number}:http", examples=(first,)
            )
            for number in range(count)
        )
        assessment = Assessment(facts=facts, findings=findings, flows=count)
        return Summary(snapshot="node", version=(1, 37), against=None, assessments=(assessment,))

    return make
