"""Wrong constants of services that were not searched: the corpus shows each of them on the kernel."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from backends.model.contract import Job
from backends.simulator import SimulatorBackend
from harness.corpus.generate import generate_corpus
from harness.corpus.generate.addresses import Places
from harness.corpus.generate.alike.classes import Classes
from harness.corpus.generate.alike.groups import Kind, Member
from harness.diff.backends import backend
from harness.diff.batch import Batch
from tests.kernel.helpers.availability import require
from tests.lab.kuberules import Shape, draw_cluster, kube_proxy_rules
from tests.lab.mutation.fault import Fault
from tests.lab.mutation.hunt import Verdict, hunt
from tests.lab.mutation.planter import Planter
from tests.lab.mutation.testbed import Testbed
from tests.lab.mutation.trial import BACKENDS, PLANTERS, SUBJECTS
from tests.lab.mutation.workload import prepare
from translate.ir import Interval, format_address
from translate.passes import lower
from translate.read import read_ruleset

pytestmark = pytest.mark.kernel

SHAPE = Shape(services=9, endpoints=1, external_ips=9, base=False, seed=3)
WRONG = {"address", "port", "data", "lost-line", "constant", "lost-entry"}


@pytest.fixture(scope="module")
def job() -> Job:
    cluster = draw_cluster(SHAPE)
    rules = read_ruleset(kube_proxy_rules(cluster).encode(), name="cluster", family=SHAPE.family)
    return Job(rules=rules, node=cluster.node)


def spelled(member: Member, kind: str) -> Iterator[str]:
    """The addresses of a member as a translation writes them."""
    for constant in member.constants:
        if constant.kind == Kind.ADDRESS and isinstance(constant.value, Interval) and constant.value.is_point:
            number = constant.value.low
            yield format_address(SHAPE.family, number) if kind == "nft" else f"{number:#x}"


def verdicts(
    planter: Planter[Any], faults: Sequence[Fault], job: Job, *, exhaustive: bool
) -> dict[Fault, Verdict]:
    """Plant each fault, and send every flow once: with one endpoint, no outcome is random."""
    flows = generate_corpus(job, seed=0, exhaustive=exhaustive).flows
    batch = Batch(rules_path="cluster", rules=job.ruleset, node=job.node, flows=flows, corpus=None)
    planter.choose(faults)
    with Testbed(planter, prepare([batch], SimulatorBackend(), few=1, many=1)) as testbed:
        assert testbed.first_difference(None, repeated=False) is None
        return {caught.fault: caught.verdict for caught in hunt(faults, testbed, proven=faults)}


@pytest.mark.parametrize("subject", ["nft-O2", pytest.param("tc-O2", marks=pytest.mark.slow)])
def test_a_wrong_constant_of_a_service_that_was_not_searched_is_shown(job: Job, subject: str) -> None:
    """Also a lost entry is. Some change nothing, such as marks that other rules set: no corpus shows them."""
    require(backend(BACKENDS[SUBJECTS[subject][0]]))
    kind, level = SUBJECTS[subject]
    classes = Classes.of(job.ruleset, Places.of(job.ruleset, job.node)).classes
    texts = {text for one in classes for member in one.others for text in spelled(member, kind)}
    planter = PLANTERS[kind](lower(job.ruleset, level=level))

    def concerns(fault: Fault) -> bool:
        words = fault.place.text.replace(",", " ").split()
        return fault.operator in WRONG and not texts.isdisjoint(words)

    chosen = [fault for fault in planter.faults if concerns(fault)][::4]
    shown = verdicts(planter, chosen, job, exhaustive=False)
    assert list(shown.values()).count(Verdict.CAUGHT) >= 10
    hidden = [fault for fault in chosen if shown[fault] is Verdict.SURVIVED]
    everything = verdicts(planter, hidden, job, exhaustive=True)
    assert [fault.key for fault in hidden if everything[fault] is Verdict.CAUGHT] == []
