"""The tc eBPF translation on this kernel: loads, and does what the rules say."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from backends.model.contract import Job
from backends.model.flow import Again, Flow, IcmpError, Reply, Send
from backends.model.node import Node, node_from_json
from backends.model.outcome import Verdict
from backends.replay.session import open_session
from backends.simulator import SimulatorBackend
from backends.tc_ebpf import TcEbpfBackend
from backends.tc_ebpf.loader import TcEbpfLoader
from backends.tc_ebpf.programs import bcc
from backends.testbed.tapnode import TapNode
from harness.corpus.cases import read_cases
from harness.corpus.random.flows import random_flows
from harness.diff.compare import compare
from tests.kernel.helpers.availability import require
from translate.bpf import emit
from translate.errors import MachineError, UnsupportedError
from translate.ir import Ruleset, TcpFlag
from translate.passes import LEVELS, lower
from translate.read import read_ruleset

CORPUS = Path(__file__).parents[1] / "corpus"
BEST = max(LEVELS)
WAYS = [
    *(pytest.param(level, True, marks=[] if level == BEST else pytest.mark.slow) for level in LEVELS),
    (BEST, False),
]
"""Levels, and whether packets that the stack would only forward go around it."""


@pytest.fixture(scope="module", autouse=True)
def _needs_bcc() -> None:
    require(TcEbpfBackend())


def rules(name: str) -> Ruleset:
    return read_ruleset((CORPUS / "rulesets" / name / "rules.iptables-save").read_bytes(), name=name)


def written(*lines: str) -> Ruleset:
    return read_ruleset("\n".join((*lines, "")).encode(), name="rules")


def agree(
    ruleset: Ruleset, node: Node, flows: list[Flow], level: int = 1, *, direct: bool = True
) -> Counter[Verdict]:
    """Insist that every flow ends on the kernel in a way that the simulator knows."""
    job = Job(rules=ruleset, node=node, level=level)
    with SimulatorBackend().open(job) as reference:
        expected = list(reference.replay(flows))
    with TcEbpfBackend(direct=direct).open(job) as session:
        observed = list(session.replay(flows))
    differences = [
        (flow.id, str(flow.first.packet), [str(m) for m in compare(flow, e, o)], o.notes)
        for flow, e, o in zip(flows, expected, observed, strict=True)
        if compare(flow, e, o) or o.notes
    ]
    assert differences == []
    return Counter(o.verdict for r in observed for b in r.branches for o in b.outcomes)


def test_the_kind_nodes_corpus_through_the_stack() -> None:
    """Packets that are only forwarded go through the stack, which ``make diff-test`` never does."""
    cases = [c for c in read_cases(CORPUS / "cases") if "kind-" in c.folder.name]
    nodes = {str(case.node_path.resolve()): case.node for case in cases}
    for path, node in nodes.items():
        mine = [case for case in cases if str(case.node_path.resolve()) == path]
        flows = [flow for case in mine for flow in case.flows]
        seen = agree(mine[0].ruleset, node, flows, BEST, direct=False)
        assert seen[Verdict.FORWARD]
        assert seen[Verdict.LOCAL]


@pytest.mark.parametrize(("level", "direct"), WAYS)
@pytest.mark.parametrize(("name", "seed"), [("kind-node", 20), ("nft-traps", 21)])
def test_random_packets_around_the_rules(
    name: str, seed: int, level: int, direct: bool, kind_node: Node
) -> None:
    ruleset = rules(name)
    flows = list(random_flows(ruleset, kind_node, seed=seed, count=400))
    assert len(agree(ruleset, kind_node, flows, level, direct=direct)) >= 3


def test_rejects_redirects_and_ranges(kind_node: Node) -> None:
    ruleset = rules("bpf-traps")
    # One service address is rejected for packets made here. A RST that an answer sends from it is
    # rejected in turn, by x_tables too; such answers to answers are frames that nobody has asked for.
    own = 0x0A600014
    flows = [
        flow
        for flow in random_flows(ruleset, kind_node, seed=22, count=900)
        if all(s.packet.src != own for s in flow.steps if isinstance(s, Send))
    ]
    assert agree(ruleset, kind_node, flows)[Verdict.REJECT] > 20


def test_the_same_source_port_twice_and_the_loop_through_the_node(kind_node: Node, flows) -> None:
    ruleset = rules("kind-node")
    twice = [
        Flow(
            id=f"twice-{n}",
            steps=(
                Send(packet=flows.udp(src, "10.96.0.10", 53, sport=sport), entry=entry),
                Send(packet=flows.udp("10.244.0.5", "10.244.0.3", 53, sport=sport), entry="pod5"),
                Reply(),
                Again(),
            ),
        )
        for n, (src, entry, sport) in enumerate(
            (("10.244.0.5", "pod5", 4000), ("172.18.0.9", "eth0", 300), ("172.18.0.2", None, 700))
        )
    ]
    loops = [
        flows.flow(flows.tcp(src, dst, 53, sport=sport), None, Reply(), Again(), IcmpError(type=3, code=1))
        for sport, (src, dst) in enumerate(
            (("172.18.0.2", "172.18.0.1"), ("10.244.0.1", "172.18.0.2"), ("127.0.0.1", "127.0.0.1")), 5000
        )
    ]
    seen = agree(ruleset, kind_node, twice + loops)
    assert seen[Verdict.LOCAL] >= 9


def test_checksums_hold_for_every_length(kind_node: Node, flows) -> None:
    """INVALID is decided by summing the whole packet, in steps of many sizes."""
    lengths = [*range(70), 127, 128, 129, 254, 255, 256, 257, 511, 512, 513, 1000, 1471, 1472]
    sent = [
        flows.flow(
            flows.udp(
                "10.244.0.5",
                "10.96.0.10",
                53,
                sport=2000 + n,
                payload=(b"tag%05d" % n + bytes(range(256)) * 6)[: max(n, 8)],
                bad_checksum=bad,
            ),
            "pod5",
            Reply(),
        )
        for n in lengths
        for bad in (False, True)
    ]
    seen = agree(rules("kind-node"), kind_node, sent)
    assert seen[Verdict.FORWARD]
    assert seen[Verdict.DROP]


@pytest.mark.parametrize("mode", ["1", "2"])
def test_reverse_path_filtering(mode: str, kind_node: Node, flows) -> None:
    """iptables translates a reply to the node's own packet back after that check: it must pass."""
    sysctls = {**kind_node.sysctls, "net.ipv4.conf.all.rp_filter": mode}
    node = replace(kind_node, sysctls=sysctls)
    with TcEbpfBackend().open(Job(rules=rules("kind-node"), node=node)) as session:
        _, back = flows.run(session, flows.udp("172.18.0.2", "10.96.0.10", 53), None, Reply())
        assert (back.verdict, back.src) == (Verdict.LOCAL, flows.ip("10.96.0.10"))
        (stranger,) = flows.run(session, flows.udp("10.244.0.3", "172.18.0.2", 99), "pod5")
        assert stranger.verdict is (Verdict.DROP if mode == "1" else Verdict.LOCAL)
        (own,) = flows.run(session, flows.udp("10.244.0.1", "172.18.0.2", 99), "pod5")
        assert own.verdict is Verdict.DROP


