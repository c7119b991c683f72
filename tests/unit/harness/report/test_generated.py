from __future__ import annotations

import io

from backends.model.contract import Job
from backends.model.node import node_from_json
from harness.corpus.generate import generate_corpus
from harness.report.generated import print_generated
from translate.read import read_ruleset

RULES = b"""*filter
:INPUT ACCEPT [0:0]
:unused - [0:0]
-A INPUT -i a -p udp -j DROP
-A INPUT -i nowhere -j DROP
-A unused -j DROP
COMMIT
"""


def test_counts_and_the_rules_without_a_flow() -> None:
    node = node_from_json('{"interfaces": {"a": ["192.0.2.1/24"]}}', name="node")
    made = generate_corpus(Job(rules=read_ruleset(RULES, name="rules"), node=node), seed=0)
    stream = io.StringIO()
    print_generated(made, stream)
    first, *rest = stream.getvalue().splitlines()
    assert f"{len(made.flows)} flows hit 1 of 3 rules" in first
    assert rest == [
        "  cannot be reached: rules:6: -A unused -j DROP",
        "      no rule jumps to chain unused",
        "  no flow found: rules:5: -A INPUT -i nowhere -j DROP",
        "      the node has no interface nowhere",
    ]
