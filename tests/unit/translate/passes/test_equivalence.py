from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from tests.lab.examples import examples
from tests.unit.translate.passes.helpers.evaluate import State, distance, run
from tests.unit.translate.passes.helpers.rulesets import mixtures, packets, rulesets
from tests.unit.translate.passes.helpers.services import service_packets, service_rulesets
from translate.ir import Choose, Lookup, Program, Ruleset
from translate.passes import LEVELS, lower, verify
from translate.passes.gather import gather
from translate.passes.pipeline import Pass

BASE = "nat/PREROUTING"
# Two parts in 2**31 for each equal split on the way, of which a packet meets a handful.
BIAS = Fraction(2 * 16, 1 << 31)


def same(before: Program, after: Program, packet: State) -> None:
    assert distance(run(before, BASE, packet), run(after, BASE, packet)) <= BIAS


@pytest.mark.parametrize("level", [level for level in LEVELS if level])
@given(ruleset=rulesets(), sent=st.lists(packets(), min_size=1, max_size=6))
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
def test_every_level_means_what_was_written(level: int, ruleset: Ruleset, sent: list[State]) -> None:
    written = verify(lower(ruleset, level=0))
    lowered = verify(lower(ruleset, level=level))
    statements = [s for chain in lowered.chains for s in chain.statements]
    event(f"lookups: {any(isinstance(s, Lookup) for s in statements)}")
    event(f"draws: {any(isinstance(s, Choose) for s in statements)}")
    for packet in sent:
        same(written, lowered, packet)


@given(ruleset=service_rulesets(), sent=st.lists(service_packets(), min_size=4, max_size=12))
@settings(max_examples=examples(75), deadline=None, suppress_health_check=list(HealthCheck))
def test_templates_of_services_mean_what_was_written(ruleset: Ruleset, sent: list[State]) -> None:
    written = verify(lower(ruleset, level=0))
    lowered = verify(lower(ruleset, level=2))
    made = [chain for chain in lowered.chains if " " in chain.name]
    event(f"templates: {bool(made)}")
    merged = any(len(s.entries) > 1 for c in made for s in c.statements if isinstance(s, Lookup))
    event(f"with constants of several: {merged}")
    for packet in sent:
        same(written, lowered, packet)


@given(ruleset=mixtures(), sent=st.lists(packets(), min_size=4, max_size=12))
@settings(max_examples=examples(75), deadline=None, suppress_health_check=list(HealthCheck))
def test_rules_come_together_without_a_packet_noticing(ruleset: Ruleset, sent: list[State]) -> None:
    written = lower(ruleset, level=0)
    gathered = verify(gather(written))
    event(f"moved: {gathered != written}")
    for packet in sent:
        same(written, gathered, packet)


@pytest.mark.parametrize("step", dict.fromkeys(LEVELS[2]), ids=lambda step: step.__name__)
@given(ruleset=rulesets(), sent=st.lists(packets(), min_size=1, max_size=4))
@settings(max_examples=examples(30), deadline=None, suppress_health_check=list(HealthCheck))
def test_every_pass_by_itself_preserves_the_meaning(step: Pass, ruleset: Ruleset, sent: list[State]) -> None:
    written = lower(ruleset, level=0)
    changed = verify(step(written))
    for packet in sent:
        same(written, changed, packet)
