"""``-m time`` in the simulator, compared with ``time_mt`` written down once more from its options."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest

from backends.model.clock import has_time, time_from_text, time_to_text
from backends.model.contract import Job
from backends.model.flow import Again, Flow, Pause, Reply, Send
from backends.model.node import Address, Interface, Node
from backends.model.outcome import Verdict
from backends.model.packet import Packet
from backends.simulator.simulate import Simulation
from translate.ir import Family, Protocol, parse_address
from translate.read import read_ruleset

NODE = Node(
    tuple(
        Interface(name, (Address(Family.IP, parse_address(Family.IP, address), 24),))
        for name, address in (("eth0", "10.0.0.254"), ("pod0", "10.1.0.254"))
    )
)
NAMES = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


@dataclass(frozen=True, kw_only=True)
class Options:
    """The values of ``struct xt_time_info``."""

    date_start: int
    date_stop: int
    start: int
    stop: int
    weekdays: frozenset[int]
    monthdays: frozenset[int]
    contiguous: bool

    def words(self) -> str:
        def of_day(seconds: int) -> str:
            return str(timedelta(seconds=seconds))

        return " ".join(
            (
                f"--datestart {time_to_text(self.date_start)} --datestop {time_to_text(self.date_stop)}",
                f"--timestart {of_day(self.start)} --timestop {of_day(self.stop)}",
                f"--weekdays {','.join(NAMES[day - 1] for day in sorted(self.weekdays))}",
                f"--monthdays {','.join(map(str, sorted(self.monthdays)))}",
                "--contiguous" if self.contiguous else "",
            )
        )

    def match(self, stamp: int) -> bool:
        """Return what ``time_mt`` returns, in its order."""
        if not self.date_start <= stamp <= self.date_stop:
            return False
        moment = datetime.fromtimestamp(stamp, UTC)
        seconds = stamp % 86400
        if self.start < self.stop:
            if not self.start <= seconds <= self.stop:
                return False
        else:
            if self.stop < seconds < self.start:
                return False
            if self.contiguous and seconds <= self.stop:
                moment -= timedelta(days=1)
        return moment.isoweekday() in self.weekdays and moment.day in self.monthdays


def drawn(draw: random.Random) -> tuple[Options, list[int]]:
    """Return options and times around the ends of their intervals."""
    first = time_from_text("2026-01-01T00:00:00") + draw.randrange(100 * 86400)
    last = first + draw.randrange(40 * 86400)
    start, stop = (draw.choice((0, 1, 43200, 86398, 86399, draw.randrange(86400))) for _ in range(2))
    options = Options(
        date_start=first,
        date_stop=last,
        start=start,
        stop=stop,
        weekdays=frozenset(draw.sample(range(1, 8), draw.randint(1, 7))),
        monthdays=frozenset(draw.sample(range(1, 32), draw.choice((5, 15, 30, 31)))),
        contiguous=start >= stop and draw.random() < 0.7,
    )
    ends = [first - 1, first, last, last + 1]
    for day in draw.sample(
        range(first // 86400, last // 86400 + 1), min(6, last // 86400 - first // 86400 + 1)
    ):
        ends += [day * 86400 + end + by for end in (start, stop, 0, 86399) for by in (-1, 0, 1)]
    return options, ends


def packet(time: int | None) -> Packet:
    src, dst = (parse_address(Family.IP, text) for text in ("10.0.0.1", "10.1.0.1"))
    return Packet(family=Family.IP, src=src, dst=dst, proto=Protocol.UDP, sport=1000, dport=53, time=time)


def simulation(*rules: str, now: float = 0) -> Simulation:
    text = "\n".join(("*raw", ":PREROUTING ACCEPT [0:0]", *rules, "COMMIT", ""))
    ruleset = read_ruleset(text.encode(), name="rules", family=Family.IP)
    return Simulation(Job(rules=ruleset, node=NODE), now=lambda: now)


def verdicts(simulated: Simulation, *steps: Send | Reply | Again | Pause) -> list[Verdict]:
    (branch,) = simulated.simulate(Flow(id="flow", steps=steps)).branches
    return [outcome.verdict for outcome in branch.outcomes]


@pytest.mark.parametrize("seed", range(40))
def test_as_the_kernel(seed: int) -> None:
    options, times = drawn(random.Random(seed))
    simulated = simulation(f"-A PREROUTING -m time {options.words()} -j DROP")
    for time in times:
        (verdict,) = verdicts(simulated, Send(packet=packet(time), entry="eth0"))
        assert (verdict is Verdict.DROP) == options.match(time), time_to_text(time)


def test_the_draws_match_and_do_not() -> None:
    results = [
        options.match(time)
        for seed in range(40)
        for options, times in (drawn(random.Random(seed)),)
        for time in times
    ]
    assert min(results.count(True), results.count(False)) > 100


def test_pauses_bring_the_clock_on() -> None:
    simulated = simulation("-A PREROUTING -m time --timestart 12:00:10 --timestop 12:00:20 -j DROP")
    first = Send(packet=packet(time_from_text("2026-01-05T12:00:09")), entry="eth0")
    other = Send(packet=packet(None), entry="eth0")
    steps = (first, Pause(seconds=0.5), Again(), Pause(seconds=0.5), other, Pause(seconds=11), Again())
    dropped = [verdict is Verdict.DROP for verdict in verdicts(simulated, *steps)]
    assert dropped == [False, False, True, False]


def test_the_present_is_the_time_of_a_flow_without_one() -> None:
    rule = "-A PREROUTING -m time --datestart 2026-01-05 -j DROP"
    start = time_from_text("2026-01-05T00:00:00")
    for now, expected in ((start - 0.5, False), (start, True)):
        (verdict,) = verdicts(simulation(rule, now=now), Send(packet=packet(None), entry="eth0"))
        assert (verdict is Verdict.DROP) is expected


def test_an_answer_of_the_node_has_the_time_of_its_packet() -> None:
    text = (
        "*filter\n:FORWARD ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n-A FORWARD -j REJECT\n"
        "-A OUTPUT -m time --datestart 2030 -j DROP\nCOMMIT\n"
    )
    simulated = Simulation(Job(rules=read_ruleset(text.encode(), name="rules"), node=NODE), now=lambda: 0)
    flow = Flow(id="flow", steps=(Send(packet=packet(time_from_text("2031-01-01T00:00:00")), entry="eth0"),))
    assert has_time(flow)
    assert simulated.simulate(flow).branches
