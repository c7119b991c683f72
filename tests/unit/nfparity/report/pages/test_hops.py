"""Paths of packets as hops."""

from __future__ import annotations

from backends.model.contract import Job
from backends.model.outcome import Outcome, Verdict
from backends.simulator import trace
from harness.corpus.formats.jsonlines import read_flows
from nfparity.assess.node.index import ServiceIndex
from nfparity.kubeproxy import recover
from nfparity.report.pages.content import Hop
from nfparity.report.pages.hops import observed_hops, service_names, traced_hops
from translate.ir import Family, parse_address

FLOW = (
    b'{"id": "dns", "in": "pod5", "src": "10.244.0.5", "dst": "10.96.0.10", "proto": "udp", "sport": 1,'
    b' "dport": 53}'
)


def hops(worker: Job, *, every_rule: bool, misses: int) -> tuple[Hop, ...]:
    (flow,) = read_flows(FLOW, name="f", node=worker.node)
    names = service_names(ServiceIndex.of(recover(worker.ruleset)).lines, Family.IP)
    branch = trace(worker, flow, every_rule=every_rule)[0]
    return traced_hops(branch.steps[0], Family.IP, names, misses=misses)


def test_the_path_goes_through_hooks_chains_and_rules(worker: Job) -> None:
    path = hops(worker, every_rule=True, misses=0)
    hooks = [hop.text.partition(":")[0] for hop in path if hop.kind == "hook"]
    assert hooks == ["PREROUTING", "FORWARD", "POSTROUTING"]
    chains = [hop.text for hop in path if hop.kind == "chain"]
    assert chains[:2] == ["nat PREROUTING", "nat KUBE-SERVICES"]
    (decision,) = (hop for hop in path if "-j DNAT" in hop.text)
    assert (decision.kind, decision.decides) == ("rule", True)
    assert decision.line > 0
    assert decision.service.endswith(": endpoint")
    assert decision.service.startswith("kube-system/kube-dns:dns")
    jumps = [hop for hop in path if "-j KUBE-SERVICES" in hop.text]
    assert jumps
    assert not any(hop.decides for hop in jumps)
    assert path[-1].kind == "end"


def test_rules_that_do_not_match_are_counted_alike_with_and_without_their_visits(worker: Job) -> None:
    assert hops(worker, every_rule=True, misses=0) == hops(worker, every_rule=False, misses=0)


def test_few_rules_that_do_not_match_are_shown_with_the_reason(worker: Job) -> None:
    path = hops(worker, every_rule=True, misses=1 << 30)
    missed = [hop for hop in path if hop.kind == "missed"]
    assert missed
    assert all(hop.line and hop.note.startswith("no: ") for hop in missed)
    counted = [hop for hop in hops(worker, every_rule=True, misses=0) if hop.kind == "missed"]
    assert sum(int(hop.text.split()[0]) for hop in counted) == len(missed)


def test_an_outcome_shows_the_nat_of_its_packet() -> None:
    outcome = Outcome(
        verdict=Verdict.FORWARD,
        out="cni0",
        src=parse_address(Family.IP, "192.0.2.1"),
        dst=parse_address(Family.IP, "10.244.0.5"),
        sport=7,
        dport=80,
        dnat=True,
        snat=True,
    )
    path = observed_hops(outcome, Family.IP, entry="a packet in eth0", through="these rules", text="")
    assert [(hop.kind, hop.text, hop.decides) for hop in path] == [
        ("hook", "a packet in eth0", False),
        ("step", "these rules", False),
        ("step", "NAT: the destination becomes 10.244.0.5:80", True),
        ("step", "NAT: the source becomes 192.0.2.1:7", True),
        ("end", "end: leaves by cni0, as 192.0.2.1:7 > 10.244.0.5:80", False),
    ]
