"""Chains that register conntrack, or reassemble fragments, where no other rule of nft does so."""

from __future__ import annotations

import pytest

from translate.nft import emit
from translate.passes import lower
from translate.read import read_ruleset

MARKED = "*nat\n-A PREROUTING -p udp -j MARK --set-mark 7\nCOMMIT\n"
IDLE = "*filter\n:IDLE - [0:0]\n-A IDLE -m conntrack --ctstate NEW -j DROP\nCOMMIT\n"
REGISTERS = 'comment "registers conntrack"'


@pytest.mark.parametrize(
    ("text", "level", "expected"),
    [
        (MARKED, 0, False),
        (MARKED, 2, False),
        (MARKED + IDLE, 0, False),
        (MARKED + IDLE, 1, True),
        (MARKED + IDLE, 2, True),
        (MARKED + IDLE.replace(":IDLE - [0:0]\n", "").replace("IDLE", "FORWARD"), 2, False),
    ],
)
def test_only_a_program_without_its_rules_gets_the_chain(text: str, level: int, expected: bool) -> None:
    made = emit(lower(read_ruleset(text.encode(), name="rules"), level=level)).text
    assert (REGISTERS in made) is expected


SOCKET = "*mangle\n-A PREROUTING -m socket --transparent -j MARK --set-mark 1\nCOMMIT\n"
PROXY = "*mangle\n-A PREROUTING -p tcp -j TPROXY --on-port 9\nCOMMIT\n"
IDLE_PROXY = "*mangle\n:IDLE - [0:0]\n-A IDLE -p tcp -j TPROXY --on-port 9\nCOMMIT\n"
HOPS = "*filter\n-A FORWARD -m ttl --ttl-eq 9 -j DROP\nCOMMIT\n"
STATE = "*filter\n-A FORWARD -m conntrack --ctstate NEW -j DROP\nCOMMIT\n"
REASSEMBLES = 'comment "reassembles fragments"'


@pytest.mark.parametrize(
    ("text", "level", "expected"),
    [
        (HOPS, 2, False),
        (SOCKET, 0, True),
        (SOCKET, 2, True),
        (SOCKET + STATE, 2, False),
        (PROXY, 2, False),
        (IDLE_PROXY + HOPS, 0, False),
        (IDLE_PROXY + HOPS, 2, True),
    ],
)
def test_a_program_reassembles_fragments_as_its_rules_do(text: str, level: int, expected: bool) -> None:
    made = emit(lower(read_ruleset(text.encode(), name="rules"), level=level))
    assert (REASSEMBLES in made.text) is expected
    assert not made.notes
