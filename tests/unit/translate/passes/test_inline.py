"""A chain written where it is called does the same, or is not written there."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from tests.lab.examples import examples
from tests.unit.translate.passes.helpers.evaluate import State, run
from tests.unit.translate.passes.helpers.rulesets import packets, rulesets
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
@settings(max_examples=examples(75), deadline=None, suppress_health_check=list(HealthCheck))
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
