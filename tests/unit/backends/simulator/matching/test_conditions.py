"""The state that a flow leaves, without which it is run again; the timers of connections."""

from __future__ import annotations

import pytest

from backends.model.flow import Flow, Reply
from backends.model.outcome import Verdict
from backends.simulator import simulate

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
