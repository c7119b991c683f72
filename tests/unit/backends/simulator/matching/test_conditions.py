"""The state that a flow leaves, without which it is run again."""

from __future__ import annotations

import pytest

from backends.model.flow import Flow
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
