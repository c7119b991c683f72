"""Given nftables rulesets: their outcomes in comparison with iptables rules, and messages about faults."""

from __future__ import annotations

import json
import os
import signal
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from backends.given_nftables.backend import GivenNftBackend, GivenNftLoader
from backends.iptables.backend import IptablesLoader
from backends.model.contract import Job
from backends.model.flow import Flow, Send
from backends.model.node import Node, node_from_json
from backends.model.packet import Packet
from backends.nftables.backend import NftablesBackend, NftablesLoader
from backends.replay.session import open_session
from backends.simulator import SimulatorBackend
from backends.testbed.tapnode import TapNode
from harness.diff.batch import Batch
from harness.diff.parity import Plan, run_parity
from harness.diff.result import ParityReport
from nfparity.inputs.batches import load_batches
from tests.kernel.helpers.availability import require
from tests.kernel.helpers.reports import report_text
from translate.errors import MachineError, ParseError
from translate.ir import Family, Protocol, parse_address
from translate.nftlisting import read_listing
from translate.read import read_ruleset

ROOT = Path(__file__).parents[2]
CORPUS = ROOT / "tests/corpus"
KUBE = CORPUS / "rulesets/kube-real"
FORMS = ("realistic.nft", "realistic.nft.json", "realistic.nft-input")


@pytest.fixture(scope="module", autouse=True)
def _needs_nftables() -> None:
    require(NftablesBackend())


def test_what_nft_does_not_understand_is_told_at_its_line(kind_node: Node) -> None:
    text = "table ip a {\n\tset s {\n\t\ttype ipv4_addr\n\t}\n\tchain c {\n\t\tip saddr @s acept\n\t}\n}\n"
    listing = read_listing(text, name="given.nft")
    with (
        pytest.raises(ParseError, match=r"given\.nft:6: nft does not understand this: syntax error"),
        open_session(kind_node, GivenNftLoader(listing, Family.IP)),
    ):
        pass


def test_what_the_kernel_does_not_take_is_told_at_its_line(kind_node: Node) -> None:
    chains = (
        "\tchain b {\n\t\ttype filter hook input priority 0;\n\t\tjump c\n\t}\n\tchain c {\n\t\tjump c\n\t}\n"
    )
    text = f"table ip a {{\n{chains}}}\n"
    listing = read_listing(text, name="given.nft")
    with (
        pytest.raises(MachineError, match=r"given\.nft:\d: the kernel refuses this: Too many links"),
        open_session(kind_node, GivenNftLoader(listing, Family.IP)),
    ):
        pass


@pytest.mark.parametrize(
    ("word", "complaint"), [("frobnicate", "Unknown statement object"), ("jump", "No such file or directory")]
)
def test_a_fault_in_json_is_told_by_the_name_of_the_entry(word: str, complaint: str, kind_node: Node) -> None:
    chain = {"family": "ip", "table": "a", "name": "c"}
    rules = [
        {"rule": {"family": "ip", "table": "a", "chain": "c", "handle": handle, "expr": [expression]}}
        for handle, expression in ((4, {"accept": None}), (5, {word: {"target": "nowhere"}}))
    ]
    text = json.dumps({"nftables": [{"table": {"family": "ip", "name": "a"}}, {"chain": chain}, *rules]})
    loader = GivenNftLoader(read_listing(text, name="given"), Family.IP)
    said = rf"given:1:\d+: rule ip a c handle 5: nft does not understand this: {complaint}"
    with pytest.raises(ParseError, match=said), open_session(kind_node, loader):
        pass


class Dying(NftablesLoader):
    """Brings its process down, as libnftables 1.0.6 does for some rulesets."""

    def __init__(self) -> None:
        super().__init__("")

    def load(self, tap: TapNode) -> None:
        os.kill(os.getpid(), signal.SIGSEGV)


def test_a_ruleset_of_which_libnftables_dies_is_named(kind_node: Node, kind_rules: str) -> None:
    given = GivenNftBackend("given.nft", "table ip a {\n}\n", beside=lambda _: Dying())
    job = Job(rules=read_ruleset(kind_rules.encode(), name="kind"), node=kind_node)
    said = r"given\.nft: the replay process ended by itself \(status -11\) while it loaded this ruleset"
    with pytest.raises(MachineError, match=said), given.open(job):
        pass


@cache
def kube_flows(rules: str, node: str) -> tuple[Batch, Plan]:
    from harness.corpus.generate import generate_corpus

    ruleset = read_ruleset((KUBE / rules).read_bytes(), name=rules)
    job = Job(rules=ruleset, node=node_from_json((KUBE / node).read_text(), name=node))
    batch = Batch(
        rules_path=rules,
        rules=ruleset,
        node=job.node,
        flows=generate_corpus(job, seed=0, exhaustive=True).flows,
        corpus="generated",
    )
    return batch, Plan(batches=(batch,), miss=1.0)


