"""Tests of the shares of a service's endpoints, and of the smallest unfairness that these tests detect.

``python -m tests.lab.share_tests`` opens many new connections to one service of three endpoints through every
backend. The shares must pass the exact test of :mod:`harness.diff.shares`. Then it plants a fault in the
translations, so that one endpoint's share is slightly too large; the shares must not pass.
"""

from __future__ import annotations

import argparse
import bisect
import math
import sys
from contextlib import AbstractContextManager
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import translate.bpf
import translate.nft
from backends.iptables.backend import IptablesLoader
from backends.model.contract import Job
from backends.model.flow import Flow, Send
from backends.model.packet import Packet, PortClass
from backends.nftables.backend import NftablesLoader
from backends.replay.sampler import Destination
from backends.replay.session import KernelSession, open_session
from backends.simulator import simulate
from backends.tc_ebpf.loader import TcEbpfLoader
from harness.diff.backends import backend
from harness.diff.shares import FALSE_ALARM_RATE, Tally, binomial_tail, log_choose, unfair_shares
from tests.lab.errors import print_error
from tests.lab.kuberules import Shape, draw_cluster, kube_proxy_rules
from tests.lab.mutation.bpf_faults import output_of
from tests.lab.mutation.skew import skewed
from translate.errors import InputError, MachineError, UnsupportedError
from translate.ir import Family, Protocol, parse_address
from translate.passes import lower
from translate.read import read_ruleset
from translate.write import write_save

__all__ = ["SUBJECTS", "Drawn", "detection_power", "draw", "one_service"]

SUBJECTS: Final = {
    "iptables-legacy": ("iptables-legacy", 0),
    "iptables-nft": ("iptables-nft", 0),
    "nft-O0": ("nftables", 0),
    "nft-O1": ("nftables", 1),
    "nft-O2": ("nftables", 2),
    "tc-O0": ("tc-ebpf", 0),
    "tc-O1": ("tc-ebpf", 1),
    "tc-O2": ("tc-ebpf", 2),
}
"""Backends at a level that draw endpoints. Those of iptables have no translation to change."""

_CLIENTS: Final = {Family.IP: "198.51.100.7", Family.IP6: "2001:db8:ffff::7"}


@dataclass(frozen=True, slots=True)
class Drawn:
    """The results of many connections: the count of each endpoint, and the least p-value."""

    subject: str
    shift: float
    tally: Tally
    unfair: bool

    @property
    def least_p(self) -> float:
        """The least p-value of its endpoints."""
        tally = self.tally
        pairs = zip(tally.counts, tally.probabilities, strict=True)
        return min(binomial_tail(count, tally.runs, probability) for count, probability in pairs)


def one_service(family: Family, *, endpoints: int = 3) -> tuple[Job, Flow]:
    """Return a job with one UDP service, and a flow to it from outside of the cluster."""
    cluster = draw_cluster(Shape(family=family, services=1, udp=1, endpoints=endpoints, base=False))
    ruleset = read_ruleset(kube_proxy_rules(cluster).encode(), name="one-service", family=family)
    (service,) = cluster.services
    packet = Packet(
        family=family,
        src=parse_address(family, _CLIENTS[family]),
        dst=service.cluster_ip,
        proto=Protocol.UDP,
        sport=40000,
        dport=service.port,
    )
    flow = Flow(id="one-service", steps=(Send(packet=packet, entry="eth0"),))
    return Job(rules=ruleset, node=cluster.node), flow


def draw(
    subject: str,
    *,
    family: Family = Family.IP,
    connections: int,
    shift: float = 0.0,
    endpoints: int = 3,
    false_alarm_rate: float = FALSE_ALARM_RATE,
) -> Drawn:
    """Open new connections and test the shares of the endpoints against the simulator's.

    ``shift`` plants a fault: one endpoint's share is larger by so much of the whole. Raises
    MachineError when the subject cannot run here or a packet went where the reference never sends it,
    InputError for a fault in a subject without a translation.
    """
    name, level = SUBJECTS[subject]
    job, flow = one_service(family, endpoints=endpoints)
    odds: dict[Destination | None, Fraction] = {}
    for branch in simulate(job, flow).branches:
        outcome = branch.outcomes[0]
        assert outcome.dst is not None
        assert not isinstance(outcome.dport, PortClass)
        key = outcome.dst, outcome.dport
        odds[key] = odds.get(key, Fraction(0)) + branch.probability
    first = flow.first
    assert first.entry is not None
    with _opened(name, level, job, shift) as session:
        counts = session.sample(first.packet, first.entry, connections)
    strange = set(counts) - set(odds)
    if strange:
        raise MachineError(f"{subject}: {strange} are no endpoints")
    tally = Tally(
        flow_id=flow.id,
        what="endpoint",
        probabilities=tuple(odds.values()),
        counts=tuple(counts.get(key, 0) for key in odds),
    )
    return Drawn(subject, shift, tally, bool(unfair_shares([tally], false_alarm_rate=false_alarm_rate)))


