"""The state that rules leave, and what is known of it after a flow."""

from __future__ import annotations

import pytest

from backends.model.flow import Flow
from backends.simulator import simulate
from backends.simulator.matching.memory import leaves_state
from translate.read import read_ruleset

SET = "-m recent --name a --set --rsource"
LIMIT = "-m limit --limit 1/min --limit-burst 1"


@pytest.mark.parametrize(
    ("rules", "lists", "filled"),
    [
        ((f"{SET} -j ACCEPT",), True, frozenset({"a"})),
        ((f"{SET} -j LOG", "-m recent --name b --set --rdest -j ACCEPT"), True, frozenset({"a", "b"})),
        (("-m recent --name a --rcheck --rsource -j ACCEPT",), False, None),
        ((f"{SET} -j LOG", f"{LIMIT} -j ACCEPT"), True, None),
        ((f"{SET} -j LOG", "-m recent --name a --remove --rsource -j ACCEPT"), True, None),
        (("-p udp -j ACCEPT",), False, None),
    ],
)
def test_the_lists_that_a_flow_has_filled_are_named_if_it_leaves_nothing_else(
    lab, rules: tuple[str, ...], lists: bool, filled: frozenset[str] | None
) -> None:
    flow = Flow(id="one packet", steps=(lab.udp("10.1.0.5", "10.2.0.5"),))
    result = simulate(lab.job("\n".join(f"mangle: -A FORWARD {rule}" for rule in rules)), flow)
    assert (result.lists, result.filled) == (lists, filled)


@pytest.mark.parametrize(
    ("match", "leaves"),
    [
        ("-p udp -m udp --dport 53", False),
        ("-m statistic --mode random --probability 0.5", False),
        ("-m statistic --mode nth --every 2 --packet 0", True),
        (LIMIT, True),
        (SET, True),
    ],
)
def test_rules_that_count_or_remember_leave_state(match: str, *, leaves: bool) -> None:
    text = f"*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD {match} -j DROP\nCOMMIT\n"
    (rule,) = read_ruleset(text.encode(), name="rules").rules()
    assert leaves_state(rule) is leaves
