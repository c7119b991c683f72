"""Rules that are moved together, and packets for which others must not be."""

from __future__ import annotations

import pytest

import translate.passes.gather
from tests.lab.random.rules import random_rules
from tests.unit.translate.helpers.rules import program
from tests.unit.translate.passes.helpers.evaluate import State, run
from translate.ir import ConnectionState, Family, Field, parse_address
from translate.passes import lower
from translate.passes.gather import gather
from translate.passes.lookup import Candidate
from translate.read import read_ruleset

BASE = "filter/FORWARD"


def by_address(n: int, port: int, target: str = "REJECT --reject-with icmp-port-unreachable") -> str:
    return f"-A FORWARD -d 10.96.0.{n}/32 -p tcp -m tcp --dport {port} -j {target}"


def by_port(port: int, target: str = "DROP") -> str:
    return f"-A FORWARD -p tcp -m tcp --dport {port} -m addrtype --dst-type LOCAL -j {target}"


def packet(n: int, port: int, mark: int = 0, saddr: str = "10.244.0.9") -> State:
    return State.of(
        {
            Field.SADDR: parse_address(Family.IP, saddr),
            Field.DADDR: parse_address(Family.IP, f"10.96.0.{n}"),
            Field.L4PROTO: 6,
            Field.FRAGMENT: 0,
            Field.SPORT: 1000,
            Field.DPORT: port,
            Field.FIB_DADDR_TYPE: 2,
            Field.MARK: mark,
            Field.IIF: "eth0",
            Field.CT_STATE: int(ConnectionState.NEW),
        }
    )


@pytest.mark.parametrize(
    ("rules", "sent"),
    [
        # A packet to 10.96.0.2:80 that matches the one by port is dropped, and not rejected.
        ([by_address(1, 80), by_port(80), by_address(2, 80)], packet(2, 80)),
        # Both mark, and that does not end anything: the last one's bit counts.
        (
            [
                by_address(1, 80, "one"),
                "-A FORWARD -p tcp -m tcp --dport 80 -j two",
                by_address(2, 80, "one"),
                "-A FORWARD -m mark --mark 0x1 -j DROP",
                "-A one -j MARK --set-mark 1",
                "-A two -j MARK --set-mark 2",
            ],
            packet(2, 80),
        ),
        # What tells the rules apart is the mark, which the one between changes.
        (
            [
                "-A FORWARD -m mark --mark 0x1 -s 10.244.0.9/32 -j DROP",
                "-A FORWARD -m mark --mark 0x2 -j one",
                "-A FORWARD -m mark --mark 0x3 -s 10.244.0.9/32 -j DROP",
                "-A one -j MARK --set-mark 3",
            ],
            packet(1, 80, mark=2),
        ),
        # The second rule of a port comes behind a rule that accepts what it rejects.
        ([by_address(1, 80), "-A FORWARD -s 10.244.0.9/32 -j ACCEPT", by_address(2, 80)], packet(2, 80)),
    ],
    ids=["another verdict", "effects", "marks", "another field"],
)
def test_rules_that_a_packet_could_tell_stay_in_their_order(
    rules: list[str], sent: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = "mangle" if any("MARK" in rule for rule in rules) else "filter"
    base = f"{table}/FORWARD"
    written = program(table, *rules)
    assert run(program(table, *rules, level=2), base, sent) == run(written, base, sent)
    monkeypatch.setattr(translate.passes.gather, "_passes", lambda *_: True)
    assert run(gather(written), base, sent) != run(written, base, sent)


@pytest.mark.parametrize("seed", [16, 110])
def test_random_rules_show_that_a_range_joins_a_kind(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    ruleset = read_ruleset(random_rules(seed).encode(), name=f"random-{seed}")
    lower(ruleset, level=2)
    right = translate.passes.gather._points

    def without_fields(candidate: Candidate | None) -> object:
        keys, fields = right(candidate)
        return (((),), ()) if keys is None else (keys, fields)

    monkeypatch.setattr(translate.passes.gather, "_points", without_fields)
    with pytest.raises(IndexError):
        lower(ruleset, level=2)
