"""The index against the plain walk: a trace asks every rule, a simulation only those that are left."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backends.model.contract import Job
from backends.model.flow import Flow, Reply, Send, Step
from backends.model.node import node_from_json
from backends.model.outcome import Outcome
from backends.model.packet import Packet, PortClass
from backends.simulator import RuleVisited, Simulation
from backends.simulator.conntrack.skb import Skb
from backends.simulator.matching.view import View
from backends.simulator.routing.router import router_of
from backends.simulator.walk import index
from tests.lab.examples import examples
from translate.ir import Family, Field, FieldTest, Hook, Protocol, parse_address
from translate.read import read_ruleset

pytestmark = pytest.mark.usefixtures("every_chain_indexed")

NODE = node_from_json(
    '{"interfaces": {"west": ["10.1.0.1/24"], "east": ["10.2.0.1/24"]}}',
    name="node",
)
ADDRESSES = ("10.1.0.5", "10.1.0.6", "10.2.0.5", "10.2.0.6", "10.2.0.7")
PREFIXES = (*(f"{a}/32" for a in ADDRESSES), "10.2.0.4/30", "10.2.0.0/24", "10.1.0.0/24")
PORTS = (53, 54)
LOOKS = (
    *(f"-s {p}" for p in PREFIXES),
    *(f"-d {p}" for p in PREFIXES),
    *(f"! -d {p}" for p in PREFIXES[:4]),
    *("-i west", "! -i west", "-i we+", "-i east"),
)
UDP = (
    *(f"-m udp --dport {p}" for p in ("53", "54", "52:55", "4000", "4002", "4001:4003", "1:65535")),
    *(f"-m udp ! --dport {p}" for p in ("53", "4001")),
    *(f"-m udp --sport {p}" for p in ("4000", "4001", "53")),
)
MATCHES = (
    *(f"-m mark --mark {m}" for m in ("0x0", "0x1", "0x2/0x2")),
    *("-m conntrack --ctstate NEW", "-m conntrack ! --ctstate NEW,DNAT"),
    *(f"-m conntrack --ctorigdst {a}" for a in ADDRESSES),
    *(
        "-m multiport --dports 53,4002",
        "-m multiport --dports 54,4001:65535",
        "-m multiport --sports 4000,4001",
    ),
    *("-m recent --name a --set --rsource", "-m recent --name a --rcheck --rsource"),
    "-m recent --name a --remove --rdest",
)
CHANCE = (
    "-m statistic --mode random --probability 0.25000000000",
    "-m statistic --mode nth --every 2 --packet 0",
)
TARGETS = (
    *("", "-j DROP", "-j RETURN", "-j one", "-j two", "-g two"),
    *(f"-j MARK --set-xmark {m}" for m in ("0x1/0xf", "0x2/0x2", "0x4/0x0", "0x10/0x0", "0x20/0x0")),
)


def ruleset(draw: random.Random) -> str:
    """Chains long enough to be indexed; two of their rules draw chance, in any place among the tests."""
    lines = ["*mangle", *(f":{c} ACCEPT [0:0]" for c in ("PREROUTING", "FORWARD", "POSTROUTING"))]
    lines += [":one - [0:0]", ":two - [0:0]"]
    chances = list(CHANCE)
    for chain in ("PREROUTING", "FORWARD", "one", "two"):
        for _ in range(draw.randint(2, 9)):
            matches = draw.sample(MATCHES, draw.choice((0, 1, 1, 2)))
            if chances and draw.random() < 0.1:
                matches.insert(draw.randint(0, len(matches)), chances.pop())
            target = draw.choice(TARGETS)
            if chain == "two" or (chain == "one" and "one" in target):
                target = target if "-j one" not in target and "two" not in target else "-j DROP"
            words = [f"-A {chain}"]
            if draw.random() < 0.35:
                words.append(draw.choice(LOOKS))
            ports = draw.random() < 0.25
            if ports or any("multiport" in m for m in matches):
                words.append("-p udp")
            if ports:
                words.append(draw.choice(UDP))
            lines.append(" ".join((*words, *matches, target)).rstrip())
    nat = ["*nat", *(f":{c} ACCEPT [0:0]" for c in ("PREROUTING", "POSTROUTING"))]
    for address in draw.sample(ADDRESSES, 4):
        nat.append(f"-A PREROUTING -d {address}/32 -p udp -j DNAT --to-destination {draw.choice(ADDRESSES)}")
    nat.append("-A POSTROUTING -s 10.1.0.5/32 -p udp -j MASQUERADE --to-ports 4000-4003 --random")
    return "\n".join([*lines, "COMMIT", *nat, "COMMIT", ""])


def flow(draw: random.Random) -> Flow:
    steps: list[Step] = []
    for _ in range(draw.randint(1, 3)):
        src, dst = (parse_address(Family.IP, draw.choice(a)) for a in (ADDRESSES[:2], ADDRESSES[2:4]))
        packet = Packet(
            family=Family.IP,
            src=src,
            dst=dst,
            proto=Protocol.UDP,
            sport=draw.choice((4000, 4001)),
            dport=draw.choice(PORTS),
        )
        steps.append(Send(packet=packet, entry="west"))
        if draw.random() < 0.6:
            steps.append(Reply())
    return Flow(id="flow", steps=tuple(steps))


Ways = dict[tuple[Outcome, ...], Fraction]


def both_ways(text: str, flows: list[Flow]) -> Iterator[tuple[Ways, Ways]]:
    """Return the outcomes of each flow by the index and by the plain walk."""
    job = Job(rules=read_ruleset(text.encode(), name="rules"), node=NODE)
    simulation = Simulation(job)
    for one in flows:
        indexed = {b.outcomes: b.probability for b in simulation.simulate(one).branches}
        plain: Ways = {}
        for branch in simulation.trace(one):
            outcomes = tuple(s.outcome for s in branch.steps if s.outcome is not None)
            plain[outcomes] = plain.get(outcomes, Fraction(0)) + branch.probability
        yield indexed, plain


def drawn(seed: int) -> tuple[str, list[Flow]]:
    draw = random.Random(seed)
    return ruleset(draw), [flow(draw) for _ in range(4)]


@settings(max_examples=examples(75), deadline=None)
@given(st.integers(0, 1 << 32))
def test_the_index_changes_no_outcome(seed: int) -> None:
    for indexed, plain in both_ways(*drawn(seed)):
        assert indexed == plain


def _files_negated(real: Callable) -> Callable:
    def keys(rule):
        tests = tuple(replace(t, negated=False) if isinstance(t, FieldTest) else t for t in rule.tests)
        return real(replace(rule, tests=tests))

    return keys


def _files_behind_chance(real: Callable) -> Callable:
    def keys(rule):
        return real(replace(rule, tests=tuple(t for t in rule.tests if isinstance(t, FieldTest))))

    return keys


def _forgets_some(real: Callable) -> Callable:
    def candidates(self, view):
        found = real(self, view)
        return [p for p in found if p not in self.unfiled[-1:]]

    return candidates


def _loses_order(real: Callable) -> Callable:
    return lambda self, view: list(reversed(real(self, view)))


def _skips_picked_ports(real: Callable) -> Callable:
    return lambda self, view: () if isinstance(self.read(view), PortClass) else real(self, view)


def _takes_prefixes_for_points(real: Callable) -> Callable:
    return lambda self, view: self.by_block.get(self.read(view), ())


FAULTS = {
    "negated tests are filed": ("_keys", _files_negated),
    "tests behind chance are filed": ("_keys", _files_behind_chance),
    "a rule that is in no file is forgotten": ("ChainIndex.candidates", _forgets_some),
    "the rules are asked in another order": ("ChainIndex.candidates", _loses_order),
    "a picked port is in no file": ("_File.find", _skips_picked_ports),
    "a prefix is found by its first address alone": ("_File.find", _takes_prefixes_for_points),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_in_the_index_is_seen(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name, planted = FAULTS[fault]
    owner, _, attribute = name.rpartition(".")
    place = getattr(index, owner) if owner else index
    monkeypatch.setattr(place, attribute, planted(getattr(place, attribute)))
    assert any(indexed != plain for seed in range(300) for indexed, plain in both_ways(*drawn(seed)))


def test_a_mark_that_a_rule_sets_must_not_be_filed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "_CONSTANT", index._CONSTANT | {Field.MARK})
    assert any(indexed != plain for seed in range(300) for indexed, plain in both_ways(*drawn(seed)))


def kube_services(count: int) -> Job:
    rules = [
        f"-A PREROUTING -d 10.96.{i >> 8}.{i & 255}/32 -p udp --dport 53 -j ACCEPT" for i in range(count)
    ]
    text = "\n".join(
        ["*nat", ":PREROUTING ACCEPT [0:0]", *rules, "-A PREROUTING -m connmark --mark 0x1", "COMMIT\n"]
    )
    return Job(rules=read_ruleset(text.encode(), name="rules"), node=NODE)


def test_of_many_services_one_is_asked() -> None:
    (table,) = kube_services(1000).ruleset.tables
    made = index.index_of(table.chains[0].rules)
    assert made is not None
    packet = Packet(
        family=Family.IP, src=1, dst=parse_address(Family.IP, "10.96.1.7"), proto=17, sport=9, dport=53
    )
    view = View(Skb(packet), Hook.PREROUTING, "west", "", router_of(NODE, Family.IP))
    assert made.candidates(view) == [263, 1000]


def test_a_trace_tells_of_every_rule() -> None:
    src, dst = (parse_address(Family.IP, a) for a in ("10.1.0.5", "10.2.0.5"))
    send = Send(packet=Packet(family=Family.IP, src=src, dst=dst, proto=17, sport=9, dport=53), entry="west")
    (branch,) = Simulation(kube_services(20)).trace(Flow(id="flow", steps=(send,)))
    visits = [e for e in branch.steps[0].events if isinstance(e, RuleVisited)]
    assert [(v.index, v.matched) for v in visits] == [(i, False) for i in range(1, 22)]
