"""Predictions follow from the recovered services, and name every outcome that contradicts them."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from backends.model.ipvs import IpvsTable
from backends.model.outcome import Outcome, Verdict
from nfparity.assess.ipvs.passages import Passage
from nfparity.assess.ipvs.prediction import Prediction, Predictor
from nfparity.assess.ipvs.probes import Kind, Probe, probes_of
from nfparity.assess.node.facts import Facts
from translate.ir import Family, parse_address


@pytest.fixture(scope="module")
def predicted(facts: Facts, table: IpvsTable) -> Mapping[str, tuple[Probe, Prediction]]:
    predictor = Predictor(facts)
    return {probe.flow.id: (probe, predictor.of(probe)) for probe in probes_of(facts, table)}


def test_every_service_is_probed_by_each_client(predicted: Mapping[str, tuple[Probe, Prediction]]) -> None:
    clients = {
        flow_id.rpartition("/")[2]
        for flow_id, (probe, _) in predicted.items()
        if probe.kind is Kind.SERVICE and "10.96.0.10:53/udp" in flow_id
    }
    assert clients == {"outside", "pod", "node", "endpoint"}
    assert {probe.kind for probe, _ in predicted.values()} == set(Kind)


@pytest.mark.parametrize(
    ("flow_id", "targets", "masqueraded"),
    [
        # KUBE-CLUSTER-IP: clients that are no pods are masqueraded.
        ("service/10.96.0.10:53/tcp/outside", 2, 2),
        ("service/10.96.0.10:53/tcp/pod", 2, 0),
        ("service/10.96.0.10:53/tcp/node", 2, 2),
        # KUBE-LOOP-BACK: an endpoint that reaches itself.
        ("service/10.96.0.10:53/tcp/endpoint", 2, 1),
        # KUBE-NODE-PORT-TCP, and KUBE-NODE-PORT-LOCAL-TCP, which keeps the client's address.
        ("service/172.18.0.3:30080/tcp/pod", 2, 2),
        ("service/172.18.0.3:31443/tcp/outside", 1, 0),
        # KUBE-LOAD-BALANCER-FW: a pod is in none of the source ranges, the node's own packets pass no filter.
        ("service/203.0.113.10:443/tcp/outside", 2, 2),
        ("service/203.0.113.10:443/tcp/pod", 0, 0),
        ("service/203.0.113.10:443/tcp/node", 2, 2),
    ],
)
def test_targets_and_masquerading(
    predicted: Mapping[str, tuple[Probe, Prediction]], flow_id: str, targets: int, masqueraded: int
) -> None:
    _, prediction = predicted[flow_id]
    assert (len(prediction.targets), len(prediction.masquerade)) == (targets, masqueraded)


ENDPOINTS = [(parse_address(Family.IP, a), 53) for a in ("10.244.1.4", "10.244.2.6")]
VIP = parse_address(Family.IP, "10.96.0.10")


def to(number: int, *, snat: bool = False, sender: int = VIP) -> Passage:
    address, port = ENDPOINTS[number]
    first = Outcome(verdict=Verdict.FORWARD, out="eth0", src=1, dst=address, dport=port, dnat=True, snat=snat)
    return Passage(first, Outcome(verdict=Verdict.FORWARD, out="eth0", src=sender, dst=1, sport=53))


def test_what_was_predicted_is_no_fault(predicted: Mapping[str, tuple[Probe, Prediction]]) -> None:
    _, prediction = predicted["service/10.96.0.10:53/tcp/pod"]
    assert prediction.fault((to(0), to(1))) is None


@pytest.mark.parametrize(
    ("run", "said"),
    [
        ((to(0), to(0)), "every endpoint once predicted"),
        ((to(0, snat=True), to(1)), "connection 1: masquerading not predicted"),
        ((to(0), to(1, sender=7)), "connection 2: the answer does not come from the address of the service"),
        ((Passage(Outcome(verdict=Verdict.DROP)), to(1)), "an endpoint predicted, dropped observed"),
        (
            (Passage(Outcome(verdict=Verdict.FORWARD, out="x", src=1, dst=7, dport=7, dnat=True)), to(1)),
            "0.0.0.7:7 is no endpoint of the service",
        ),
        ((Passage(to(0).first, Outcome(verdict=Verdict.DROP)), to(1)), "an answer to the client predicted"),
    ],
)
def test_what_was_not_predicted_is_named(
    predicted: Mapping[str, tuple[Probe, Prediction]], run: tuple[Passage, ...], said: str
) -> None:
    _, prediction = predicted["service/10.96.0.10:53/tcp/pod"]
    assert said in (prediction.fault(run) or "")


def test_persistence_keeps_a_client_at_one_endpoint(
    predicted: Mapping[str, tuple[Probe, Prediction]],
) -> None:
    _, prediction = predicted["service/10.96.20.7:80/tcp/pod"]
    assert prediction.virtual is not None
    assert prediction.virtual.persistent == 10800


def test_a_packet_that_rules_drop_does_not_reach_ip_vs(
    predicted: Mapping[str, tuple[Probe, Prediction]],
) -> None:
    _, prediction = predicted["service/203.0.113.10:443/tcp/pod"]
    assert prediction.fault((Passage(Outcome(verdict=Verdict.DROP)),)) is None
    assert "verdict: drop predicted, local observed" in (
        prediction.fault((Passage(Outcome(verdict=Verdict.LOCAL)),)) or ""
    )
