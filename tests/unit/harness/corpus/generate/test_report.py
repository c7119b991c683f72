from __future__ import annotations

from backends.model.contract import Job
from backends.model.node import node_from_json
from harness.corpus.generate import GeneratedCorpus, generate_corpus, generate_flows
from translate.read import read_ruleset

NODE = node_from_json(
    """{"interfaces": {"eth0": ["192.0.2.2/24"], "pod0": ["10.1.0.1/24"]},
        "routes": [{"dst": "default", "via": "192.0.2.1", "dev": "eth0"}]}""",
    name="node",
)


def job_of(rules: str) -> Job:
    head = "*filter\n:INPUT ACCEPT [0:0]\n:FORWARD ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n"
    return Job(rules=read_ruleset(f"{head}{rules}COMMIT\n".encode(), name="rules"), node=NODE)


def made_of(rules: str) -> GeneratedCorpus:
    return generate_corpus(job_of(rules), seed=0)


def test_what_is_not_found_comes_with_a_reason() -> None:
    made = made_of("-A INPUT -i wg0 -j DROP\n-A FORWARD -j ACCEPT\n-A FORWARD -p udp -j DROP\n")
    assert list(made.doubts.values()) == ["the node has no interface wg0"]
    (unreachable,) = made.coverage.unreachable
    assert unreachable.number == 2
    assert "line 6" in str(unreachable.unreachable)


def test_tests_that_flows_fail_alone_and_together_are_counted() -> None:
    made = made_of("-A FORWARD -d 10.1.0.9/32 -p udp -m udp --dport 53 -j DROP\n")
    assert (made.alone, made.together) == (3, 0)
    (rule,) = made.coverage.rules
    assert rule.matched
    assert rule.passed


def test_the_flows_are_those_that_are_generated_without_a_report() -> None:
    rules = "-A FORWARD -d 10.1.0.9/32 -p udp -m udp --dport 53 -j DROP\n"
    assert made_of(rules).flows == generate_flows(job_of(rules), seed=0).flows
