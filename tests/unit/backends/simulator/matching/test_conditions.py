"""The state that a flow leaves, without which it is run again; the timers of connections."""

from __future__ import annotations

import pytest

from backends.model.flow import Flow, Reply
from backends.model.outcome import Verdict
from backends.simulator import simulate
from backends.simulator.walk.prepare import prepare

LIMITED = "mangle: -A FORWARD -m limit --limit 1/min --limit-burst 1"
HASHED = "mangle: -A FORWARD -m hashlimit --hashlimit-upto 1/min --hashlimit-name a"


@pytest.mark.parametrize(
    ("rule", "kept"),
    [
        (f"{LIMITED} -j ACCEPT", True),
        (f"{LIMITED} -j MARK --set-xmark 0x1/0x1", True),
        (f"{LIMITED} -m recent --name a --set --rsource -j LOG", True),
        (f"{HASHED} -j LOG", True),
        (f"{LIMITED} -j LOG", False),
        (LIMITED, False),
    ],
)
def test_a_limit_that_only_decides_what_is_logged_leaves_no_state(lab, rule: str, kept: bool) -> None:
    flow = Flow(id="one packet", steps=(lab.udp("10.1.0.5", "10.2.0.5"),))
    assert simulate(lab.job(rule), flow).lists == kept


@pytest.mark.parametrize(
    ("match", "kept"),
    [
        ("-m limit --limit 1/min", True),
        ("-m hashlimit --hashlimit-upto 1/min --hashlimit-name a", True),
        ("-m quota --quota 100", True),
        ("-m connlimit --connlimit-above 1", True),
        ("-m statistic --mode nth --every 2 --packet 0", True),
        ("-m recent --name a --set --rsource", True),
        ("-m rateest --rateest a --rateest-eq", True),  # not modelled: an assumption is state
        ("-p udp -m multiport --ports 1,2 -m statistic --mode random --probability 0.5", False),
        ('-m u32 --u32 "0&0xff=1"', False),
    ],
)
def test_a_memory_keeps_state_if_a_rule_leaves_any(lab, match: str, kept: bool) -> None:
    rules = lab.job(f"filter: -A FORWARD -d 10.2.0.5/32 -j ACCEPT\nfilter: -A FORWARD {match} -j DROP")
    assert prepare(rules.ruleset, assuming=True).keeps_state is kept


@pytest.mark.parametrize(
    ("seconds", "states", "verdicts"),
    [
        ("31:", "ESTABLISHED", (Verdict.FORWARD, Verdict.FORWARD)),
        ("27:30", "ESTABLISHED", (Verdict.FORWARD, Verdict.DROP)),
        ("29:30", "ESTABLISHED", (Verdict.FORWARD, Verdict.UNKNOWN)),  # 28 s may be left
        (
            "27:30",
            "NEW,ESTABLISHED",
            (Verdict.UNKNOWN, Verdict.UNKNOWN),
        ),  # not confirmed
    ],
)
def test_a_timer_is_compared_where_its_value_is_certain(
    lab, seconds: str, states: str, verdicts: tuple[Verdict, ...]
) -> None:
    rule = f"filter: -A FORWARD -m conntrack --ctstate {states} --ctexpire {seconds} -j DROP"
    flow = Flow(id="answered", steps=(lab.udp("10.1.0.5", "10.2.0.5"), Reply()))
    (branch,) = simulate(lab.job(rule), flow).branches
    assert tuple(outcome.verdict for outcome in branch.outcomes) == verdicts
