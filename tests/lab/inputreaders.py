"""Readers of inputs of every kind, with original inputs for each."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from backends.model.node import node_from_json
from harness.corpus.formats.capturefile import read_capture
from harness.corpus.formats.jsonlines import read_flows
from harness.corpus.formats.outcomes import read_results
from harness.corpus.formats.rulefile import read_some
from harness.explain.description import describe
from harness.explain.graph import tree_lines
from nfparity.capture.anonymise.snapshot import anonymise
from nfparity.kubeproxy.objects import read_objects
from nfparity.migrate.planning.plan import FamilyPlan, MigrationPlan
from nfparity.migrate.planning.translation import digest_of_text
from nfparity.snapshot import Variant, load_snapshot
from nfparity.watch.table_state import TableState
from translate.ir import Family, Ruleset
from translate.irtext import parse_program, print_program
from translate.nft import emit
from translate.nftlisting import read_listing
from translate.passes import lower
from translate.read import read_pieces, read_ruleset, with_sets
from translate.read.ipset import read_ipsets
from translate.write import write_save

__all__ = ["LONGEST", "TARGETS", "Target"]

_CORPUS = Path(__file__).parents[1] / "corpus"
LONGEST = 6_000
"""The maximum size of an original input in bytes; of larger inputs, pieces are taken."""


@dataclass(frozen=True, slots=True)
class Target:
    """A reader with the quick steps that follow it, and files that it can read.

    ``in_blocks`` is for formats with fixed offsets: bytes are overwritten, and none are inserted.
    """

    read: Callable[[bytes], object]
    seeds: tuple[bytes, ...]
    in_blocks: bool = False


def _worked(ruleset: Ruleset) -> None:
    list(tree_lines(ruleset, start=None))
    list(describe(ruleset))
    write_save(ruleset)
    emit(lower(ruleset, level=1))


def _rules(data: bytes) -> None:
    _worked(read_some(data, name="rules"))


def _page(data: bytes) -> None:
    for ruleset in read_pieces(data, name="page"):
        _worked(ruleset)


def _nft(data: bytes) -> None:
    read_listing(data.decode("utf-8", "surrogateescape"), name="listing")


def _program(data: bytes) -> None:
    program = parse_program(data.decode("utf-8", "surrogateescape"), name="program")
    assert parse_program(print_program(program), name="printed") == program


def _plan(data: bytes) -> None:
    MigrationPlan.from_text(data.decode("utf-8", "surrogateescape"), name="plan")


def _archive(data: bytes) -> None:
    with tempfile.NamedTemporaryFile(suffix=".tar.gz") as file:
        file.write(gzip.compress(_with_check_sums(data), 1))
        file.flush()
        snapshot = load_snapshot(file.name)
        for key in snapshot.rules:
            tree_lines(snapshot.rules[key].whole(), start=None)


def _with_check_sums(data: bytes) -> bytes:
    """Correct the checksums of a tar archive's headers, because the reader checks them first."""
    made = bytearray(data)
    for at in range(0, len(made) - 511, 512):
        if made[at + 257 : at + 262] == b"ustar":
            made[at + 148 : at + 156] = b" " * 8
            made[at + 148 : at + 156] = b"%06o\0 " % sum(made[at : at + 512])
    return bytes(made)


def _snapshot_file(name: str) -> Callable[[bytes], None]:
    def read(data: bytes) -> None:
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, name).write_bytes(data)
            load_snapshot(folder)
        anonymise({name: data}, bytes(16))

    return read


def _pcap(data: bytes) -> None:
    with tempfile.NamedTemporaryFile(suffix=".pcap") as file:
        file.write(data)
        file.flush()
        read_capture(Path(file.name))


def _files(pattern: str) -> tuple[bytes, ...]:
    contents = [path.read_bytes() for path in sorted(_CORPUS.glob(pattern)) if path.is_file()]
    assert contents, pattern
    return tuple([data for data in contents if len(data) <= LONGEST] or contents)


def _packed() -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, data in (("iptables-save", _RULES), ("addr.json", _ADDR), ("route.json", b"[]")):
            info = tarfile.TarInfo(f"node/{name}")
            info.size = len(data)
            info.pax_headers = {"comment": "x"}
            archive.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def _programs() -> tuple[bytes, ...]:
    folder = _CORPUS / "rulesets/every-construct"
    ipsets = read_ipsets((folder / "ipset-save").read_bytes(), name="ipsets")
    ruleset = with_sets(read_ruleset((folder / "rules.iptables-save").read_bytes(), name="rules"), ipsets)
    return tuple(print_program(lower(ruleset, level=level)).encode() for level in (0, 2))