def _opened(name: str, level: int, job: Job, shift: float) -> AbstractContextManager[KernelSession]:
    family = job.ruleset.family
    if name == "nftables":
        text = translate.nft.emit(lower(job.ruleset, level=level)).text
        return open_session(job.node, NftablesLoader(skewed(text, shift) if shift else text, family))
    if name == "tc-ebpf":
        output = translate.bpf.emit(lower(job.ruleset, level=level))
        if shift:
            output = output_of(skewed(output.render(), shift), output)
        return open_session(job.node, TcEbpfLoader(output))
    if shift:
        raise InputError(f"{name} takes the rules as they are; there is no translation to change")
    return open_session(job.node, IptablesLoader(name, write_save(job.ruleset), family))


def detection_power(
    runs: int, probability: Fraction, real: float, *, false_alarm_rate: float, tests: int
) -> float:
    """Return the chance that the test detects a share of ``real`` where ``probability`` is right.

    The result is exact: the chance that a binomial count of ``runs`` is none of the counts that pass. The
    ``false_alarm_rate`` is divided by ``tests``, the number of branches.
    """
    threshold = false_alarm_rate / tests
    mean = math.floor(runs * probability)
    # Tails shrink with the distance from the mean, so bisection finds both ends of the accepted counts.
    low = bisect.bisect_left(
        range(mean + 1), 1, key=lambda k: binomial_tail(k, runs, probability) >= threshold
    )
    above = range(mean, runs + 1)
    high = mean + bisect.bisect_left(above, 1, key=lambda k: binomial_tail(k, runs, probability) < threshold)
    log_p, log_q = math.log(real), math.log1p(-real)
    passing = math.fsum(
        math.exp(log_choose(runs, k) + k * log_p + (runs - k) * log_q) for k in range(low, high)
    )
    return max(0.0, 1 - passing)


def _chances(connections: int, shift: float) -> str:
    """Return the chance that a test of the shares of three endpoints finds the shift in one of them."""
    fair = Fraction(1, 3)
    odds = detection_power(connections, fair, float(fair) + shift, false_alarm_rate=FALSE_ALARM_RATE, tests=3)
    return (
        f"{connections} connections, false-alarm rate {FALSE_ALARM_RATE:g}: a share of 1/3 that is {shift:g}"
        f" too large is caught with probability {odds:.6f}"
    )


def main() -> int:
    """Print the result of the test for each subject; return 1 if any result is wrong.

    The drawn counts, which differ between runs, go to standard error.
    """
    parser = argparse.ArgumentParser(prog="python -m tests.lab.share_tests", description=__doc__)
    parser.add_argument("--connections", type=int, default=200_000, metavar="N", help="default: %(default)s")
    parser.add_argument("--shift", type=float, default=0.01, metavar="S", help="default: %(default)s")
    parser.add_argument("--subjects", default=",".join(SUBJECTS), metavar="A,B", help="default: all")
    parser.add_argument("--family", type=Family, choices=tuple(Family), default=Family.IP)
    options = parser.parse_args()
    print(_chances(options.connections, options.shift))
    worst = 0
    try:
        for subject in options.subjects.split(","):
            if subject not in SUBJECTS:
                raise InputError(f"unknown subject {subject!r}; known are {', '.join(SUBJECTS)}")
            for shift in (0.0, options.shift):
                worst = max(worst, _tell(subject, shift, options.connections, options.family))
    except (InputError, MachineError) as e:
        return print_error(e)
    return worst


def _tell(subject: str, shift: float, connections: int, family: Family) -> int:
    name, _ = SUBJECTS[subject]
    planted = f"{shift:+g} planted" if shift else "as translated"
    availability = backend(name).probe()
    if shift and name.startswith("iptables-"):
        return 0
    if not availability.ok:
        print(f"{subject:16} {planted:14} skipped: {availability.reason}")
        return 0
    try:
        drawn = draw(subject, family=family, connections=connections, shift=shift)
    except UnsupportedError as e:
        print(f"{subject:16} {planted:14} skipped: {str(e).splitlines()[0]}")
        return 0
    verdict = "unfair" if drawn.unfair else "fair"
    wrong = drawn.unfair != bool(shift)
    counts = " ".join(f"{count:7}" for count in drawn.tally.counts)
    print(f"{subject:16} {planted:14} {verdict}{' WRONG' * wrong}", flush=True)
    print(f"{subject:16} {planted:14} {counts}  least p {drawn.least_p:.1e}", file=sys.stderr)
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
