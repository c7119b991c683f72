"""Buckets, tables and lists of iptables are as new for each run of a flow."""

from __future__ import annotations

import time

import pytest

from backends.iptables.backend import IptablesBackend, IptablesLoader
from backends.model.contract import Job
from backends.model.flow import Flow, Send
from backends.model.node import Node
from backends.model.outcome import FlowResult
from backends.replay.session import open_session
from backends.simulator import simulate
from tests.kernel.helpers.availability import require
from tests.lab.random.played import node_of
from translate.ir import Family
from translate.read import read_ruleset

HASHED = "-m hashlimit --hashlimit-upto 1/hour --hashlimit-burst 2 --hashlimit-name shared"
TWO_TABLES = f"""\
*mangle
-A PREROUTING {HASHED} -j MARK --set-mark 1
COMMIT
*filter
-A FORWARD {HASHED} -j DROP
COMMIT
"""
A_LIST_THAT_ENDS = f"""\
*mangle
-A PREROUTING {HASHED} -m recent --name seen --set -j MARK --set-mark 1
-A PREROUTING -m recent --name seen --rcheck --hitcount 2 -j MARK --or-mark 2
COMMIT
"""
WITHOUT_A_TARGET = """\
*mangle
-A PREROUTING -m limit --limit 1/hour --limit-burst 1 -m recent --name seen --set
-A PREROUTING -m recent --name seen --rcheck -m recent --name seen --remove -j MARK --set-mark 1
COMMIT
"""
A_PORT_THREE_TIMES = """\
*mangle
-A PREROUTING -p udp -m udp --dport 80 -m udp --dport 53:80 -m udp --dport 53 -j MARK --set-mark 1
-A PREROUTING -m limit --limit 1/hour --limit-burst 1 -j MARK --or-mark 2
COMMIT
"""


def marks(result: FlowResult) -> list[int | None]:
    assert result.notes == ()
    (branch,) = result.branches
    return [outcome.mark for outcome in branch.outcomes]


@pytest.mark.parametrize("rules", [TWO_TABLES, A_LIST_THAT_ENDS, WITHOUT_A_TARGET, A_PORT_THREE_TIMES])
def test_each_flow_begins_anew(rules: str, backend_name: str, kind_node: Node, flows) -> None:
    backend = IptablesBackend(backend_name)
    require(backend)
    job = Job(rules=read_ruleset(rules.encode(), name="rules"), node=kind_node)
    packet = Send(packet=flows.udp("172.18.1.1", "10.244.0.5", 53), entry="eth0")
    sent = [Flow(id=str(number), steps=(packet,) * 3) for number in range(4)]
    with backend.open(job) as session:
        seen = [marks(result) for result in session.replay(sent)]
    assert seen == [marks(simulate(job, sent[0]))] * 4


def test_the_node_sends_nothing_by_itself() -> None:
    """A report of MLD would take a token of rules without a protocol."""
    rules = "*mangle\n-A OUTPUT -j ACCEPT\nCOMMIT\n"
    require(IptablesBackend("iptables-legacy"))
    with open_session(node_of(Family.IP6), IptablesLoader("iptables-legacy", rules, Family.IP6)) as session:
        before = session.counters()
        time.sleep(1.1)
        assert session.counters() == before
