"""Proposals are smaller, and are read from their text."""

from __future__ import annotations

from backends.model.flow import Again, Flow, Reply, Send
from backends.model.packet import Packet
from harness.shrink.proposals import (
    Shown,
    read_again,
    rule_ids,
    with_rules,
    without_call,
    without_header,
    without_part,
    without_step,
)
from translate.ir import Family, Ruleset
from translate.read import read_ruleset
from translate.write import write_save

FLOW = Flow(
    id="x",
    steps=(
        Send(packet=Packet(family=Family.IP, src=1, dst=2, proto=17, sport=1, dport=2), entry="a"),
        Reply(),
        Again(),
    ),
)
TEXT = """\
*filter
:FORWARD DROP [7:8]
:a - [0:0]
:b - [0:0]
-A FORWARD -s 10.0.0.1/32 -p udp -j a
-A FORWARD -i e0 -j b
-A a -p udp -m udp --sport 1 --dport 53 -j ACCEPT
-A b -m mark --mark 0x1 -j ACCEPT
-A b -j DROP
COMMIT
"""


def read(text: str = TEXT) -> Ruleset:
    return read_ruleset(text.encode(), name="rules")


def texts(made: object) -> list[str]:
    assert hasattr(made, "__iter__")
    return [
        " ".join(line for line in write_save(one.ruleset).split("\n") if line[:2] == "-A") for one in made
    ]


def test_rules_go_with_their_chains() -> None:
    ids = rule_ids(read())
    assert len(ids) == 5
    fewer = with_rules(read(), {ids[0], ids[2]})
    assert fewer is not None
    assert [chain.name for chain in fewer.tables[0].chains] == ["FORWARD", "a"]
    assert len(rule_ids(fewer)) == 2
    none = with_rules(read(TEXT.replace("DROP [7:8]", "ACCEPT [0:0]")), ())
    assert none is not None
    assert not none.tables


def test_a_ruleset_that_cannot_be_read_is_no_proposal() -> None:
    made = texts(without_part(Shown(read(), FLOW)))
    assert any("-A a -p udp -m udp --dport 53 -j ACCEPT" in text for text in made)
    assert any("-A FORWARD -p udp -j a" in text for text in made)
    assert not any("-A a -m udp" in text for text in made), "-m udp needs -p udp"


def test_a_policy_becomes_accept() -> None:
    first = next(without_part(Shown(read(), FLOW)))
    assert "FORWARD ACCEPT" in write_save(first.ruleset)


def test_the_rules_of_a_chain_take_the_place_of_a_jump() -> None:
    made = texts(without_call(Shown(read(), FLOW)))
    assert any("-s 10.0.0.1/32 -p udp -m udp --sport 1 --dport 53 -j ACCEPT" in text for text in made)
    assert any("-A FORWARD -m mark --mark 0x1 -j ACCEPT -A FORWARD -j DROP" in text for text in made)


def test_the_last_step_goes_first() -> None:
    made = [one.flow.steps[1:] for one in without_step(Shown(read(), FLOW))]
    assert made == [(Reply(),), (Again(),)]


def test_rules_without_effect_are_left_out() -> None:
    made = read_again(read("*nat\n:OUTPUT ACCEPT [3:4]\n:x - [0:0]\nCOMMIT\n" + TEXT))
    assert made is not None
    assert [table.name.value for table in made.tables] == ["filter"]


def test_header_fields_become_plain() -> None:
    packet = Packet(family=Family.IP, src=1, dst=2, proto=6, sport=1, dport=2, mark=7, mss=100, payload=b"x")
    shown = Shown(read(), Flow(id="x", steps=(Send(packet=packet, entry="a"), Reply())))
    packets = [one.flow.first.packet for one in without_header(shown)]
    assert [(p.mark, p.mss, p.payload) for p in packets] == [(0, 100, b"x"), (7, None, b"x"), (7, 100, b"")]
    assert not list(without_header(Shown(read(), FLOW)))
