"""Random changes of inputs of every kind: each must give a result or one of nfparity's own errors.

The readers are called in this process, and behind them what is quick. Run as a command, with a number of
inputs and a seed, it tells of each input that ended in something else, and of those that had no end.
"""

from __future__ import annotations

import gzip
import io
import json
import random
import signal
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from types import FrameType

from backends.model.node import node_from_json
from harness.corpus.capturefile import read_capture
from harness.corpus.jsonlines import read_flows
from harness.corpus.outcomes import read_results
from harness.corpus.rulefile import read_some
from harness.explain.description import describe
from harness.explain.graph import tree_lines
from harness.files.errors import CaptureError
from nfparity.capture.anonymise.snapshot import anonymise
from nfparity.kubeproxy.objects import read_objects
from nfparity.migrate.plan import FamilyPlan, MigrationPlan
from nfparity.migrate.translation import digest_of_text
from nfparity.snapshot import Variant, load_snapshot
from nfparity.watch.table_state import TableState
from translate.errors import NfparityError
from translate.ir import Family, Ruleset
from translate.irtext import parse_program, print_program
from translate.nft import emit
from translate.nftlisting import read_listing
from translate.passes import lower
from translate.read import read_pieces, read_ruleset, with_sets
from translate.read.ipset import read_ipsets
from translate.write import write_save

__all__ = ["TARGETS", "Fault", "Tried", "inputs", "tried"]

_CORPUS = Path(__file__).parents[1] / "corpus"
_LONGEST = 6_000
"""The maximum size of an original input in bytes; of larger inputs, pieces are taken."""
_SECONDS = 60
"""The seconds after which reading an input counts as endless, however busy the machine is."""


@dataclass(frozen=True, slots=True)
class Target:
    """A reader with the quick steps that follow it, and files that it can read.

    ``in_blocks`` is for files in which everything has its place: bytes are changed, none are put in between.
    """

    read: Callable[[bytes], object]
    seeds: tuple[bytes, ...]
    in_blocks: bool = False


@dataclass(frozen=True, slots=True)
class Fault:
    """An input that gave neither a result nor one of nfparity's own errors."""

    target: str
    data: bytes
    error: BaseException


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
    return tuple([data for data in contents if len(data) <= _LONGEST] or contents)


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

_WORDS = (
    *(b"0", b"-1", b"65536", b"99999999999999999999", b"1" * 5000, b"1e999", b"NaN", b"0x", b"1.5"),
    *(b"null", b"true", b"[]", b"{}", b'""', b"[" * 3000, b'{"a":' * 3000, b'"\\ud800"', b"\\u0000"),
    *(
        b"!",
        b'"',
        b"'",
        b"\\",
        b"$x",
        b"-A",
        b"-j",
        b"-m",
        b"--",
        b"COMMIT\n",
        b"*nat\n",
        b":",
        b",",
        b"/",
        b"-",
    ),
    *(b"\x00", b"\x1b[31m", b"\xff\xfe", b"\xef\xbb\xbf", b"\r\n", b"\xe2\x80\xa8", b"\xd9\xa3", b"\xc2\xb2"),
    *(b"255.255.255.255", b"0.0.0.0/0", b"1.2.3.4/33", b"::", b"::ffff:1.2.3.4", b"fe80::1%eth0", b"eth0+"),
)
"""Words at a limit of some reader."""


def _changed(data: bytes, seeds: tuple[bytes, ...], draw: random.Random) -> bytes:
    """Change an input in one place."""
    at = draw.randrange(len(data) + 1)
    end = min(len(data), at + int(draw.paretovariate(0.7)))
    tokens = data.split(b" ")
    lines = data.split(b"\n")
    match draw.randrange(10):
        case 0:
            return data[:at] + bytes((draw.randrange(256),)) + data[at + 1 :]
        case 1:
            return data[:at] + data[end:]
        case 2:
            return data[:at] + draw.choice(_WORDS) + data[at:]
        case 3:
            return data[:at] + data[at:end] * draw.choice((2, 3, 50)) + data[end:]
        case 4:
            tokens[draw.randrange(len(tokens))] = draw.choice(_WORDS)
            return b" ".join(tokens)
        case 5:
            first, other = draw.randrange(len(tokens)), draw.randrange(len(tokens))
            tokens[first], tokens[other] = tokens[other], tokens[first]
            return b" ".join(tokens)
        case 6:
            lines.insert(draw.randrange(len(lines) + 1), draw.choice(lines))
            return b"\n".join(lines)
        case 7:
            del lines[draw.randrange(len(lines))]
            return b"\n".join(lines)
        case 8:
            other_lines = draw.choice(seeds).split(b"\n")
            lines[draw.randrange(len(lines))] = draw.choice(other_lines)
            return b"\n".join(lines)
        case _:
            return _with_another_value(data, draw)


