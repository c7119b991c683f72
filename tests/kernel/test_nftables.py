"""The nftables translation on this kernel: loads, replaces itself, and does what the rules say."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest

from backends.model.contract import Job
from backends.model.flow import Flow, Reply
from backends.model.node import Node
from backends.nftables.backend import NftablesBackend, NftablesLoader
from backends.replay.session import KernelSession, open_session
from backends.replay.worker import Worker
from backends.simulator import SimulatorBackend
from backends.testbed.command import run
from backends.testbed.libnftables import NftHandle
from backends.testbed.tapnode import TapNode
from harness.corpus.cases import read_cases
from harness.corpus.random.flows import random_flows
from harness.diff.compare import compare
from tests.kernel.helpers.availability import require
from tests.lab.traffic.host import Host, Request, Start
from translate.errors import MachineError
from translate.ir import Ruleset
from translate.nft import emit
from translate.passes import LEVELS, lower
from translate.read import read_ruleset

CORPUS = Path(__file__).parents[1] / "corpus"


@pytest.fixture(scope="module", autouse=True)
def _needs_nftables() -> None:
    require(NftablesBackend())


def rules(name: str) -> Ruleset:
    return read_ruleset((CORPUS / "rulesets" / name / "rules.iptables-save").read_bytes(), name=name)


def job(ruleset: Ruleset, node: Node, level: int) -> Job:
    return Job(rules=ruleset, node=node, level=level)


def agree(ruleset: Ruleset, node: Node, flows: list[Flow], level: int) -> None:
    """Insist that every flow ends on the kernel in a way that the simulator knows."""
    with SimulatorBackend().open(job(ruleset, node, level)) as reference:
        expected = list(reference.replay(flows))
    with NftablesBackend().open(job(ruleset, node, level)) as session:
        observed = list(session.replay(flows))
    differences = [
        (flow.id, str(flow.first.packet), [str(m) for m in compare(flow, e, o)], o.notes)
        for flow, e, o in zip(flows, expected, observed, strict=True)
        if compare(flow, e, o) or o.notes
    ]
    assert differences == []
    assert len({o.verdict for r in observed for b in r.branches for o in b.outcomes}) >= 2


@pytest.mark.parametrize("level", LEVELS)
def test_the_kind_nodes_corpus(level: int) -> None:
    by_node: dict[str, list[Flow]] = {}
    cases = read_cases(CORPUS / "cases")
    for case in cases:
        if case.ruleset == cases[0].ruleset:
            by_node.setdefault(str(case.node_path.resolve()), []).extend(case.flows)
    nodes = {str(case.node_path.resolve()): case.node for case in cases}
    for path, flows in by_node.items():
        agree(cases[0].ruleset, nodes[path], flows, level)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", ["kind-node", "nft-traps"])
def test_random_packets_around_the_rules(name: str, level: int, kind_node: Node) -> None:
    ruleset = rules(name)
    agree(ruleset, kind_node, list(random_flows(ruleset, kind_node, seed=20, count=400)), level)


DRAW = "-m statistic --mode random --probability"


def marks(session: KernelSession, flows: list[Flow]) -> list[int | None]:
    return [r.branches[0].outcomes[0].mark for r in session.replay(flows)]


def marking(*shares: str) -> Ruleset:
    """Rules that give each packet one mark, by chance."""
    chains = "".join(f":m{n} - [0:0]\n" for n in range(len(shares)))
    ladder = "".join(f"-A PREROUTING {share} -j m{n}\n" for n, share in enumerate(shares))
    ends = "".join(
        f"-A m{n} -j MARK --set-xmark {n + 1:#x}/0xff\n-A m{n} -j ACCEPT\n" for n in range(len(shares))
    )
    hooks = "".join(
        f":{h} ACCEPT [0:0]\n" for h in ("PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING")
    )
    return read_ruleset(f"*mangle\n{hooks}{chains}{ladder}{ends}COMMIT\n".encode(), name="marking")


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(
    ("shares", "expected"),
    [
        ((f"{DRAW} 0.25000000000", f"{DRAW} 0.50000000000", ""), (0.25, 0.375, 0.375)),
        ((f"{DRAW} 0.33333333349", f"{DRAW} 0.50000000000", ""), (1 / 3, 1 / 3, 1 / 3)),
    ],
)
def test_draws_have_their_shares(
    level: int, shares: tuple[str, ...], expected: tuple[float, ...], kind_node: Node, flows
) -> None:
    sent = [
        flows.flow(flows.udp("10.244.0.5", "10.244.0.3", 53, sport=1024 + n), "pod5") for n in range(4000)
    ]
    with NftablesBackend().open(job(marking(*shares), kind_node, level)) as session:
        seen = Counter(marks(session, sent))
    assert set(seen) == {n + 1 for n in range(len(shares))}
    # Pearson's chi-squared with two degrees of freedom exceeds 27.6 once in a million runs.
    chi2 = sum((seen[n + 1] - 4000 * p) ** 2 / (4000 * p) for n, p in enumerate(expected))
    assert chi2 < 27.6


@pytest.mark.parametrize("level", LEVELS)
def test_every_third_packet(level: int, kind_node: Node, flows) -> None:
    ruleset = marking("-m statistic --mode nth --every 3 --packet 1", "")
    sent = [flows.flow(flows.udp("10.244.0.5", "10.244.0.3", 53, sport=1024 + n), "pod5") for n in range(12)]
    with NftablesBackend().open(job(ruleset, kind_node, level)) as session:
        assert marks(session, sent) == [2, 1, 2] * 4


class Twice(NftablesLoader):
    """Loads its text, and then again, as a change of rules would."""

    def load(self, tap: TapNode) -> None:
        super().load(tap)
        super().load(tap)
        handle = NftHandle()
        listed = handle.run("list tables")
        assert listed.splitlines().count("table ip nfparity") == 1
        before = handle.run("list table ip nfparity")
        with pytest.raises(MachineError, match="nftables does not take the rules"):
            handle.run("delete table ip nfparity\nadd rule ip nfparity nowhere drop\n")
        assert handle.run("list table ip nfparity") == before
        handle.close()


@pytest.mark.parametrize("call", ["-g", "-p udp -g", "-s 10.244.0.0/16 -j"])
def test_chains_that_lie_deeper_than_nf_tables_allows(call: str, kind_node: Node, flows) -> None:
    deep = 20
    lines = [f":c{n} - [0:0]" for n in range(deep)] + [f"-A FORWARD -d 198.51.100.0/24 {call} c0"]
    for n in range(deep):
        lines.append(f"-A c{n} -s 10.244.0.{100 + n} -j DROP")
        lines += [f"-A c{n} {call} c{n + 1}"] * (n + 1 < deep)
    lines.append("-A FORWARD -d 198.51.100.2 -p tcp -j DROP")
    text = "\n".join(("*filter", ":FORWARD ACCEPT [0:0]", *lines, "COMMIT", ""))
    sent = [
        flows.flow(make(f"10.244.0.{source}", f"198.51.100.{to}", 5), "pod5")
        for make in (flows.udp, flows.tcp)
        for source in (5, 100, 114, 115, 119)
        for to in (1, 2)
    ]
    for level in LEVELS:
        agree(read_ruleset(text.encode(), name="deep"), kind_node, sent, level)


def test_loading_again_replaces_the_table_and_failing_changes_nothing(kind_node: Node, flows) -> None:
    text = emit(lower(rules("kind-node"), level=1)).text
    with open_session(kind_node, Twice(text)) as session:
        there, back = flows.run(session, flows.udp("10.244.0.5", "10.96.0.10", 53), "pod5", Reply())
    assert there.dnat
    assert back.src == flows.ip("10.96.0.10")


class Deleted(NftablesLoader):
    """Loads the rules, and takes them away again."""

    def __init__(self, text: str, delete: str) -> None:
        super().__init__(text)
        self._delete = delete

    def load(self, tap: TapNode) -> None:
        super().load(tap)
        handle = NftHandle()
        handle.run(self._delete)
        assert "nfparity\n" not in handle.run("list tables").replace("nfparity_stack_rst", "")


def test_deleting_leaves_nothing(kind_node: Node, flows) -> None:
    output = emit(lower(rules("kind-node"), level=1))
    with open_session(kind_node, Deleted(output.text, output.delete)) as session:
        (there,) = flows.run(session, flows.udp("10.244.0.5", "10.96.0.10", 53), "pod5")
    assert not there.dnat


def test_what_libnftables_says_reaches_the_caller(kind_node: Node) -> None:
    loader = NftablesLoader("table ip nfparity {\n\tchain a {\n\t\tjump nowhere\n\t}\n}\n")
    with pytest.raises(MachineError, match="No such file or directory"), open_session(kind_node, loader):
        pass


SETS = """\
table ip nfparity {
	set filled {
		typeof ip saddr
		size 1048576
		flags dynamic,timeout
		timeout 60s
		comment "recent, size 9999"
	}

	set small {
		typeof ip saddr
		size 8
		flags dynamic
	}

	set given {
		typeof ip saddr
		size 65535
		flags dynamic
		elements = { 10.0.0.1 }
	}
}
"""


def test_a_set_that_packets_fill_has_room_for_few() -> None:
    """Unless it has entries from the beginning, or less room already."""
    with Worker(Start("node", {}, (Listed,))) as worker:
        listed = worker.ask(Listed(SETS))
    assert [line.split()[1] for line in listed.splitlines() if line.startswith("\t\tsize ")] == [
        "1024",
        "8",
        "65535",
    ]


@dataclass(frozen=True)
class Listed(Request):
    """Loads a text, and returns the list of what is loaded."""

    text: str

    def run(self, host: Host) -> str:
        loader = NftablesLoader(self.text)
        loader.load(cast(TapNode, host))
        loader.close()
        return run(("nft", "list", "ruleset"), "").stdout
