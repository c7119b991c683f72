"""Connections to services also end, from either side, in every generated corpus."""

from __future__ import annotations

from collections import Counter
from itertools import cycle

from backends.model.contract import Job
from backends.model.flow import Again, IcmpError, Reply
from backends.model.node import node_from_json
from backends.model.outcome import Verdict
from backends.simulator import simulate
from harness.corpus.generate import GeneratedCorpus, generate_corpus
from harness.corpus.generate.further.teardown import MOST_SERVICES
from translate.ir import TcpFlag
from translate.read import read_ruleset

NODE = node_from_json(
    """{"interfaces": {"eth0": ["192.0.2.2/24"], "pod0": ["10.1.0.1/24"]},
        "routes": [{"dst": "default", "via": "192.0.2.1", "dev": "eth0"}]}""",
    name="node",
)
ENDINGS = ("errors", "closed", "closed-by-server", "reset", "reset-by-server", "refused")
CLIENTS = ("inside", "outside", "node")


def job(services: int) -> Job:
    rules = [
        f"-A PREROUTING -d 10.96.0.{n}/32 -p {proto} -m {proto} --dport 80"
        f" -j DNAT --to-destination 10.1.0.{n + 2}:8080"
        for n, proto in zip(range(services), cycle(("tcp", "udp")))
    ]
    text = "\n".join(("*nat", ":PREROUTING ACCEPT [0:0]", *rules, "COMMIT", ""))
    return Job(rules=read_ruleset(text.encode(), name="rules"), node=NODE)


def ending(made: GeneratedCorpus) -> Counter[str]:
    found = [f.id for f in made.flows if f.id.startswith("service-")]
    ends = [(name, f"-{client}-{name}") for name in ENDINGS for client in CLIENTS]
    return Counter(name for id_ in found for name, end in ends if id_.endswith(end))


def test_every_service_ends_in_every_way() -> None:
    made = generate_corpus(job(4), seed=0)
    assert ending(made) == {name: 4 if name == "errors" else 2 for name in ENDINGS}
    errors = [f.id.removesuffix("-errors") for f in made.flows if f.id.endswith("-errors")]
    assert {name.rpartition("-")[2] for name in errors} == set(CLIENTS)
    for flow in (f for f in made.flows if f.id.endswith(tuple(ENDINGS)) and f.id.startswith("service-tcp")):
        (branch,) = simulate(job(4), flow).branches
        assert [o.verdict for o in branch.outcomes] == [Verdict.FORWARD] * len(branch.outcomes), flow.id


def test_closes_resets_and_errors_come_from_both_sides() -> None:
    made = generate_corpus(job(1), seed=0)
    steps = [s for f in made.flows if f.id.startswith("service-") for s in f.steps[1:]]
    for side in (Again, Reply):
        flags = {s.flags for s in steps if isinstance(s, side) and s.flags is not None}
        assert {TcpFlag.FIN | TcpFlag.ACK, TcpFlag.RST | TcpFlag.ACK} <= flags
    (errors,) = (f for f in made.flows if f.id.endswith("-errors"))
    # About what the client sent, from the server; and about its answer, from the client.
    assert [type(s) for s in errors.steps[1:]] == [IcmpError, Again, Reply, IcmpError]


def test_as_many_services_as_a_corpus_can_afford_evenly_spread() -> None:
    made = generate_corpus(job(150), seed=0, exhaustive=True)
    errors = [f.id for f in made.flows if f.id.endswith("-errors")]
    assert len(errors) == 50  # every third, so that they are no more than MOST_SERVICES
    assert len(errors) <= MOST_SERVICES
    assert {f.split("-")[1] for f in errors} == {"tcp", "udp"}
