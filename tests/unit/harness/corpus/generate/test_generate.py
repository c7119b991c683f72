from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from backends.model.contract import Job
from backends.model.flow import Flow, Send
from backends.model.node import node_from_json
from backends.simulator import RuleVisited, trace
from harness.corpus.formats.jsonlines import read_flows, write_flows
from harness.corpus.generate import GeneratedCorpus, generate_corpus, search
from tests.lab.random.rules import random_rules
from translate.errors import UnsupportedError
from translate.ir import Dnat, Family, Goto, Hook, Jump, Random, Ruleset
from translate.read import read_ruleset

CORPUS = Path(__file__).parents[4] / "corpus"
NODE = node_from_json(
    """{"interfaces": {"eth0": ["192.0.2.2/24"], "pod0": ["10.1.0.1/24"]},
        "routes": [{"dst": "default", "via": "192.0.2.1", "dev": "eth0"}]}""",
    name="node",
)

HEAD = "*filter\n:INPUT ACCEPT [0:0]\n:FORWARD ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n"
SHARED = """\
:SHARED - [0:0]
-A INPUT -j SHARED
-A FORWARD -j SHARED
-A OUTPUT -j SHARED
-A SHARED -d 127.0.0.0/8 -j ACCEPT
-A SHARED -p udp -j DROP
"""


def made_of(rules: str) -> GeneratedCorpus:
    return generate_corpus(Job(rules=read(HEAD + rules + "COMMIT\n"), node=NODE), seed=0)


def read(text: str) -> Ruleset:
    return read_ruleset(text.encode(), name="rules")


@pytest.fixture(scope="module")
def kind_corpus(worker: Job) -> GeneratedCorpus:
    return generate_corpus(worker, seed=0)


@pytest.mark.parametrize("node", ["worker", "control-plane"])
def test_every_rule_of_the_kind_node_but_the_unreachable_one(
    kind: Ruleset, kind_folder: Path, node: str
) -> None:
    where = node_from_json((kind_folder / f"{node}.json").read_text(), name=node)
    made = generate_corpus(Job(rules=kind, node=where), seed=3)
    assert not made.coverage.missed
    assert [r.chain for r in made.coverage.unreachable] == ["KUBE-MARK-DROP"]
    assert sum(r.matched > 0 for r in made.coverage.rules) == 63
    assert all(r.passed for r in made.coverage.rules if r.chain == "KUBE-SERVICES")


def test_chance_goes_both_ways(worker: Job, kind_corpus: GeneratedCorpus) -> None:
    sides: dict[tuple[str, int], set[bool]] = {}
    for event in (e for f in kind_corpus.flows for e in visits(worker, f)):
        if any(isinstance(t, Random) for t in event.rule.tests):
            sides.setdefault((event.chain, event.index), set()).add(event.matched)
    assert len(sides) == 3
    assert all(both == {True, False} for both in sides.values())


def visits(job: Job, flow: Flow) -> list[RuleVisited]:
    events = [e for branch in trace(job, flow) for step in branch.steps for e in step.events]
    return [e for e in events if isinstance(e, RuleVisited)]


def test_services_are_used_from_everywhere(worker: Job, kind_corpus: GeneratedCorpus) -> None:
    assert kind_corpus.services == 6
    dns = [f for f in kind_corpus.flows if f.id.startswith("service-udp-10.96.0.10-53-")]
    dns = [f for f in dns if not f.id.endswith("-errors")]
    assert [f.id.rpartition("-")[2] for f in dns] == ["inside", "outside", "node", "endpoint1", "endpoint2"]
    assert [f.first.entry for f in dns] == ["pod5", "eth0", None, "dns3", "dns4"]
    for flow in dns:
        assert len(flow.steps) == 3
        hook = Hook.OUTPUT if flow.first.entry is None else Hook.PREROUTING
        matched = [e for e in visits(worker, flow) if e.matched]
        assert {e.hook for e in matched if any(isinstance(a, Dnat) for a in e.rule.actions)} == {hook}


@pytest.mark.parametrize("test", ["-m addrtype --dst-type LOCAL", "-d 192.0.2.2/32"])
def test_a_port_of_the_node_is_also_asked_for_elsewhere(test: str) -> None:
    """Rules may know the node in the rule that jumps, and the port in the chain that it jumps to."""
    rules = read(
        "*nat\n:PREROUTING ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n:PORTS - [0:0]\n"
        f"-A PREROUTING {test} -j PORTS\n-A OUTPUT {test} -j PORTS\n"
        "-A PORTS -p tcp -m tcp --dport 30080 -j DNAT --to-destination 10.1.0.9:80\nCOMMIT\n"
    )
    made = generate_corpus(Job(rules=rules, node=NODE), seed=0)
    elsewhere = [f for f in made.flows if "-elsewhere-" in f.id]
    assert [f.first.entry for f in elsewhere] == ["eth0", "pod0", None]
    assert {f.first.packet.dport for f in elsewhere} == {30080}
    own = {a.value for i in NODE.interfaces for a in i.addresses}
    assert own.isdisjoint(f.first.packet.dst for f in elsewhere)
    assert not [e for f in elsewhere for e in visits(Job(rules=rules, node=NODE), f) if e.matched]


