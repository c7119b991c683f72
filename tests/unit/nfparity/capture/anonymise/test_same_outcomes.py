"""An anonymised snapshot says the same of what packets do, and nothing of where it is from."""

from __future__ import annotations

import re
from functools import cache
from ipaddress import IPv6Interface
from pathlib import Path

import pytest

from backends.model.contract import Job
from backends.simulator import Simulation
from harness.corpus.formats.jsonlines import read_flows
from harness.corpus.formats.outcomes import result_to_json
from harness.corpus.generate import generate_corpus
from harness.corpus.random.flows import random_flows
from nfparity.capture.anonymise.mapping import Mapping
from nfparity.capture.anonymise.snapshot import anonymise
from nfparity.capture.files import write_files
from nfparity.snapshot import Snapshot, load_snapshot
from tests.unit.nfparity.capture.anonymise.helpers.originals import Original, mapped, moved_flows
from translate.ir import Family

ORIGINALS = [
    Original("kind-node/rules.iptables-save", "kind-node/worker.json"),
    Original("kube-real/rules.iptables-save", "kube-real/node.json", generated=False),
    Original("kube-real/rules.ip6tables-save", "kube-real/node6.json"),
    Original("kube-ipvs/rules.iptables-save", "kube-ipvs/node.json", generated=False),
    Original("calico/rules.iptables-save", "calico/node.json", generated=False),
    Original("aws-vpc-cni/rules.iptables-save", "aws-vpc-cni/node.json", generated=False),
    Original("ip-masq-agent/rules.iptables-save", "ip-masq-agent/node.json", generated=False),
]
LARGER = Original("kube-real/rules.iptables-save", "kube-real/node.json")
"""With its generated corpus; that of the other family is always tried."""


@pytest.fixture(
    params=[*ORIGINALS, pytest.param(LARGER, marks=pytest.mark.slow)],
    ids=[*(o.rules for o in ORIGINALS), f"{LARGER.rules}-generated"],
)
def original(request: pytest.FixtureRequest) -> Original:
    found: Original = request.param
    return found


@cache
def anonymised(original: Original) -> tuple[dict[str, bytes], Mapping]:
    return anonymise(original.files(), bytes(range(32)))


def read(folder: Path, name: str, files: dict[str, bytes]) -> Snapshot:
    write_files(str(folder / name), files, now=0.0)
    return load_snapshot(str(folder / name))


def test_packets_fare_alike(original: Original, tmp_path: Path) -> None:
    files, mapping = anonymised(original)
    before, after = read(tmp_path, "before", original.files()), read(tmp_path, "after", files)
    jobs = [Job(rules=s.ruleset(original.family), node=s.node) for s in (before, after)]
    assert before.node.assumed == after.node.assumed == ()
    flows = tuple(random_flows(jobs[0].ruleset, jobs[0].node, count=300, seed=3))
    if original.generated:
        flows += generate_corpus(jobs[0], seed=1).flows
    moved = read_flows(moved_flows(flows, mapping).encode(), name="moved", node=jobs[1].node)
    first, second = (Simulation(job, assuming=True) for job in jobs)
    told = 0
    for old, new in zip(flows, moved, strict=True):
        expected = mapped(result_to_json(first.simulate(old), old.family), mapping)
        got = mapped(result_to_json(second.simulate(new), new.family), _Same())
        assert got == expected, old.id
        told += len(expected["outcomes"])
    assert told >= len(flows)


class _Same(Mapping):
    """Leaves everything as it is; what ``mapped`` does besides still happens."""

    def __init__(self) -> None:
        super().__init__(b"")


def is_ipv6(text: str) -> bool:
    try:
        return IPv6Interface(text).version == 6
    except ValueError:
        return False


def originals_in(files: dict[str, bytes]) -> tuple[set[str], set[str]]:
    """Addresses and names of the files that are someone's own."""
    text = "\n".join(data.decode() for data in files.values())
    addresses = set(re.findall(r"(?<![\w.:])\d+(?:\.\d+){3}(?:/\d+)?(?![\w.])", text))
    addresses |= {a for a in re.findall(r"(?<![\w.:])[0-9a-f:]{4,}(?:/\d+)?(?![\w.:])", text) if is_ipv6(a)}
    common = re.compile(
        r"(?:0|127|169\.254|224|255)\.|::|ff|fe80::/10|(?:10\.0\.0\.0/8|172\.16\.0\.0/12)$|192\.168\.0\.0/16$"
    )
    services = {
        n for ns, s, p in re.findall(r"([a-z][\w-]*)/([a-z][\w-]+):([a-z][\w-]*)", text) for n in (ns, s, p)
    }
    services |= set(
        re.findall(
            r"KUBE-SEP-[A-Z2-7]{16}|cali-(?:tw|fw|pi|po)-[\w-]{8,}|cali[0-9a-f]{11}|test-node|node-b", text
        )
    )
    known = {"default", "kube-system", "kubernetes", "kube-dns", "https", "http", "dns", "dns-tcp", "metrics",
             "tcp", "udp", "sctp"}  # fmt: skip
    return {a for a in addresses if not common.match(a)}, services - known


def test_nothing_of_the_original_is_left(original: Original) -> None:
    files, _ = anonymised(original)
    addresses, names = originals_in(original.files())
    assert addresses
    assert names or original.family is Family.IP
    for name, data in files.items():
        text = data.decode()
        if name == "meta.json":
            assert "test-node" not in text
        for one in addresses:
            plain = one.partition("/")[0] if one.endswith(("/32", "/128")) else one
            assert not re.search(rf"(?<![\w.:]){re.escape(plain)}(?![\w.:])", text), (name, plain)
        for one in names:
            assert not re.search(rf"(?<![\w-]){re.escape(one)}(?![\w-])", text), (name, one)
