"""Old faults of the simulator and the tc program, put back: random rules and flows of stated seeds show them.

The faults of nftables are in :mod:`tests.kernel.test_bytecode`, those of the reader in
:mod:`tests.kernel.test_old_spellings`. Here each flow of the seed goes as simulated, until the fault is put
back into the simulator (and another backend shows it) or into the tc program.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

import translate.bpf.runtime
from backends.iptables.backend import IptablesBackend
from backends.model.contract import Backend, Job
from backends.model.flow import Flow
from backends.model.node import node_to_json
from backends.model.outcome import FlowResult
from backends.model.packet import GRE, Packet, Port, Tuple
from backends.nftables.backend import NftablesBackend
from backends.simulator import Simulation
from backends.simulator.chance.ports import PickedPort, Ports
from backends.simulator.conntrack import table
from backends.simulator.conntrack.skb import Skb
from backends.simulator.conntrack.tuples import tuple_of
from backends.simulator.hooks import answers
from backends.simulator.nat import binding, ranges
from backends.simulator.routing import ip6, scopes
from backends.simulator.trace import Manip
from backends.tc_ebpf import TcEbpfBackend
from harness.diff.backends import BACKENDS
from harness.diff.compare import compare
from harness.diff.result import ParityReport, Result
from harness.status import DONE, NOT_TESTED
from nfparity.cli.main import main
from tests.kernel.helpers.availability import require
from tests.lab.random.played import expected_flows, goes_another_way, node_of, random_job
from tests.lab.random.rules import random_rules
from translate.errors import UnsupportedError
from translate.ir import Family, Protocol
from translate.nft.legalise import draft

Patch = pytest.MonkeyPatch
OTHERS = range(60)

# -- the simulator -----------------------------------------------------------------------------------


def notrack_meets_answers(patch: Patch) -> None:
    patch.setattr(answers, "Skb", lambda *given, attached=False, **others: Skb(*given, **others))


def udplite_has_a_right_checksum(patch: Patch) -> None:
    right = table._sum_is_refused

    def refused(packet: Packet) -> bool:
        return packet.bad_checksum if packet.proto == Protocol.UDPLITE else right(packet)

    patch.setattr(table, "_sum_is_refused", refused)


def the_old_destination_is_hashed(patch: Patch) -> None:
    right = ranges._hashed

    def hashed(t: Tuple, addresses: Any, manip: Manip, family: Family, *, zone: int | None) -> int:
        return right(t, addresses, Manip.SOURCE, family, zone=zone)

    patch.setattr(ranges, "_hashed", hashed)


def redirect_takes_any_address(patch: Patch) -> None:
    link = scopes.Reach.LINK
    patch.setattr(ip6, "reach_of", lambda a: link if a in scopes.LINK_LOCAL else scopes.Reach(0))


def two_picked_ports_differ(patch: Patch) -> None:
    right = Ports.could_equal

    def could_equal(self: Ports, a: Port, b: Port) -> bool:
        both = isinstance(a, PickedPort) and isinstance(b, PickedPort)
        return a == b if both else right(self, a, b)

    patch.setattr(Ports, "could_equal", could_equal)


def gre_has_no_header(patch: Patch) -> None:
    def without_key(packet: Packet) -> Tuple | None:
        return Tuple(packet.src, packet.dst, GRE, 0, 0) if packet.proto == GRE else tuple_of(packet)

    patch.setattr(table, "tuple_of", without_key)
    patch.setattr(binding, "can_be_rewritten", lambda packet, *, source: True)


@dataclass(frozen=True)
class Fault:
    """A fault, and the ruleset and the flows that show it, by their seeds."""

    put_back: Callable[[Patch], None]
    rules: int
    flows: int
    family: Family = Family.IP


SIMULATED = (
    Fault(notrack_meets_answers, 109, 109, Family.IP6),
    Fault(udplite_has_a_right_checksum, 0, 0),
    Fault(udplite_has_a_right_checksum, 94, 94, Family.IP6),
    Fault(the_old_destination_is_hashed, 130, 130, Family.IP6),
    Fault(redirect_takes_any_address, 130, 130, Family.IP6),
    Fault(two_picked_ports_differ, 301, 20),
    Fault(gre_has_no_header, 35, 17),
    Fault(gre_has_no_header, 68, 3, Family.IP6),
)


# -- nftables ----------------------------------------------------------------------------------------


def test_notrack_that_nftables_applies_to_answers_is_shown(monkeypatch: Patch) -> None:
    nftables = NftablesBackend()
    require(nftables)
    made = scene(SIMULATED[0])
    with pytest.raises(UnsupportedError, match="notrack"):
        made.differences(nftables)
    monkeypatch.setattr(draft, "refused_answers", lambda program: ())
    assert made.differences(nftables) != []


def test_rules_that_nftables_refuses_are_not_called_parity(
    tmp_path: Path, monkeypatch: Patch, capsys: pytest.CaptureFixture[str]
) -> None:
    fault = SIMULATED[0]
    for name in ("iptables-legacy", "nftables"):
        require(BACKENDS[name]())
    (tmp_path / "rules").write_text(random_rules(fault.rules, fault.family))
    (tmp_path / "node.json").write_text(node_to_json(node_of(fault.family)))
    words = ["diff", str(tmp_path / "rules"), "--node", str(tmp_path / "node.json"), "--family", "ip6"]
    words += ["--random", "5", "--backends", "iptables-legacy,nftables"]
    assert main(words) == NOT_TESTED
    right = ParityReport.result
    wrong = {Result.NOT_TESTED: Result.PARITY}
    told = property(lambda report: wrong.get(right.__get__(report), right.__get__(report)))
    monkeypatch.setattr(ParityReport, "result", told)
    assert main(words) == DONE
    assert "parity" in capsys.readouterr().out


# -- the tc program ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Runtime:
    """A part of the runtime with a fault: words in it that are replaced."""

    part: str
    right: str
    wrong: str


UNKNOWN_PROTOCOLS = (Runtime("reject", "bad_checksum(skb, p, 1)", "bad_checksum(skb, p, 0)"),)
SILENT_TYPES = (Runtime("ipv4/answer", "ICMP_SILENT 0x1efe", "ICMP_SILENT 0x1838"),)
FROM_LOOPBACK = (Runtime("ipv4/route", "return leaves_as_loopback(*source, *oif) ? -1 : 0;", "return 0;"),)
ATTACHED = (
    Runtime("reject", "p->attached = !p->has_ct && p->ct_state == CT_UNTRACKED;", "p->attached = 0;"),
    Runtime("hooks", "p->attached = HAS_NOTRACK && is_about_untracked(skb, p);", "p->attached = 0;"),
)
UDPLITE = (
    Runtime("packet", "if (proto == PROTO_UDPLITE) {", "if (proto == PROTO_UDPLITE) {\n\t\treturn 0;"),
)
HASHED = (Runtime("ipv6/address", "source ? other.word[i] : swap32(made[i])", "other.word[i]"),)
REDIRECT = (
    Runtime("ipv6/route", "switch (reach_of(p->daddr))", "switch (is_of_link(p->daddr) ? OF_LINK : -1)"),
)
GRE_HEADER = (Runtime("packet", "p->proto == PROTO_GRE) {\n\t\tparse_gre", "0) {\n\t\tparse_gre"),)


@dataclass(frozen=True)
class TcFault:
    """A fault of the tc program, and the ruleset and the flows that show it, by their seeds."""

    name: str
    parts: tuple[Runtime, ...]
    rules: int
    flows: int
    family: Family = Family.IP


def tc_fault(*given: Any, slow: bool = True, **others: Any) -> object:
    return pytest.param(TcFault(*given, **others), marks=[pytest.mark.slow] if slow else [], id=given[0])


COMPILED = (
    tc_fault("REJECT answers unknown protocols", UNKNOWN_PROTOCOLS, 145, 11, slow=False),
    tc_fault("REJECT answers silent types", SILENT_TYPES, 145, 4),
    tc_fault("REJECT answers from loopback", FROM_LOOPBACK, 109, 109),
    tc_fault("NOTRACK meets answers", ATTACHED, 109, 109, Family.IP6),
    tc_fault("UDP-Lite has a right checksum", UDPLITE, 0, 0),
    tc_fault("the old destination is hashed", HASHED, 130, 130, Family.IP6),
    tc_fault("REDIRECT takes any address", REDIRECT, 130, 130, Family.IP6),
    tc_fault("GRE has no header", GRE_HEADER, 35, 17),
)


@dataclass(frozen=True)
class Scene:
    """A random ruleset, and random flows with what the simulator allows of each."""

    job: Job
    expected: tuple[tuple[Flow, FlowResult], ...]

    def differences(self, backend: Backend, level: int = 0) -> list[str]:
        """The differences of a backend, each of the flow that is named, except known ones."""
        alike = [pair for pair in self.expected if not goes_another_way(pair[0], backend.name)]
        with backend.open(replace(self.job, level=level)) as session:
            seen = list(session.replay(flow for flow, _ in alike))
        pairs = zip(alike, seen, strict=True)
        return [f"{flow.id}: {m}" for (flow, wanted), got in pairs for m in compare(flow, wanted, got)]

    def simulated_anew(self) -> Scene:
        """The same flows, with what the simulator says of them now."""
        simulation = Simulation(self.job)
        return replace(self, expected=tuple((flow, simulation.simulate(flow)) for flow, _ in self.expected))


def scene(fault: Fault | TcFault) -> Scene:
    job = random_job(fault.rules, fault.family, node_of(fault.family))
    return Scene(job, tuple(expected_flows(job, fault.flows)))


def named(fault: Fault) -> str:
    return f"{fault.put_back.__name__}-{fault.family}"


@pytest.mark.parametrize("fault", SIMULATED, ids=named)
def test_a_fault_of_the_simulator_is_shown(fault: Fault, monkeypatch: Patch) -> None:
    legacy = IptablesBackend("iptables-legacy")
    require(legacy)
    # The seed is where it is now; should the words change, another one shows it.
    for made in map(scene, (fault, *(replace(fault, rules=seed, flows=seed) for seed in OTHERS))):
        with monkeypatch.context() as patch:
            fault.put_back(patch)
            wrong = made.simulated_anew()
        if wrong != made and wrong.differences(legacy) != []:
            assert made.differences(legacy) == []
            return
    pytest.fail("no seed shows it")


@pytest.mark.parametrize("fault", COMPILED)
def test_a_fault_of_the_tc_program_is_shown(fault: TcFault, monkeypatch: Patch) -> None:
    backend = TcEbpfBackend()
    require(backend)
    right = translate.bpf.runtime.runtime_text

    def with_fault(name: str) -> str:
        text = right(name)
        for part in fault.parts:
            if part.part == name:
                assert text.count(part.right) == 1
                text = text.replace(part.right, part.wrong)
        return text

    # As above: should the words change, another seed shows it.
    for made in map(scene, (fault, *(replace(fault, rules=seed, flows=seed) for seed in OTHERS))):
        with monkeypatch.context() as patch:
            patch.setattr(translate.bpf.runtime, "runtime_text", with_fault)
            try:
                shown = made.differences(backend, 1) != []
            except UnsupportedError:
                continue
        if shown:
            assert made.differences(backend, 1) == []
            return
    pytest.fail("no seed shows it")
