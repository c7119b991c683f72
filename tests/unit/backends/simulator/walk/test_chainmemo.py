"""Chains that are remembered against the plain walk: a trace asks every rule of every packet."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterator
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backends.model.contract import Job
from backends.model.flow import Flow, Reply, Send, Step
from backends.model.node import node_from_json
from backends.model.outcome import Outcome
from backends.model.packet import Packet
from backends.simulator import Simulation
from backends.simulator.walk import chainmemo
from tests.lab.examples import examples
from translate.ir import Family, Field, Hook, Protocol, TableName, parse_address
from translate.read import read_ruleset

NODE = node_from_json(
    '{"interfaces": {"west": ["10.1.0.1/24"], "east": ["10.2.0.1/24"]}}',
    name="node",
)
CLIENTS = ("10.1.0.5", "10.1.0.6", "10.2.0.5")
SERVERS = ("10.2.0.5", "10.2.0.6", "10.1.0.1")
FEW = (
    *("", "-i west", "! -i east", "-o ea+", "-p udp", "! -p tcp"),
    *(f"-m mark --mark {m}" for m in ("0x0/0x1", "0x1/0x1", "0x2/0x2", "0x5")),
    *("-m conntrack --ctstate NEW", "-m conntrack ! --ctstate NEW,INVALID"),
)
MANY = (
    *("-s 10.1.0.5/32", "-d 10.2.0.6/32", "-p udp -m udp --dport 54", "-m connmark --mark 0x1/0x1"),
    *("-m conntrack --ctstate NEW,DNAT", "-m recent --name a --set", "-m recent --name a --rcheck"),
    *("-m statistic --mode nth --every 2 --packet 0", "-m conntrack --ctorigdst 10.2.0.5"),
)
MARKS = tuple(f"-j MARK --set-xmark {m}" for m in ("0x1/0x1", "0x2/0x3", "0x4/0x0", "0x0/0x2", "0x1/0x0"))
CONNMARKS = ("-j CONNMARK --set-xmark 0x1/0x1", "-j CONNMARK --restore-mark", "-j CONNMARK --save-mark")
ENDS = ("", "-j DROP", "-j ACCEPT", "-j RETURN")


def ruleset(draw: random.Random) -> str:
    """Chains most of whose rules ask little, so that most of the chains are remembered."""
    chains = ("one", "two", "three")
    lines = ["*mangle", *(f":{hook} ACCEPT [0:0]" for hook in ("PREROUTING", "FORWARD", "INPUT"))]
    lines += [f":{chain} - [0:0]" for chain in chains]
    for place, chain in enumerate(("PREROUTING", "FORWARD", "INPUT", *chains)):
        calls = [f"-{how} {to}" for to in chains[max(0, place - 2) :] for how in "jjg"] if place < 5 else []
        for _ in range(draw.randint(1, 4)):
            match = draw.choice(MANY if draw.random() < 0.08 else FEW)
            if chain in ("PREROUTING", "INPUT") and "-o" in match:
                match = "! -i east"
            targets = MARKS if draw.random() < 0.5 else (*calls, *calls, *ENDS)
            target = draw.choice(CONNMARKS if draw.random() < 0.05 else targets)
            lines.append(f"-A {chain} {match} {target}".replace("  ", " ").rstrip())
    nat = ["*nat", *(f":{hook} ACCEPT [0:0]" for hook in ("PREROUTING", "POSTROUTING"))]
    nat += ["-A PREROUTING -m mark --mark 0x1/0x1 -p udp -j DNAT --to-destination 10.2.0.6"]
    nat += ["-A POSTROUTING -m mark ! --mark 0x2/0x2 -j RETURN", "-A POSTROUTING -o east -j MASQUERADE"]
    return "\n".join([*lines, "COMMIT", *nat, "COMMIT", ""])


def flow(draw: random.Random) -> Flow:
    steps: list[Step] = []
    for _ in range(draw.choice((1, 1, 2))):
        packet = Packet(
            family=Family.IP,
            src=parse_address(Family.IP, draw.choice(CLIENTS)),
            dst=parse_address(Family.IP, draw.choice(SERVERS)),
            proto=draw.choice((Protocol.UDP, Protocol.TCP)),
            sport=4000,
            dport=draw.choice((53, 54)),
        )
        steps.append(Send(packet=packet, entry="east" if packet.src >> 8 & 0xFF == 2 else "west"))
        if draw.random() < 0.5:
            steps.append(Reply())
    return Flow(id="flow", steps=tuple(steps))


Ways = dict[tuple[Outcome, ...], Fraction]


def both_ways(seed: int) -> Iterator[tuple[Ways, Ways]]:
    """Return the outcomes of each flow with and without chains that remember earlier packets."""
    draw = random.Random(seed)
    simulation = Simulation(Job(rules=read_ruleset(ruleset(draw).encode(), name="rules"), node=NODE))
    for _ in range(8):
        one = flow(draw)
        plain: Ways = defaultdict(Fraction)
        for branch in simulation.trace(one):
            plain[tuple(s.outcome for s in branch.steps if s.outcome is not None)] += branch.probability
        yield {b.outcomes: b.probability for b in simulation.simulate(one).branches}, plain


@settings(max_examples=examples(150), deadline=None)
@given(st.integers(0, 1 << 32))
def test_what_is_remembered_changes_no_outcome(seed: int) -> None:
    for remembered, plain in both_ways(seed):
        assert remembered == plain


def _asks_nothing_of(field: Field) -> Callable:
    def planted(real: Callable) -> Callable:
        def asked(rule):
            fields = real(rule)
            return None if fields is None else fields - {field}

        return asked

    return planted


def _the_last_rule_does_not_count(real: Callable) -> Callable:
    def reached(name, written):
        yield from list(real(name, written))[:-1]

    return reached


def _chains_that_are_called_do_not_count(real: Callable) -> Callable:
    return lambda name, written: iter(written[name].rules if name in written else ())


def _whatever_is_asked(real: Callable) -> Callable:
    return lambda rule: (real(rule) or set()) & chainmemo._FEW.keys()


def _forgets_the_mark(real: Callable) -> Callable:
    return lambda self, key, decision, mark: real(self, key, decision, 0)


def _forgets_the_decision(real: Callable) -> Callable:
    return lambda self, key, decision, mark: real(self, key, None, mark)


FAULTS = {
    "the in-device is not asked": ("_fields_read", _asks_nothing_of(Field.IIF)),
    "the out-device is not asked": ("_fields_read", _asks_nothing_of(Field.OIF)),
    "the protocol is not asked": ("_fields_read", _asks_nothing_of(Field.L4PROTO)),
    "the state is not asked": ("_fields_read", _asks_nothing_of(Field.CT_STATE)),
    "the last rule is not asked": ("_reached", _the_last_rule_does_not_count),
    "called chains are not asked": ("_reached", _chains_that_are_called_do_not_count),
    "chains are remembered that ask more": ("_fields_read", _whatever_is_asked),
    "the mark is lost": ("ChainMemo.keep", _forgets_the_mark),
    "the decision is lost": ("ChainMemo.keep", _forgets_the_decision),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_seen(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name, planted = FAULTS[fault]
    owner, _, attribute = name.rpartition(".")
    place = getattr(chainmemo, owner) if owner else chainmemo
    monkeypatch.setattr(place, attribute, planted(getattr(place, attribute)))
    assert any(remembered != plain for seed in range(400) for remembered, plain in both_ways(seed))


def test_the_mark_of_one_packet_is_not_that_of_another() -> None:
    """No rule asks for the mark or sets it, and yet it is part of what is remembered."""
    text = "*filter\n:OUTPUT ACCEPT [0:0]\n-A OUTPUT -o west\n-A OUTPUT -p tcp -j DROP\nCOMMIT\n"
    simulation = Simulation(Job(rules=read_ruleset(text.encode(), name="rules"), node=NODE))
    src, dst = (parse_address(Family.IP, a) for a in ("10.2.0.1", "10.2.0.5"))
    for mark in (1, 2, 1):
        packet = Packet(family=Family.IP, src=src, dst=dst, proto=17, sport=9, dport=53, mark=mark)
        (way,) = simulation.simulate(Flow(id="flow", steps=(Send(packet=packet, entry=None),))).branches
        assert way.outcomes[0].mark == mark


def test_what_kube_proxy_asks_of_every_packet_is_remembered() -> None:
    text = "\n".join(
        (
            "*filter",
            ":FORWARD ACCEPT [0:0]",
            ":KUBE-FORWARD - [0:0]",
            "-A FORWARD -j KUBE-FORWARD",
            "-A KUBE-FORWARD -m conntrack --ctstate INVALID -j DROP",
            "-A KUBE-FORWARD -m mark --mark 0x4000/0x4000 -j ACCEPT",
            "-A KUBE-FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT",
            "COMMIT",
            "",
        )
    )
    simulation = Simulation(Job(rules=read_ruleset(text.encode(), name="rules"), node=NODE))
    draw = random.Random(1)
    for _ in range(20):
        simulation.simulate(flow(draw))
    ((table, _),) = [t for t in simulation._prepared.at[Hook.FORWARD] if t[0].name is TableName.FILTER]
    memo = table.prepared["FORWARD"].memo
    assert memo is not None
    assert 1 <= len(memo.results) <= 3