def _made_plan() -> str:
    rules = _RULES.decode()
    output = emit(lower(read_ruleset(rules.encode(), name="rules"), level=2))
    family = FamilyPlan(
        family=Family.IP,
        variant=Variant.LEGACY,
        rules=rules,
        ipsets="",
        level=2,
        translation=digest_of_text(output.text),
        table_state=TableState(flags=(), chains={}, collections={}, others={}),
    )
    trial = {"ip": {"flows": 1, "seconds": 2.5}}
    return MigrationPlan(families=(family,), node="{}", seed=3, trial=trial).text()


_RULES = b"*filter\n:INPUT ACCEPT [0:0]\n-A INPUT -s 192.0.2.1/32 -p tcp -m tcp --dport 22 -j DROP\nCOMMIT\n"
_ADDR = json.dumps(
    [
        {
            "ifindex": 2,
            "ifname": "eth0",
            "flags": ["UP"],
            "link_type": "ether",
            "addr_info": [{"family": "inet", "local": "192.0.2.2", "prefixlen": 24, "scope": "global"}],
        }
    ]
).encode()
_ROUTE = json.dumps(
    [
        {"dst": "default", "gateway": "192.0.2.1", "dev": "eth0", "flags": []},
        {"dst": "192.0.2.0/24", "dev": "eth0", "protocol": "kernel", "scope": "link", "prefsrc": "192.0.2.2"},
    ]
).encode()
_PAGE = b"""<p>First look at what there is:</p>
$ sudo iptables -L -n -v --line-numbers
Chain INPUT (policy ACCEPT 12 packets, 3456 bytes)
num   pkts bytes target     prot opt in     out     source               destination
1        0     0 ACCEPT     tcp  --  eth0   *       192.0.2.0/24         0.0.0.0/0   tcp dpt:22 /* ssh */
2        3   180 LOG        all  --  *      *       0.0.0.0/0            0.0.0.0/0   limit: avg 5/min burst 5

Table nat:
Chain PREROUTING (policy ACCEPT)
target     prot opt source               destination
DNAT       tcp  --  anywhere             192.0.2.2            tcp dpt:http to:10.0.0.2:8080

then save it:

    *filter
    :INPUT DROP [0:0]
    -A INPUT -i lo -j ACCEPT
    COMMIT
"""
_RESULTS = (
    b'{"id": "one", "outcomes": [{"probability": 1, "verdict": "forward", "out": "eth0", "src": "192.0.2.9",'
    b' "dst": "198.51.100.7", "sport": {"min": 1024, "max": 65535}, "dport": 80, "ttl": 63, "mark": 0}]}\n'
)
_META = b'{"hostname": "node-1", "version": "1", "kernel": "6.1", "notes": ["one"], "interfaces": 3}'
_PCAP = (
    bytes.fromhex("d4c3b2a1020004000000000000000000ffff000001000000")
    + bytes.fromhex("00000000000000002a0000002a000000")
    + bytes.fromhex("0200000000010200000000020800")
    + bytes.fromhex("4500001c00010000401100000a0000010a00000230390035000800000000")[:28]
)

TARGETS = {
    "rules": Target(
        _rules, (*_files("rulesets/*/rules.iptables-save"), *_files("rulesets/*/rules.ip6tables-save"))
    ),
    "page": Target(_page, (_PAGE,)),
    "ipsets": Target(lambda data: read_ipsets(data, name="ipsets"), _files("rulesets/*/ipset-save")),
    "node": Target(lambda data: node_from_json(data, name="node"), _files("rulesets/*/node.json")),
    "flows": Target(lambda data: read_flows(data, name="flows"), _files("cases/*/flows.jsonl")),
    "results": Target(
        lambda data: read_results(data, name="results"), (_RESULTS, *_files("cases/*/expect.jsonl"))
    ),
    "objects": Target(lambda data: read_objects(data, name="objects"), _files("rulesets/*/objects.json")),
    "nft": Target(_nft, _files("listings/*.nft")),
    "nft-json": Target(_nft, _files("rulesets/kube-real/realistic.nft.json")),
    "program": Target(_program, _programs()),
    "plan": Target(_plan, (_made_plan().encode(),)),
    "archive": Target(_archive, (_packed(),), in_blocks=True),
    "addr.json": Target(_snapshot_file("addr.json"), (_ADDR,)),
    "route.json": Target(_snapshot_file("route.json"), (_ROUTE,)),
    "meta.json": Target(_snapshot_file("meta.json"), (_META,)),
    "ipset-save": Target(_snapshot_file("ipset-save"), _files("rulesets/*/ipset-save")),
    "pcap": Target(_pcap, (_PCAP,)),
}
