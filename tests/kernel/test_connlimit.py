"""``-m connlimit`` without ``--syn``: the simulator counts as x_tables does, where nftables differs."""

from __future__ import annotations

from pathlib import Path

from backends.iptables.backend import loader_of
from backends.model.contract import Job
from backends.model.node import node_from_json
from backends.model.outcome import Verdict
from backends.replay.session import open_session
from backends.simulator import simulate
from harness.corpus.formats.jsonlines import read_flows
from translate.read import read_ruleset

RULES = b"""*filter
:INPUT ACCEPT [0:0]
:FORWARD ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
-A FORWARD -p tcp -m tcp --dport 80 -m connlimit --connlimit-above 2 -j DROP
-A FORWARD -p tcp -m tcp --dport 81 -m state --state ESTABLISHED -m connlimit --connlimit-above 0 -j DROP
-A FORWARD -p tcp -m tcp --dport 82 -m connlimit --connlimit-above 1 --connlimit-mask 0 -j DROP
-A FORWARD -p tcp -m tcp --dport 82 -m connlimit --connlimit-upto 5 --connlimit-mask 0 --connlimit-daddr
COMMIT
"""
SEND = '"in": "pod0", "src": "10.244.0.%d", "dst": "203.0.113.7", "proto": "tcp", "sport": %d, "dport": %d'
ESTABLISHED = '{"reply": {}}, {"again": {}}'


def sent(client: int, source: int, port: int, flags: str = "S") -> str:
    return f'{{{SEND % (client, source, port)}, "flags": "{flags}"}}'


def flow(name: str, first: tuple[int, int, int], *steps: str) -> str:
    then = ", ".join(steps)
    return f'{{"id": "{name}", {SEND % first}, "then": [{then}]}}\n'


FLOWS = (
    flow("the last one is reset", (5, 1000, 80), ESTABLISHED, '{"again": {"flags": "R"}}')
    + flow(
        "one of two is reset",
        (5, 1100, 80),
        ESTABLISHED,
        f'{{"send": {sent(5, 1101, 80)}}}',
        '{"again": {"flags": "R"}}',
    )
    + flow("established when it comes", (5, 1200, 81), ESTABLISHED, '{"again": {}}')
    + flow(
        "one for all",
        (5, 1300, 82),
        ESTABLISHED,
        f'{{"send": {sent(6, 1301, 82)}}}',
        f'{{"send": {sent(5, 1300, 82, "R")}}}',
        f'{{"send": {sent(6, 1302, 82)}}}',
    )
).encode()


DROPPED = {
    "the last one is reset": [3],
    "one of two is reset": [],
    "established when it comes": [2, 3],
    "one for all": [3, 5],
}
"""The packets of each flow that are dropped, from 0."""


def test_the_simulator_counts_connections_as_the_kernel_does(backend_name: str) -> None:
    path = Path(__file__).parents[1] / "corpus/rulesets/connlimit/node.json"
    node = node_from_json(path.read_bytes(), name=path.name)
    ruleset = read_ruleset(RULES, name="rules")
    flows = read_flows(FLOWS, name="flows", node=node)
    with open_session(node, loader_of(backend_name, ruleset)) as session:
        for one, seen in zip(flows, session.replay(flows), strict=True):
            (branch,) = seen.branches
            assert simulate(Job(rules=ruleset, node=node), one).branches == (branch,), one.id
            dropped = [n for n, o in enumerate(branch.outcomes) if o.verdict is Verdict.DROP]
            assert dropped == DROPPED[one.id], one.id
