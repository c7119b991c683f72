"""A chain that registers conntrack, where passes have removed every rule that needs it."""

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