def test_the_seed_decides_and_the_corpus_survives_its_file(worker: Job, kind_corpus: GeneratedCorpus) -> None:
    assert generate_corpus(worker, seed=0).flows == kind_corpus.flows
    ids = [f.id for f in kind_corpus.flows]
    assert len(set(ids)) == len(ids)
    again = read_flows(write_flows(kind_corpus.flows).encode(), name="corpus", node=worker.node)
    assert again == kind_corpus.flows


def test_names_and_comments_do_not_matter(kind: Ruleset, worker: Job, kind_corpus: GeneratedCorpus) -> None:
    tables = []
    for table in kind.tables:
        names = {c.name: f"c{n}" for n, c in enumerate(table.chains) if c.hook is None}
        chains = tuple(
            dataclasses.replace(
                chain,
                name=names.get(chain.name, chain.name),
                rules=tuple(
                    dataclasses.replace(
                        rule,
                        comment=None,
                        actions=tuple(
                            dataclasses.replace(a, chain=names[a.chain]) if isinstance(a, Jump | Goto) else a
                            for a in rule.actions
                        ),
                    )
                    for rule in chain.rules
                ),
            )
            for chain in table.chains
        )
        tables.append(dataclasses.replace(table, chains=chains))
    renamed = dataclasses.replace(kind, tables=tuple(tables))
    made = generate_corpus(dataclasses.replace(worker, rules=renamed), seed=0)
    steps = {f.steps for f in kind_corpus.flows}
    assert {f.steps for f in made.flows} == steps


@pytest.mark.parametrize(
    "rule",
    [
        "-A INPUT -m conntrack --ctstate INVALID -j DROP\n",
        "-A FORWARD -m conntrack --ctstate RELATED -j ACCEPT\n",
        "-A FORWARD -s 10.1.0.0/24 -m conntrack --ctstate ESTABLISHED -j ACCEPT\n",
        "-A FORWARD -d 10.1.0.0/24 -m conntrack --ctstate ESTABLISHED --ctdir REPLY -j ACCEPT\n",
        "-A OUTPUT -m mark --mark 0x30/0xf0 -j DROP\n",
        "-A INPUT -p icmp -m icmp --icmp-type 13 -j ACCEPT\n",
        "-A FORWARD -p tcp -m tcp --tcp-flags SYN,RST RST -j DROP\n",
        "-A FORWARD -i pod0 -o eth0 -p udp -m udp --sport 5000:5005 --dport 53 -j ACCEPT\n",
        "-A FORWARD ! -s 10.1.0.0/24 -o pod0 -j DROP\n",
        "-A INPUT -i lo -j ACCEPT\n",
        "-A INPUT -m addrtype --dst-type BROADCAST -j DROP\n",
        "-A FORWARD -m statistic --mode nth --every 7 --packet 3 -j DROP\n",
        "-A INPUT -p 50 -j DROP\n",
        "-A FORWARD -p icmp -m icmp --icmp-type 3/4 -m conntrack --ctstate RELATED -j ACCEPT\n",
        "-A FORWARD -s 198.18.0.7/255.255.0.255 -j DROP\n",
    ],
)
def test_each_kind_of_test_is_met_and_missed(rule: str) -> None:
    made = made_of(rule)
    (one,) = made.coverage.rules
    assert one.matched
    assert one.passed
    assert not made.doubts


def test_a_rule_behind_others_is_found() -> None:
    made = made_of(
        "-A FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT\n"
        "-A FORWARD -p tcp -j ACCEPT\n-A FORWARD -d 10.0.0.0/9 -j DROP\n"
        "-A FORWARD -s 192.0.2.0/25 -j DROP\n-A FORWARD -j REJECT\n"
    )
    assert [r.matched > 0 for r in made.coverage.rules] == [True] * 5


