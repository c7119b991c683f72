"""Faults at services that were not searched, of which few flows run in full: all of them show."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

import pytest

from backends.model.contract import Availability, Job
from backends.model.variant import Variant
from backends.nftables.backend import NftablesBackend, NftablesLoader
from backends.replay.session import KernelSession, open_session
from backends.simulator import SimulatorBackend
from harness.corpus.generate import generate_corpus
from harness.corpus.generate.addresses import Places
from harness.corpus.generate.alike.classes import Classes
from harness.corpus.generate.alike.groups import Kind
from harness.diff.batch import Batch
from harness.diff.parity import Plan, run_parity
from nfparity.migrate.planning.rules import read_rules
from nfparity.migrate.planning.trial import corpus, try_both
from tests.kernel.helpers.availability import require
from tests.lab.kuberules import Shape, draw_cluster, kube_proxy_rules
from translate.condense import emit_nft, lower
from translate.ir import Interval, format_address
from translate.read import read_ruleset

pytestmark = pytest.mark.kernel

SHAPE = Shape(services=9, endpoints=3, node_ports=4, base=False, seed=3)
ELSEWHERE = "198.18.9.9"


@dataclass(frozen=True)
class Changed:
    """The nftables backend with another text."""

    text: str
    name: str = "nftables"

    def probe(self) -> Availability:
        return NftablesBackend().probe()

    def open(self, job: Job) -> AbstractContextManager[KernelSession]:
        flush = emit_nft(lower(job.rules, level=job.level)).flush
        return open_session(job.node, NftablesLoader(self.text, job.rules.family, flush=flush))


def wrong(job: Job, text: str) -> Iterator[str]:
    """Yield the text with one address of a service that was not searched in one place exchanged."""
    classes = Classes.of(job.ruleset, Places.of(job.ruleset, job.node)).classes
    members = [member for of in classes for member in of.others]
    values = {c.value for member in members for c in member.constants if c.kind == Kind.ADDRESS}
    points = sorted(v.low for v in values if isinstance(v, Interval) and v.is_point)
    for point in points:
        for place in re.finditer(rf"\b{re.escape(format_address(SHAPE.family, point))}\b", text):
            yield text[: place.start()] + ELSEWHERE + text[place.end() :]


def differing(batch: Batch, text: str) -> int:
    report = run_parity(
        Plan(batches=(batch,)),
        (Changed(text),),
        reference=SimulatorBackend(),
        rules=lambda *_: (),
        progress=lambda *_: None,
    )
    return report.backends[0].differing


@pytest.mark.slow
def test_brief_runs_show_what_full_runs_show() -> None:
    require(NftablesBackend())
    cluster = draw_cluster(SHAPE)
    rules = read_ruleset(kube_proxy_rules(cluster).encode(), name="cluster", family=SHAPE.family)
    job = Job(rules=rules, node=cluster.node, level=2)
    made = generate_corpus(job, seed=0)
    flows = tuple(flow for flow in made.flows if flow.id in made.alike)
    full = Batch(rules_path="cluster", rules=rules, node=job.node, flows=flows, corpus=None)
    brief = replace(full, alike=made.alike)
    text = emit_nft(lower(rules, level=2)).text
    assert differing(brief, text) == 0
    faults = list(wrong(job, text))[::2]
    hidden = [fault for fault in faults if not differing(brief, fault)]
    assert len(faults) - len(hidden) >= 5
    assert [fault for fault in hidden if differing(full, fault)] == []


@pytest.mark.slow
@pytest.mark.parametrize("level", [1, 2])
def test_a_plan_refuses_what_the_whole_corpus_shows(monkeypatch: pytest.MonkeyPatch, level: int) -> None:
    """The packets of ``migrate plan`` leave out flows of the corpus that show nothing new."""
    require(NftablesBackend())
    cluster = draw_cluster(SHAPE)
    text = kube_proxy_rules(cluster)
    rules = read_rules(text, SHAPE.family, "cluster", (), None)
    job = Job(rules=rules.tried.whole(), node=cluster.node, level=level)
    made = generate_corpus(job, seed=0)
    whole = Batch(rules_path="cluster", rules=job.rules, node=job.node, flows=made.flows, corpus=None)
    tried = corpus(job.ruleset, job.node, 0)
    assert {flow.steps for flow in tried.flows} < {flow.steps for flow in made.flows}

    def refused(fault: str) -> bool:
        monkeypatch.setattr("nfparity.migrate.planning.trial.NftablesBackend", lambda: Changed(fault))
        report = try_both(rules, job.node, tried, Variant.LEGACY, level, lambda *_: None)
        return not report.parity

    translation = emit_nft(lower(rules.moved, level=level)).text
    assert not refused(translation)
    faults = list(wrong(job, translation))
    hidden = [fault for fault in faults if not refused(fault)]
    assert len(faults) - len(hidden) >= 5
    assert [fault for fault in hidden if differing(whole, fault)] == []


@pytest.mark.slow
@pytest.mark.parametrize("hook", ["prerouting", "output"])
def test_shared_runs_show_a_path_that_no_rule_has(hook: str) -> None:
    """A quarter of the connections to one service goes elsewhere, so all expected outcomes occur, too."""
    require(NftablesBackend())
    cluster = draw_cluster(SHAPE)
    rules = read_ruleset(kube_proxy_rules(cluster).encode(), name="cluster", family=SHAPE.family)
    job = Job(rules=rules, node=cluster.node, level=2)
    made = corpus(job.ruleset, job.node, 0)
    batch = Batch(
        rules_path="cluster", rules=rules, node=job.node, flows=made.flows, corpus=None, alike=made.alike
    )
    chain = f"nfparity fault {{ type nat hook {hook} priority -101; }}"
    text = emit_nft(lower(rules, level=2)).text + f"add chain ip {chain}\n"
    uses = [flow for flow in made.flows if flow.id.startswith("service-tcp-")]
    searched = {flow.first.packet.dst for flow in uses if flow.id not in made.alike}
    services = {flow.first.packet.dst for flow in uses if flow.id in made.alike} - searched
    assert len(services) >= 3
    for service in sorted(services)[:3]:
        address = format_address(SHAPE.family, service)
        fault = f"ip daddr {address} tcp dport 1-65535 numgen random mod 4 0 dnat to {ELSEWHERE}"
        assert differing(batch, f"{text}add rule ip nfparity fault {fault}\n")
