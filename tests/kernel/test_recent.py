"""Lists of ``-m recent``: the simulator against the kernel's own, and what the translations do when full."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import pytest

from backends.iptables.backend import IptablesLoader
from backends.model.contract import Job
from backends.model.flow import Flow, Pause, Repeated, Send
from backends.model.node import Node
from backends.model.outcome import FlowResult, Verdict
from backends.nftables.backend import NftablesLoader, loader_of
from backends.replay.session import open_session
from backends.simulator import simulate
from backends.tc_ebpf import TcEbpfBackend
from harness.diff.backends import backend
from harness.diff.compare import compare
from nfparity.inputs.batches import load_batches
from translate.ir import Family
from translate.nft import emit
from translate.nft.legalise.recent import SIZE
from translate.passes import lower
from translate.read import read_ruleset

DROP, FORWARD = Verdict.DROP, Verdict.FORWARD
SOURCE = "--mask 255.255.255.255 --rsource"


def filtering(*rules: str) -> str:
    lines = "\n".join(f"-A FORWARD {rule}" for rule in rules)
    return f"*filter\n:INPUT ACCEPT [0:0]\n:FORWARD ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n{lines}\nCOMMIT\n"


def marked(port: int, what: str, action: str = "-j DROP") -> str:
    return f"-p udp -m udp --dport {port} -m recent {what} --name seen {SOURCE} {action}"


RULES = filtering(
    marked(1, "--set", "-j ACCEPT"),
    marked(2, "--rcheck"),
    marked(3, "--update"),
    marked(4, "--remove"),
    marked(5, "--rcheck --seconds 2 --hitcount 3"),
    marked(6, "--rcheck --rttl"),
    marked(7, "--rcheck --seconds 1 --reap"),
    marked(8, "! --update --seconds 1"),
    marked(9, "! --set"),
    marked(10, "! --remove"),
)


def client(flows, number: int, port: int, **fields: object) -> Send:
    packet = flows.udp(f"172.18.1.{number}", "10.244.0.5", port, **{"sport": 1000 + port, **fields})
    return Send(packet=packet, entry="eth0")


def verdicts(result: FlowResult) -> tuple[Verdict, ...]:
    assert result.notes == ()
    (branch,) = result.branches
    return tuple(outcome.verdict for outcome in branch.outcomes)


def one_after_another(flows, *asked: tuple[int, int] | float) -> Flow:
    """``(client, port)`` sends a packet, a number pauses."""
    steps = [
        Pause(seconds=one) if isinstance(one, float) else client(flows, one[0], one[1], sport=2000 + n)
        for n, one in enumerate(asked)
    ]
    return Flow(id="-".join(map(str, asked))[:60], steps=tuple(steps))


def scripts(flows) -> list[Flow]:
    check = one_after_another
    full = [(n, 1) for n in range(1, 101)]
    return [
        check(flows, *full, (1, 1), (101, 1), (1, 2), (2, 2), (3, 2), (101, 2)),
        check(flows, *full, (1, 3), (101, 1), (1, 2), (2, 2)),
        check(flows, (1, 4), (1, 1), (1, 4), (1, 4)),
        check(flows, (1, 1), (1, 5), (1, 1), (1, 1), (1, 5), 2.3, (1, 5)),
        Flow(id="ttl", steps=tuple(client(flows, 1, p, ttl=t) for p, t in ((1, 64), (6, 63), (6, 64)))),
        check(flows, (1, 1), (2, 1), 1.3, (3, 1), (3, 7), (1, 2), (2, 2), (3, 2)),
        check(flows, (1, 8), (1, 2), (1, 1), (1, 8), 1.3, (1, 8), (1, 8)),
        check(flows, (1, 9), (1, 2), (2, 10), (1, 10), (1, 2)),
        check(flows, *[(1, 1)] * 40, (1, 5)),
    ]


@pytest.mark.parametrize(
    "backend_name", ["iptables-legacy", pytest.param("iptables-nft", marks=pytest.mark.slow)], indirect=True
)
def test_the_simulator_keeps_lists_as_the_kernel_does(backend_name: str, kind_node: Node, flows) -> None:
    job = Job(rules=read_ruleset(RULES.encode(), name="rules"), node=kind_node)
    sent = scripts(flows)
    with open_session(kind_node, IptablesLoader(backend_name, RULES)) as session:
        for flow, seen in zip(sent, session.replay(sent), strict=True):
            assert verdicts(seen) == verdicts(simulate(job, flow)), flow.id
    assert {DROP, FORWARD} <= {v for flow in sent for v in verdicts(simulate(job, flow))}


TRANSLATED = filtering(
    marked(1, "--set", "-j ACCEPT"),
    marked(2, "--rcheck"),
    marked(4, "--remove"),
    marked(5, "--rcheck --seconds 3 --hitcount 3"),
    marked(6, "--update --seconds 1 --hitcount 2"),
    marked(7, "--rcheck --hitcount 3"),
    marked(8, "! --update --seconds 1"),
    marked(9, "! --set"),
    marked(10, "! --remove"),
    # Lists behind what asks once, and two changes in one rule.
    marked(11, "--set", "-j DROP").replace("-m recent", "-m conntrack --ctstate NEW,SNAT -m recent"),
    marked(12, f"--remove --name seen {SOURCE} -m recent --set", "-j DROP"),
    marked(13, f"--update --name seen {SOURCE} -m recent ! --remove", "-j DROP"),
    marked(14, f"--remove --name seen {SOURCE} -m recent ! --update", "-j DROP"),
)


@pytest.mark.parametrize("level", [pytest.param(0, marks=pytest.mark.slow), 2])
def test_lists_that_change_where_the_rule_does_not_match(level: int, kind_node: Node, flows) -> None:
    job = Job(rules=read_ruleset(TRANSLATED.encode(), name="rules"), node=kind_node)
    output = emit(lower(job.ruleset, level=level))
    check = one_after_another
    sent = [
        check(flows, (1, 8), (1, 2), (1, 1), (1, 8), 1.3, (1, 8), (1, 8), (1, 2)),
        check(flows, (1, 9), (1, 2), (2, 10), (1, 10), (1, 2), (1, 10)),
        check(flows, (1, 1), (1, 5), (1, 1), (1, 1), (1, 5), (2, 5), 3.3, (1, 5), (1, 7), (1, 1), (1, 5)),
        check(
            flows, (1, 1), (1, 6), (1, 1), (1, 6), (1, 5), 1.3, (1, 6), (1, 5), (1, 1), (1, 6), (1, 1), (1, 6)
        ),
        check(flows, *[(1, 1)] * 3, (1, 7), (1, 4), (1, 7), (1, 1), (1, 7), (1, 1), (1, 1), (1, 7)),
        check(flows, *[(1, 1)] * 3, 1.6, *[(1, 1)] * 3, 1.6, (1, 5), (1, 1), (1, 5)),
        check(flows, (1, 2), (1, 11), (1, 2), (1, 12), (1, 2), (2, 12), (2, 2)),
        check(flows, (1, 13), (1, 1), (1, 13), (1, 2), (1, 1), (1, 14), (1, 2), (2, 14)),
    ]
    with (
        open_session(kind_node, IptablesLoader("iptables-legacy", TRANSLATED)) as one,
        open_session(kind_node, NftablesLoader(output.text, flush=output.flush)) as other,
        ThreadPoolExecutor(2) as pool,  # the pauses of both at once
    ):
        kernel, translated = pool.map(lambda session: [*map(verdicts, session.replay(sent))], (one, other))
    assert translated == kernel
    assert [verdicts(simulate(job, flow)) for flow in sent] == kernel


_OF: Final = {1: "a", 2: "b"}
"""The list of each port."""

FULL = filtering(
    f"-p udp -m recent --rcheck --seconds 60 --name seen {SOURCE} -j DROP",
    marked(1, "--set", "-j REJECT --reject-with icmp-host-prohibited"),
)


@pytest.mark.parametrize("level", [0, 1, 2])
def test_a_full_set_keeps_no_packet_from_its_action(level: int, kind_node: Node, flows) -> None:
    output = emit(lower(read_ruleset(FULL.encode(), name="rules"), level=level))
    small = output.text.replace(f"size {SIZE}", "size 2")
    assert small != output.text
    flow = one_after_another(flows, *[(n, 1) for n in (1, 2, 3, 4)], *[(n, 2) for n in (1, 2, 3, 4)])
    with open_session(kind_node, NftablesLoader(small, flush=output.flush)) as session:
        (seen,) = session.replay([flow])
    assert verdicts(seen) == (*[Verdict.REJECT] * 4, DROP, DROP, FORWARD, FORWARD)


def test_the_tc_program_holds_more_than_a_hundred(kind_node: Node, flows) -> None:
    job = Job(rules=read_ruleset(FULL.encode(), name="rules"), node=kind_node)
    clients = range(1, 151)
    flow = one_after_another(flows, *[(n, 1) for n in clients], *[(n, 2) for n in clients])
    backend = TcEbpfBackend()
    if not backend.probe().ok:
        pytest.skip(backend.probe().reason)
    with backend.open(job) as session:
        (seen,) = session.replay([flow])
    assert verdicts(seen) == (*[Verdict.REJECT] * 150, *[DROP] * 150)
    assert verdicts(simulate(job, flow))[150:].count(DROP) == 100


def test_lists_are_empty_for_every_flow(backend_name: str, kind_node: Node, flows) -> None:
    output = emit(lower(read_ruleset(FULL.encode(), name="rules"), level=1))
    loaders = (IptablesLoader(backend_name, FULL), NftablesLoader(output.text, flush=output.flush))
    for loader in loaders:
        with open_session(kind_node, loader) as session:
            sent = [Flow(id=str(n), steps=(client(flows, 1, 1, sport=3000 + n),)) for n in range(3)]
            assert [verdicts(r) for r in session.replay(sent)] == [(Verdict.REJECT,)] * 3


TWO_LISTS = filtering(
    *(f"-p udp -m udp --dport {port} -m recent --rcheck --name {name} -j DROP" for port, name in _OF.items()),
    *(f"-p udp -m udp --dport {port} -m recent --set --name {name} -j ACCEPT" for port, name in _OF.items()),
)


@pytest.mark.parametrize("level", [1, 2])
def test_only_named_lists_are_emptied(level: int, backend_name: str, kind_node: Node, flows) -> None:
    """A wrong name leaves the address in the list that the flow filled, so that it is emptied by name."""
    output = emit(lower(read_ruleset(TWO_LISTS.encode(), name="rules"), level=level))
    for loader in (IptablesLoader(backend_name, TWO_LISTS), loader_of(output, Family.IP)):
        with open_session(kind_node, loader) as session:
            for port, right, wrong in ((1, "a", "b"), (2, "b", "a")):
                flow = Flow(id="f", steps=(client(flows, 1, port),))
                names = (frozenset({right}), frozenset({right}), frozenset({wrong}), None, None)
                results = session.replay([Repeated(flow, 1, filled=each) for each in names])
                ends = [verdict for result in results for verdict in verdicts(result)]
                assert ends == [FORWARD, FORWARD, FORWARD, DROP, FORWARD]


@pytest.mark.parametrize(
    ("name", "level"),
    [
        ("iptables-legacy", 1),
        ("iptables-nft", 1),
        ("nftables", 0),
        ("nftables", 1),
        *(pytest.param("tc-ebpf", level, marks=pytest.mark.slow) for level in (0, 1)),
        ("tc-ebpf", 2),
        ("nftables", 2),
    ],
)
def test_affinity_of_a_real_kube_proxy(name: str, level: int) -> None:
    """These cases stand in a folder of their own, because they do not reach every rule of the ruleset."""
    folder = Path(__file__).parent.parent / "corpus" / "cases-kube-real"
    (batch,) = load_batches(rules=None, corpus=str(folder), node=None)
    job = Job(rules=batch.ruleset, node=batch.node, level=level)
    tested = backend(name)
    if not (found := tested.probe()).ok:
        pytest.skip(f"{name}: {found.reason}")
    with tested.open(job) as session:
        for flow, seen in zip(batch.flows, session.replay(batch.flows), strict=True):
            assert list(compare(flow, simulate(job, flow), seen)) == [], flow.id