def kube_report(rules: str, node: str, form: str) -> ParityReport:
    _, plan = kube_flows(rules, node)
    return run_parity(
        plan,
        (GivenNftBackend(form, (KUBE / form).read_text()),),
        reference=SimulatorBackend(),
        rules=lambda *_: (),
        progress=lambda *_: None,
    )


def beginnings(report: ParityReport) -> dict[str, tuple[object, object]]:
    """Return the first expected and observed values that differ, for each differing flow.

    What follows of that depends on ports and endpoints that chance has drawn.
    """
    found: dict[str, tuple[object, object]] = {}
    for one in report.differences:
        found.setdefault(one.flow_id.partition("#")[0], (one.expected, one.observed))
    return found


EXPLAINED = {
    ("forward", "reject"),  # to a port that a ClusterIP does not have: K06, K13
    ("forward", "drop"),  # from a pod or the node to a LB IP without endpoints on the node: K24
    ("drop", "forward"),  # a TCP packet that conntrack calls invalid: K05
    ("forward", "local"),  # the node to its NodePort at 127.0.0.1: K02
    ("drop", "local"),  # to 127.0.0.0/8 from elsewhere, which kubelet's or kube-proxy's guard drops: K32
}


@pytest.mark.parametrize(
    ("rules", "node", "forms"),
    [
        ("rules.iptables-save", "dataplane.json", (FORMS[0], FORMS[2])),
        pytest.param("rules.iptables-save", "dataplane.json", FORMS, marks=pytest.mark.slow),
        pytest.param("rules.ip6tables-save", "dataplane6.json", FORMS[:2], marks=pytest.mark.slow),
    ],
)
def test_kube_proxys_two_modes_differ_in_every_form_alike(
    rules: str, node: str, forms: tuple[str, ...]
) -> None:
    reports = [kube_report(rules, node, form) for form in forms]
    first, *others = [beginnings(report) for report in reports]
    assert first
    assert set(first.values()) <= EXPLAINED, {v: k for k, v in first.items()}
    assert len(first) < reports[0].flows / 4
    for other in others:
        assert other == first


def test_affinity_holds_and_begins_anew_with_each_flow() -> None:
    """A client stays with the endpoint that it drew, and in the next flow it draws again.

    Left out are a node port, because the node of these flows is not the one of this ruleset, and a port that
    the service has for another protocol, which kube-proxy rejects in nftables mode.
    """
    (batch,) = load_batches(rules=None, corpus=str(CORPUS / "cases-kube-real"), node=None)
    sticky = tuple(flow for flow in batch.flows if flow.id not in ("mqtt-nodeport", "wrong-protocol"))
    assert len(sticky) == len(batch.flows) - 2
    report = run_parity(
        Plan(batches=(replace(batch, flows=sticky),), repeat=40),
        (GivenNftBackend("given", (KUBE / "realistic.nft").read_text()),),
        reference=SimulatorBackend(),
        rules=lambda *_: (),
        progress=lambda *_: None,
    )
    assert report.parity, report_text(report)
    assert report.share_tests > 20


CHOOSING = """\
table ip t {
    chain two { dnat to numgen random mod 2 map { 0 : 10.244.0.5, 1 : 10.244.0.6 } }
    chain in {
        type nat hook prerouting priority -100;
        ip daddr 10.96.0.1 meta l4proto tcp goto two
        ip daddr 10.96.0.2 dnat to 10.244.0.5
    }
}
"""


@pytest.mark.parametrize(
    ("beside", "settled"),
    [
        ("", [False, True, True]),
        ("-A FORWARD -m comment --comment numgen -j ACCEPT\n", [False, True, True]),
        ("-A FORWARD -m statistic --mode random --probability 0.5 -j ACCEPT\n", [False] * 3),
    ],
    ids=["alone", "beside plain rules", "beside random rules"],
)
def test_flows_that_meet_no_random_rule_are_settled(
    beside: str, settled: list[bool], kind_node: Node, kind_rules: str
) -> None:
    rest = IptablesLoader("iptables-legacy", f"*filter\n:FORWARD ACCEPT [0:0]\n{beside}COMMIT\n")
    ruleset = read_ruleset(kind_rules.encode(), name="kind")
    backend = GivenNftBackend("given", CHOOSING, beside=lambda _: rest if beside else None)
    flows = [
        Flow(id=address, steps=(Send(packet=packet_to(address), entry="eth0"),))
        for address in ("10.96.0.1", "10.96.0.2", "10.96.0.3")
    ]
    with backend.open(Job(rules=ruleset, node=kind_node)) as session:
        assert [result.settled for result in session.replay(flows)] == settled


def packet_to(address: str) -> Packet:
    return Packet(
        family=Family.IP,
        src=parse_address(Family.IP, "172.18.0.9"),
        dst=parse_address(Family.IP, address),
        proto=Protocol.TCP,
        sport=41000,
        dport=80,
    )