def _overwritten(data: bytes, draw: random.Random) -> bytes:
    """Change some bytes of an input (mostly nonzero ones), or copy a block of it."""
    at = draw.choice([place for place, byte in enumerate(data) if byte])
    match draw.randrange(4):
        case 0:
            return data[:at] + bytes((draw.randrange(256),)) + data[at + 1 :]
        case 1:
            word = draw.choice(_WORDS)[:100]
            return data[:at] + word + data[at + len(word) :]
        case 2:
            return data[:at] + bytes((data[at] ^ 1 << draw.randrange(8),)) + data[at + 1 :]
        case _:
            first, other = (draw.randrange(len(data) // 512) * 512 for _ in range(2))
            return data[:first] + data[other : other + 512] + data[first + 512 :]


def _with_another_value(data: bytes, draw: random.Random) -> bytes:
    """Put a value of another kind at one place of a JSON input."""
    try:
        made = json.loads(data)
    except (ValueError, RecursionError):
        return data[: draw.randrange(len(data) + 1)]
    places: list[tuple[list[object] | dict[str, object], int | str]] = []
    pending = [made]
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            places += ((value, key) for key in value)
            pending += value.values()
        elif isinstance(value, list):
            places += ((value, index) for index in range(len(value)))
            pending += value
    if places:
        holder, key = draw.choice(places)
        holder[key] = draw.choice((None, True, -1, 1.5, 2**70, "", "x", "\ud800", [], {}, [[]], {"a": 1}))  # type: ignore[index]
    return json.dumps(made).encode("utf-8", "surrogatepass")


def inputs(target: str, seed: int) -> Iterator[bytes]:
    """Yield changed inputs of one kind, endlessly."""
    draw = random.Random(f"{target} {seed}")
    seeds, in_blocks = TARGETS[target].seeds, TARGETS[target].in_blocks
    while True:
        data = draw.choice(seeds)
        if len(data) > _LONGEST and draw.random() < 0.98:
            lines = data.split(b"\n")
            first = draw.randrange(len(lines))
            data = b"\n".join(lines[first : first + 60]) if len(lines) > 60 else data[:_LONGEST]
        for _ in range(draw.choice((1, 1, 1, 2, 4))):
            data = _overwritten(data, draw) if in_blocks else _changed(data, seeds, draw)
        yield data


class _Endless(BaseException):
    """Reading an input took too long."""


@contextmanager
def _ended(seconds: float) -> Iterator[None]:
    def end(number: int, frame: FrameType | None) -> None:
        raise _Endless

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@dataclass(slots=True)
class Tried:
    """The numbers of inputs of one kind that were read or refused, and the faults."""

    read: int = 0
    refused: int = 0
    faults: list[Fault] = field(default_factory=list)


def tried(target: str, seed: int, number: int) -> Tried:
    """Read a number of inputs of one kind."""
    counts = Tried()
    for data in islice(inputs(target, seed), number):
        try:
            with _ended(_SECONDS):
                TARGETS[target].read(data)
            counts.read += 1
        except (NfparityError, CaptureError):
            counts.refused += 1
        except (Exception, _Endless) as error:
            counts.faults.append(Fault(target, data, error))
    return counts


def main(words: list[str]) -> int:
    """Run with the total number of inputs, the seed, and optionally the kinds of inputs."""
    number, seed, *kinds = words
    kinds = kinds or list(TARGETS)
    faults = 0
    for kind in kinds:
        tally = tried(kind, int(seed), int(number) // len(kinds))
        faults += len(tally.faults)
        print(f"{kind}: {tally.read} read, {tally.refused} refused, {len(tally.faults)} faults", flush=True)
        for fault in tally.faults[:10]:
            print(f"  {fault.error!r}\n  {fault.data[:2000]!r}", flush=True)
    return min(faults, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
