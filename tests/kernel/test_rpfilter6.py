"""``-m rpfilter`` over IPv6: packets from everywhere, on every device, and routes of two devices."""

from __future__ import annotations

import json
from ipaddress import ip_network
from pathlib import Path
from random import Random

import pytest

from backends.iptables.backend import IptablesBackend
from backends.model.contract import Backend, Job
from backends.model.flow import Flow
from backends.model.node import Node, node_from_json
from backends.nftables.backend import NftablesBackend
from backends.simulator import simulate
from backends.tc_ebpf import TcEbpfBackend
from harness.corpus.formats.jsonlines import read_flows
from harness.corpus.formats.rulefile import InputOptions
from harness.diff.compare import compare
from nfparity.inputs.batches import load_node
from nfparity.inputs.rules import load_rules
from tests.kernel.helpers.availability import require
from translate.ir import Family
from translate.read import read_ruleset

FOLDER = Path(__file__).parent.parent / "corpus" / "rulesets" / "rpfilter6"
RULES = load_rules(str(FOLDER / "rules.ip6tables-save"), InputOptions(family=Family.IP6))
BACKENDS: tuple[Backend, ...] = (
    *(IptablesBackend(name) for name in ("iptables-legacy", "iptables-nft")),
    NftablesBackend(),
    TcEbpfBackend(),
)


def different(backend: Backend, node_file: Path) -> list[str]:
    """Return the flows on which a backend and the simulator differ."""
    require(backend)
    job = Job(rules=RULES, node=load_node(str(node_file), RULES))
    flows = read_flows((FOLDER / "flows.jsonl").read_bytes(), name="flows", node=job.node)
    with backend.open(job) as session:
        seen = list(session.replay(flows))
    return [f.id for f, got in zip(flows, seen, strict=True) if compare(f, simulate(job, f), got)]


@pytest.mark.parametrize("backend", BACKENDS, ids=lambda backend: backend.name)
def test_the_way_back(backend: Backend) -> None:
    assert different(backend, FOLDER / "node.json") == []


def test_the_flows_pass_and_fail() -> None:
    job = Job(rules=RULES, node=load_node(str(FOLDER / "node.json"), RULES))
    flows = read_flows((FOLDER / "flows.jsonl").read_bytes(), name="flows", node=job.node)
    verdicts = [_verdict(job, flow) for flow in flows]
    assert min(verdicts.count(verdict) for verdict in set(verdicts)) >= 12
    assert len(set(verdicts)) == 4


def _verdict(job: Job, flow: Flow) -> str:
    (branch,) = simulate(job, flow).branches
    (outcome,) = branch.outcomes
    assert outcome is not None
    return outcome.verdict


@pytest.mark.parametrize("backend", BACKENDS, ids=lambda backend: backend.name)
def test_routes_of_two_devices_to_one_prefix(backend: Backend, tmp_path: Path) -> None:
    """The note on the translation says that nftables takes the first of them."""
    data = json.loads((FOLDER / "node.json").read_text())
    data["interfaces"]["pod0"].append("fd00:2::7/64")
    node = tmp_path / "node.json"
    node.write_text(json.dumps(data))
    assert bool(different(backend, node)) is (backend.name == "nftables")


OPTIONS = tuple(
    " ".join(("-m rpfilter", *options))
    for loose in ((), ("--loose",))
    for local in ((), ("--accept-local",))
    for invert in ((), ("--invert",))
    for options in ((*loose, *local, *invert),)
)
EVERY_FORM = "\n".join(
    (
        "*raw",
        ":PREROUTING ACCEPT [0:0]",
        *(f"-A PREROUTING -p udp --dport {n} {text} -j DROP" for n, text in enumerate(OPTIONS, 1)),
        "COMMIT\n",
    )
)
NETWORKS = ("fd00:1::/64", "fd00:1::/48", "fd00:2::/64", "fd00:2:0:0:8000::/65", "fd00:3::/126", "fd00::/16")
DEVICES = ("eth0", "pod0", "pod1")


def drawn(draw: Random) -> tuple[Node, list[str]]:
    """Return a node with random addresses and routes, and addresses near those."""
    interfaces: dict[str, list[str]] = {}
    near = ["::", "2001:db8:9::9", "fe80::9", "fd00:9::9", "fe80:0:0:1::9"]
    for device in DEVICES:
        here = [str(ip_network(text)[draw.randint(1, 3)]) + text[text.index("/") :] for text in NETWORKS]
        of_address = {text.partition("/")[0]: text for text in draw.sample(here, draw.randint(1, 3))}
        interfaces[device] = list(of_address.values())
        if draw.random() < 0.7:
            interfaces[device].append(f"fe80::{draw.randint(1, 3)}/64")
        near += [text.partition("/")[0] for text in interfaces[device]]
    routes: list[dict[str, str]] = []
    for text in draw.sample(("default", "fe80::/10", "fd00:4::/32", *NETWORKS), 4):
        if draw.random() < 0.3:
            kind = draw.choice(("unreachable", "prohibit", "blackhole", "throw"))
            routes.append({"dst": text, "type": kind})
        else:
            routes.append({"dst": text, "dev": draw.choice(DEVICES)})
    for text in NETWORKS:
        near += [str(ip_network(text)[n]) for n in (0, 1, 2, 3)]
    near += [str(ip_network(text)[-9]) for text in NETWORKS if not text.endswith("126")]
    settings = {"net.ipv6.conf.all.forwarding": draw.choice("01")}
    text = json.dumps({"interfaces": interfaces, "routes": routes, "sysctls": settings})
    return node_from_json(text, name="node"), sorted(set(near))


def sent(draw: Random, node: Node, near: list[str], number: int) -> list[Flow]:
    """Return random packets to the node, from the addresses ``near``.

    With --accept-local, none has a link-local source of the node (docs/limits.md).
    """
    own = {i.name: [str(a).partition("/")[0] for a in i.addresses] for i in node.interfaces}
    links = {a for addresses in own.values() for a in addresses if a.startswith("fe80:")}
    lines = []
    for n in range(number):
        device, form = draw.choice(DEVICES), n % len(OPTIONS)
        local = "--accept-local" in OPTIONS[form]
        src = draw.choice([a for a in near if not local or a not in links])
        line = {"id": f"f{n}", "in": device, "src": src, "dst": draw.choice(own[device])}
        lines.append({**line, "proto": "udp", "sport": 20000 + n, "dport": 1 + form})
    text = "".join(f"{json.dumps(line)}\n" for line in lines)
    return list(read_flows(text.encode(), name="flows", node=node))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("backend", [BACKENDS[0], BACKENDS[-1]], ids=lambda backend: backend.name)
def test_random_routes(backend: Backend, seed: int) -> None:
    require(backend)
    draw = Random(seed)
    node, near = drawn(draw)
    rules = read_ruleset(EVERY_FORM.encode(), name="rules", family=Family.IP6)
    job = Job(rules=rules, node=node)
    flows = sent(draw, node, near, 400)
    with backend.open(job) as session:
        seen = list(session.replay(flows))
    assert [f.id for f, got in zip(flows, seen, strict=True) if compare(f, simulate(job, f), got)] == []