def test_without_forwarding_and_without_localnet(kind_node: Node, flows) -> None:
    node = replace(kind_node, sysctls={"net.ipv4.ip_forward": "0"})
    sent = [
        flows.flow(flows.udp("10.244.0.5", "10.96.0.10", 53), "pod5"),
        flows.flow(flows.udp("10.244.0.5", "172.18.0.2", 53), "pod5", Reply()),
        flows.flow(flows.udp("10.244.0.5", "172.18.0.1", 53), "pod5", Reply()),
        flows.flow(flows.udp("172.18.0.2", "10.96.0.10", 53), None, Reply()),
        flows.flow(flows.udp("172.18.0.2", "172.18.0.1", 53), None, Reply()),
        flows.flow(flows.udp("127.0.0.1", "10.96.0.10", 53), None),
    ]
    for n, flow in enumerate(sent):
        packet = replace(flow.first.packet, sport=6000 + n)
        sent[n] = replace(flow, steps=(Send(packet=packet, entry=flow.first.entry), *flow.steps[1:]))
    agree(rules("kind-node"), node, sent)


@pytest.fixture(scope="module")
def separate() -> Ruleset:
    """Rules for the packets of three tests, which no other test's packets match: one program is compiled."""
    return written(
        "*mangle",
        ":PREROUTING ACCEPT [0:0]",
        "-A PREROUTING -d 10.244.0.3/32 -p udp -m statistic --mode nth --every 3 --packet 1 "
        "-j MARK --set-xmark 0x1/0xffffffff",
        "COMMIT",
        "*nat",
        ":PREROUTING ACCEPT [0:0]",
        "-A PREROUTING -d 10.96.0.9/32 -p udp -m statistic --mode random --probability 0.25 "
        "-j DNAT --to-destination 10.244.0.3",
        "-A PREROUTING -d 10.96.0.9/32 -p udp -j DNAT --to-destination 10.244.0.4",
        "COMMIT",
        "*filter",
        ":FORWARD ACCEPT [0:0]",
        "-A FORWARD -p tcp -m conntrack --ctstate NEW -j ACCEPT",
        "-A FORWARD -p tcp -j DROP",
        "COMMIT",
    )


def test_a_connection_that_was_refused_begins_anew(kind_node: Node, flows, separate: Ruleset) -> None:
    """A RST as the only answer ends the connection: the next SYN is NEW, and nothing else would do."""
    packet = flows.tcp("10.244.0.5", "10.244.0.3", 80)
    steps = (Reply(flags=TcpFlag.RST | TcpFlag.ACK), Again(flags=TcpFlag.SYN), Reply())
    flow = flows.flow(packet, "pod5", *steps)
    assert agree(separate, kind_node, [flow]) == {Verdict.FORWARD: 2, Verdict.DROP: 2}


