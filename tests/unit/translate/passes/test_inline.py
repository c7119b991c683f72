"""A chain written where it is called does the same, or is not written there."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from tests.unit.translate.passes.evaluate import State, run
from tests.unit.translate.passes.rulesets import packets, rulesets
from tests.unit.translate.rules import program
from translate.ir import LoweredChain, Program, Ruleset
from translate.passes import LEVELS, lower, verify
from translate.passes.calls import called
from translate.passes.control import changed_fields
from translate.passes.inline import inline

BASE = "nat/PREROUTING"


def inlined(whole: Program, caller: str, name: str) -> LoweredChain | None:
    return inline(whole.chain(caller), whole.chain(name), changed_fields(whole))


@given(
    ruleset=rulesets(),
    level=st.sampled_from(sorted(LEVELS)),
    chosen=st.integers(0, 99),
    sent=st.lists(packets(), min_size=1, max_size=6),
)
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
def test_packets_do_not_notice(ruleset: Ruleset, level: int, chosen: int, sent: list[State]) -> None:
    before = lower(ruleset, level=level)
    calls = [(chain.name, name) for chain in before.chains for name in called(chain)]
    if not calls:
        return
    caller, name = calls[chosen % len(calls)]
    made = inlined(before, caller, name)
    event(f"written out: {made is not None}")
    if made is None:
        return
    assert name not in called(made)
    chains = tuple(made if chain.name == caller else chain for chain in before.chains)
    after = verify(replace(before, chains=chains))
    for packet in sent:
        assert run(before, BASE, packet) == run(after, BASE, packet)


@pytest.mark.parametrize(
    ("rules", "can"),
    [
        (["-A user -j DROP", "-A INPUT -j user"], True),
        (["-A user -j RETURN", "-A INPUT -j user"], True),  # returns to where the caller ends
        (["-A user -j RETURN", "-A INPUT -j user", "-A INPUT -j DROP"], False),
        (["-A user -j RETURN", "-A INPUT -s 10.0.0.1 -g user", "-A INPUT -j DROP"], True),
        (["-A user -j MARK --set-mark 1", "-A INPUT -m mark --mark 0 -j user"], False),
        (["-A user -j MARK --set-mark 1", "-A INPUT -m connmark --mark 0 -j user"], True),
        (["-A user -j DROP", "-A INPUT -m statistic --mode nth --every 2 --packet 0 -j user"], False),
        (["-A user -j DROP", "-A INPUT -m conntrack --ctstate NEW,DNAT -j user"], False),
    ],
)
def test_what_can_be_written_out(rules: list[str], can: bool) -> None:
    table = "mangle" if "MARK" in rules[0] else "filter"
    assert (inlined(program(table, *rules), f"{table}/INPUT", f"{table}/user") is not None) is can
