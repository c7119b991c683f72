"""Ways that take off where they branch against ways followed from the beginning, as a trace's are."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backends.model.contract import Job
from backends.model.flow import Again, Flow, Reply, Send, Step
from backends.model.node import node_from_json
from backends.model.outcome import Outcome
from backends.model.packet import Packet
from backends.simulator import Simulation
from backends.simulator.conntrack.connection import ConntrackEntry
from backends.simulator.conntrack.skb import Skb
from backends.simulator.hooks.stack import Stack
from backends.simulator.matching.memory import Memory
from backends.simulator.walk.checkpoint import Checkpoint
from backends.simulator.walk.fast import FastWalk
from tests.lab.examples import examples
from translate.ir import Family, Protocol, parse_address
from translate.read import read_ruleset

NODE = node_from_json(
    '{"interfaces": {"west": ["10.1.0.1/24"], "east": ["10.2.0.1/24"]}}',
    name="node",
)
CLIENTS = ("10.1.0.5", "10.1.0.6")
SERVERS = ("10.2.0.5", "10.2.0.6", "10.2.0.7", "10.1.0.5", "10.1.0.1")
MATCHES = (
    *("", "", "-s 10.1.0.5/32", "-m mark --mark 0x1/0x1"),
    *("-m connmark --mark 0x1/0x1", "-m recent --name a --rcheck --rsource", "-m recent --name a --set"),
    *("-p tcp -m tcp --dport 80", "-d 10.2.0.0/30"),
)
TARGETS = (
    *("-j MARK --set-xmark 0x1/0x1", "-j CONNMARK --set-xmark 0x1/0x1", "-j CONNMARK --save-mark", "-j two"),
    *("-j three", "-g three", "-j RETURN", "-j MARK --set-xmark 0x1/0x0", "-j CONNMARK --restore-mark"),
)
HALF = "-m statistic --mode random --probability 0.50000000000"


def ruleset(draw: random.Random) -> str:
    """Chance in a nat table, between rules that change and remember things."""
    nat = ["*nat", *(f":{c} ACCEPT [0:0]" for c in ("PREROUTING", "OUTPUT", "POSTROUTING"))]
    nat += [":one - [0:0]", ":two - [0:0]", ":three - [0:0]"]
    nat += ["-A PREROUTING -j one", "-A OUTPUT -j one"]
    for chain, others in (("one", TARGETS), ("two", TARGETS[:3]), ("three", TARGETS[:3])):
        for _ in range(draw.randint(1, 3)):
            nat.append(f"-A {chain} {draw.choice(MATCHES)} {draw.choice(others)}")
        to = draw.choice(SERVERS)
        nat.append(f"-A {chain} {HALF} -p {draw.choice(('tcp', 'udp'))} -j DNAT --to-destination {to}")
    nat += [f"-A PREROUTING {HALF} -j MARK --set-xmark 0x4/0x4"]
    nat += ["-A POSTROUTING -m mark --mark 0x1/0x1 -j MASQUERADE"]
    if draw.random() < 0.3:
        nat.append(f"-A POSTROUTING {HALF} -j RETURN")
    nat += ["-A POSTROUTING -p udp -m mark --mark 0x4/0x4 -j MASQUERADE --random"]
    table = ["*filter", ":INPUT ACCEPT [0:0]", ":FORWARD ACCEPT [0:0]", ":OUTPUT ACCEPT [0:0]"]
    for _ in range(draw.randint(0, 2)):
        target = draw.choice(("DROP", "MARK --set-xmark 0x8/0x8", "REJECT"))
        table.append(f"-A FORWARD {draw.choice(MATCHES)} -j {target}")
    return "\n".join([*nat, "COMMIT", *table, "COMMIT", ""])


def flow(draw: random.Random) -> Flow:
    steps: list[Step] = []
    for _ in range(draw.choice((1, 1, 2))):
        proto = draw.choice((Protocol.TCP, Protocol.UDP))
        packet = Packet(
            family=Family.IP,
            src=parse_address(Family.IP, draw.choice(CLIENTS)),
            dst=parse_address(Family.IP, draw.choice(SERVERS[:3])),
            proto=proto,
            sport=4000,
            dport=80,
        )
        entry = None if draw.random() < 0.25 else "west"
        steps.append(Send(packet=packet, entry=entry))
        if draw.random() < 0.6:
            steps.append(Reply())
            if draw.random() < 0.5:
                steps.append(Again())
    return Flow(id="flow", steps=tuple(steps))


Ways = dict[tuple[Outcome, ...], Fraction]


def both_ways(text: str, one: Flow) -> tuple[Ways, Ways]:
    """Return the branches of a flow that begin at a checkpoint, and those that begin at the start."""
    simulation = Simulation(Job(rules=read_ruleset(text.encode(), name="rules"), node=NODE))
    late: Ways = defaultdict(Fraction)
    for branch in simulation.simulate(one).branches:
        late[branch.outcomes] += branch.probability
    early: Ways = defaultdict(Fraction)
    for traced in simulation.trace(one):
        outcomes = tuple(s.outcome for s in traced.steps if s.outcome is not None)
        early[outcomes] += traced.probability
    return late, early


def drawn(seed: int) -> Iterator[tuple[Ways, Ways]]:
    draw = random.Random(seed)
    text = ruleset(draw)
    for _ in range(3):
        yield both_ways(text, flow(draw))


@settings(max_examples=examples(150), deadline=None)
@given(st.integers(0, 1 << 32))
def test_where_a_way_takes_off_changes_no_outcome(seed: int) -> None:
    for late, early in drawn(seed):
        assert late == early
        assert sum(late.values()) == 1


NTH = "-m statistic --mode nth --every 3 --packet 0"


@pytest.mark.parametrize("second", ["-m statistic --mode random --probability 0.25", NTH])
def test_a_rule_that_draws_twice_has_a_checkpoint_for_its_first_draw(second: str) -> None:
    text = f"*nat\n:PREROUTING ACCEPT [0:0]\n-A PREROUTING {HALF} {second} -j DNAT --to 10.2.0.5\nCOMMIT\n"
    packet = Packet(family=Family.IP, src=0x0A010005, dst=0x0A020006, proto=17, sport=9, dport=53)
    late, early = both_ways(text, Flow(id="flow", steps=(Send(packet=packet, entry="west"),)))
    assert late == early
    assert sorted(late.values()) in ([Fraction(1, 8), Fraction(7, 8)], [Fraction(1, 6), Fraction(5, 6)])


def _resumes_one_rule_late(real: Callable) -> Callable:
    def resume(self, start):
        *outer, inner = start.rest
        return real(self, Checkpoint(start.table, start.view, (*outer, inner[1:])))

    return resume


def _forgets_the_callers(real: Callable) -> Callable:
    return lambda self, start: real(self, Checkpoint(start.table, start.view, start.rest[-1:]))


def _without_mark(real: Callable) -> Callable:
    def split(self):
        copy = real(self)
        copy.mark = 0
        return copy

    return split


def _also_later(real: Callable) -> Callable:
    def is_young(self):
        self.first = True
        return True

    return is_young


FAULTS: dict[str, tuple[type, str, Callable]] = {
    "the rule that draws is not asked again": (FastWalk, "resume", _resumes_one_rule_late),
    "calling chains are forgotten": (FastWalk, "resume", _forgets_the_callers),
    "two ways share a connection": (ConntrackEntry, "split", lambda real: lambda self: self),
    "two ways share a packet": (Skb, "split", lambda real: lambda self: self),
    "the mark is lost": (Skb, "split", _without_mark),
    "what is remembered is left behind": (Memory, "is_blank", lambda real: lambda self: True),
    "steps before this one are left behind": (Stack, "_is_young", _also_later),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_seen(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, name, planted = FAULTS[fault]
    monkeypatch.setattr(owner, name, planted(getattr(owner, name)))

    def seen(seed: int) -> bool:
        try:
            return any(late != early for late, early in drawn(seed))
        except (AssertionError, LookupError):
            return True

    assert any(seen(seed) for seed in range(300))


def ladder(endpoints: int) -> str:
    """A service of kube-proxy's kind, each endpoint as likely as any other."""
    rules = [
        f"-A PREROUTING -m statistic --mode random --probability {1 / left:.11f}"
        f" -p udp -j DNAT --to-destination 10.2.0.{left}"
        for left in range(endpoints, 1, -1)
    ]
    return "\n".join(["*nat", ":PREROUTING ACCEPT [0:0]", *rules, "COMMIT", ""])


def test_the_rules_of_a_ladder_are_asked_about_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each way begins at the draw that it is the other answer to: n ways ask about 2n rules, not n²/2."""
    asked = Counter[str]()
    real = Memory.is_blank

    def counted(self):
        asked["draws"] += 1
        return real(self)

    monkeypatch.setattr(Memory, "is_blank", counted)
    packet = Packet(family=Family.IP, src=0x0A010005, dst=0x0A020002, proto=17, sport=9, dport=53)
    one = Flow(id="flow", steps=(Send(packet=packet, entry="west"),))
    job = Job(rules=read_ruleset(ladder(40).encode(), name="rules"), node=NODE)
    started: list[int] = []
    resume = FastWalk.resume

    def watched(self, start):
        started.append(len(start.rest[-1]))
        return resume(self, start)

    monkeypatch.setattr(FastWalk, "resume", watched)
    ways = Simulation(job).simulate(one).branches
    assert len(ways) == 39
    assert asked["draws"] == 39
    assert sorted(started, reverse=True) == list(range(39, 0, -1))
    assert sum((way.probability for way in ways), Fraction(0)) == 1