def test_draws_have_their_shares(kind_node: Node, flows, separate: Ruleset) -> None:
    sent = [flows.flow(flows.udp("10.244.0.5", "10.96.0.9", 9, sport=1024 + n), "pod5") for n in range(1600)]
    with TcEbpfBackend().open(Job(rules=separate, node=kind_node)) as session:
        seen = Counter(flows.outcomes(r)[0].out for r in session.replay(sent))
    assert set(seen) == {"dns3", "dns4"}
    # The standard deviation is 17.3; five of them are exceeded once in a million runs.
    assert abs(seen["dns3"] - 400) < 87


def test_every_third_packet(kind_node: Node, flows, separate: Ruleset) -> None:
    sent = [flows.flow(flows.udp("10.244.0.5", "10.244.0.3", 53, sport=1024 + n), "pod5") for n in range(9)]
    with TcEbpfBackend().open(Job(rules=separate, node=kind_node)) as session:
        assert [flows.outcomes(r)[0].mark for r in session.replay(sent)] == [0, 1, 0] * 3


class WatchedLoader(TcEbpfLoader):
    """Fails when the namespace has conntrack switched on, or a second load is not refused."""

    def load(self, tap: TapNode) -> None:
        super().load(tap)
        with pytest.raises(MachineError, match="cannot attach"):
            super().load(tap)
        assert not Path("/proc/net/nf_conntrack").exists() or not Path("/proc/net/nf_conntrack").read_text()


def test_conntrack_of_the_namespace_stays_out_of_it(kind_node: Node, flows) -> None:
    output = emit(lower(rules("kind-node"), level=1))
    with open_session(kind_node, WatchedLoader(output)) as session:
        there, back = flows.run(session, flows.udp("10.244.0.5", "10.96.0.10", 53), "pod5", Reply())
    assert there.dnat
    assert back.src == flows.ip("10.96.0.10")


def test_masquerading_picks_the_address_that_the_kernel_would(flows) -> None:
    """The first primary address whose network holds the next hop (``inet_select_addr``)."""
    node = node_from_json(
        '{"interfaces": {"up0": ["192.0.2.1/24", "198.51.100.1/24", "192.0.2.2/24", "198.51.100.129/25"],'
        ' "in0": ["10.0.0.1/24"]},'
        ' "routes": [{"dst": "default", "via": "198.51.100.200", "dev": "up0"},'
        ' {"dst": "203.0.113.0/24", "dev": "up0"}]}',
        name="node",
    )
    ruleset = written("*nat", ":POSTROUTING ACCEPT [0:0]", "-A POSTROUTING -o up0 -j MASQUERADE", "COMMIT")
    places = ("8.8.8.8", "203.0.113.9", "192.0.2.77", "198.51.100.7", "198.51.100.222")
    sent = [
        flows.flow(flows.udp("10.0.0.9", place, 9, sport=3000 + n), "in0", Reply())
        for n, place in enumerate(places)
    ]
    assert agree(ruleset, node, sent)[Verdict.FORWARD] == 2 * len(places)


def test_what_cannot_be_carried_is_refused_with_its_line(kind_node: Node) -> None:
    ruleset = written(
        "*filter",
        ":INPUT ACCEPT [0:0]",
        "-A INPUT -m recent --name seen --rcheck --rttl --mask 255.255.255.255 --rsource -j DROP",
        "COMMIT",
    )
    with (
        pytest.raises(UnsupportedError) as caught,
        TcEbpfBackend().open(Job(rules=ruleset, node=kind_node)),
    ):
        pass
    assert [(r.origin.line, r.feature) for r in caught.value.refusals] == [(3, "recent-rttl")]


def test_what_the_verifier_says_reaches_the_caller(kind_node: Node) -> None:
    output = emit(lower(rules("kind-node"), level=1))
    broken = replace(
        output, after=output.after + "\nint nfparity_more(struct __sk_buff *skb) { return nothing; }\n"
    )
    with (
        pytest.raises(MachineError, match=r"does not load: .*\n(?s:.*)undeclared identifier 'nothing'"),
        open_session(kind_node, TcEbpfLoader(broken)),
    ):
        pass


def test_headers_are_found_without_those_of_the_running_kernel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def headers(name: str, *, split: bool) -> Path:
        build = tmp_path / "src" / f"linux-headers-{name}-amd64"
        source = tmp_path / "src" / f"linux-headers-{name}-common" if split else build
        for file in (build / "include/generated/autoconf.h", source / "include/linux/kconfig.h"):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.touch()
        return build

    monkeypatch.setattr(bcc, "_MODULES", tmp_path / "modules")
    monkeypatch.setattr(bcc, "_SOURCES", tmp_path / "src")
    monkeypatch.setattr(bcc, "_UNPACKED", tmp_path / "unpacked")
    assert bcc.find_headers() is None
    whole = headers("6.9.1", split=False)
    assert bcc.find_headers() == (whole, whole)
    newest = headers("6.12.0-1", split=True)
    assert bcc.find_headers() == (newest, newest.with_name("linux-headers-6.12.0-1-common"))