def test_a_near_miss_fails_one_test_only() -> None:
    made = made_of("-A FORWARD -d 10.1.0.9/32 -p udp -m udp --dport 53 -j DROP\n")
    packets = {f.id.partition("-miss-")[2]: f.first.packet for f in made.flows if "-forward-miss-" in f.id}
    assert set(packets) == {"ip.daddr", "l4.proto", "l4.dport"}
    assert (packets["l4.dport"].dport, packets["l4.proto"].dport, packets["ip.daddr"].dport) != (53, 53, 53)
    assert abs(packets["ip.daddr"].dst - 0x0A010009) == 1
    assert packets["l4.proto"].proto != 17
    assert packets["l4.proto"].dport == 53
    assert made.alone == 3


def test_every_hook_that_leads_to_a_chain() -> None:
    made = made_of(SHARED)
    job = Job(rules=read(HEAD + SHARED + "COMMIT\n"), node=NODE)
    events = [e for f in made.flows for e in visits(job, f) if e.matched]
    hooks = {e.hook for e in events if e.chain == "SHARED" and e.index == 2}
    assert hooks == {Hook.INPUT, Hook.FORWARD, Hook.OUTPUT}


def test_made_on_the_node_means_no_interface(kind_corpus: GeneratedCorpus, worker: Job) -> None:
    names = {i.name for i in worker.node.interfaces}
    for flow in kind_corpus.flows:
        assert all(s.entry is None or s.entry in names for s in flow.steps if isinstance(s, Send))


def test_ipv6() -> None:
    node = node_from_json(
        """{"interfaces": {"eth0": ["2001:db8::2/64"], "pod0": ["fd00:1::1/64"]},
            "routes": [{"dst": "default", "via": "2001:db8::1", "dev": "eth0"}]}""",
        name="node",
    )
    rules = read_ruleset(
        b"*nat\n:PREROUTING ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n"
        b"-A PREROUTING -d fd00:2::a/128 -p udp -m udp --dport 53 -j DNAT --to-destination [fd00:1::9]:53\n"
        b"COMMIT\n*filter\n:INPUT ACCEPT [0:0]\n:FORWARD ACCEPT [0:0]\n"
        b"-A FORWARD -m conntrack --ctstate RELATED -j ACCEPT\n"
        b"-A INPUT -p ipv6-icmp -m icmp6 --icmpv6-type 128 -j ACCEPT\nCOMMIT\n",
        name="rules",
        family=Family.IP6,
    )
    made = generate_corpus(Job(rules=rules, node=node), seed=0)
    assert not made.coverage.missed
    assert all(r.passed for r in made.coverage.rules)
    assert made.services == 1
    assert "service-udp-fd00:2::a-53-inside" in {f.id for f in made.flows}


def test_messages_without_an_identifier_get_none() -> None:
    node = node_from_json('{"interfaces": {"eth0": ["2001:db8::2/64"]}}', name="node")
    text = (
        b"*filter\n:INPUT ACCEPT [0:0]\n-A INPUT -p ipv6-icmp -m icmp6 --icmpv6-type 135 -j ACCEPT\nCOMMIT\n"
    )
    rules = read_ruleset(text, name="rules", family=Family.IP6)
    flows = generate_corpus(Job(rules=rules, node=node), seed=0).flows
    kinds = {(f.first.packet.icmp_type, f.first.packet.icmp_id is None) for f in flows}
    assert (135, True) in kinds
    assert (135, False) not in kinds
    assert (128, True) not in kinds


def test_a_client_comes_back_to_its_endpoint() -> None:
    recent = "-m recent --rcheck --seconds 600 --name e1 --mask 255.255.255.255 --rsource"
    rules = read(
        "*nat\n:PREROUTING ACCEPT [0:0]\n:s - [0:0]\n:e - [0:0]\n"
        "-A PREROUTING -d 10.9.0.1/32 -p tcp -m tcp --dport 80 -j s\n"
        f"-A s {recent} -j e\n-A s -j e\n"
        "-A e -p tcp -m recent --set --name e1 --mask 255.255.255.255 --rsource -m tcp"
        " -j DNAT --to-destination 10.1.0.9:80\nCOMMIT\n"
    )
    made = generate_corpus(Job(rules=rules, node=NODE), seed=0)
    assert not made.coverage.missed
    assert any(sum(isinstance(s, Send) for s in f.steps) == 2 for f in made.flows)


def test_packets_that_cannot_be_simulated_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    node = node_from_json((CORPUS / "rulesets/six/node.json").read_text(), name="six")
    rules = read_ruleset(random_rules(679, Family.IP6).encode(), name="random-679", family=Family.IP6)
    assert generate_corpus(Job(rules=rules, node=node), seed=0).flows
    # As it was: such a packet ends the search.
    monkeypatch.setattr(search, "UnsupportedError", ZeroDivisionError)
    with pytest.raises(UnsupportedError, match="link-local"):
        generate_corpus(Job(rules=rules, node=node), seed=0)
