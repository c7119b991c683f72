"""Given nftables rulesets: listings load again and mean the same, and are compared with iptables rules."""

from __future__ import annotations

import json
import os
import random
import re
import shlex
import signal
import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from backends.given_nftables import backend as nftgiven
from backends.given_nftables.backend import GivenNftBackend, GivenNftLoader
from backends.iptables.backend import IptablesBackend
from backends.model.contract import Job
from backends.model.node import Node, node_from_json
from backends.nftables.backend import NftablesBackend, NftablesLoader
from backends.nftables.libnftables import NftHandle
from backends.replay import limits
from backends.replay.session import open_session
from backends.simulator import SimulatorBackend
from backends.testbed.command import run
from backends.testbed.tapnode import TapNode
from harness.corpus.cases import read_cases
from harness.diff.batch import Batch
from harness.diff.parity import Plan, run_parity
from harness.diff.result import ParityReport
from nfparity.inputs.batches import load_batches
from tests.kernel.helpers.availability import require
from tests.kernel.helpers.reports import report_text
from translate.errors import InputError, MachineError, ParseError
from translate.ir import Family
from translate.nft import emit
from translate.nftlisting import Script, read_listing
from translate.nftlisting.commands import SEED
from translate.passes import lower
from translate.read import read_ruleset

ROOT = Path(__file__).parents[2]
CORPUS = ROOT / "tests/corpus"
KUBE = CORPUS / "rulesets/kube-real"
LISTINGS = (*sorted((CORPUS / "listings").glob("*.nft")), KUBE / "realistic.nft")
FORMS = ("realistic.nft", "realistic.nft.json", "realistic.nft-input")


@pytest.fixture(scope="module", autouse=True)
def _needs_nftables() -> None:
    require(NftablesBackend())


class Listed(NftablesLoader):
    """Loads text as it is, and writes down how nft lists it."""

    def __init__(self, text: str, folder: Path) -> None:
        super().__init__(text)
        self._folder = folder

    def load(self, tap: TapNode) -> None:
        super().load(tap)
        handle = NftHandle()
        handle.run("delete table ip nfparity_stack_rst")
        _write_lists(handle, self._folder)
        handle.close()


class Roundtrips(NftablesLoader):
    """Loads one text after the other, and each of its listings again; writes down what nft lists then."""

    def __init__(self, texts: dict[str, str], folder: Path) -> None:
        super().__init__("")
        self._texts = texts
        self._folder = folder

    def load(self, tap: TapNode) -> None:
        handle = NftHandle()
        for name, text in self._texts.items():
            handle.run("flush ruleset")
            handle.run(text)
            folder = self._folder / name
            _write_lists(handle, folder)
            (folder / "bytecode").write_text(bytecode())
            for form in ("text", "json"):
                handle.run("flush ruleset")
                try:
                    given = GivenNftLoader(read_listing((folder / form).read_text(), name=form), Family.IP)
                except ParseError as e:
                    (folder / f"{form}-again").write_text(f"refused: {e}")
                    continue
                given.load(tap)
                given.close()
                (folder / f"{form}-again").write_text(handle.run("list ruleset"))
                (folder / f"{form}-bytecode").write_text(bytecode())
        handle.close()


def bytecode() -> str:
    """Return the kernel's bytecode of every rule and element, unordered because a hash has no order."""
    said = run(("nft", "--debug=netlink", "list", "ruleset")).stdout
    lines = [line for line in said.splitlines() if line.startswith(("  [", "\telement"))]
    plain = (re.sub(r"__(set|map|chain)\d+|expires \w+| \d+ (?=\[end\])", "", line) for line in lines)
    return "\n".join(sorted(plain))


def _write_lists(handle: NftHandle, folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "text").write_text(handle.run("list ruleset"))
    error, listed = handle.attempt("list ruleset", json=True)
    assert error is None
    (folder / "json").write_text(listed)


@pytest.fixture(scope="module")
def roundtrips(tmp_path_factory: pytest.TempPathFactory, kind_node: Node) -> Path:
    folder = tmp_path_factory.mktemp("listings")
    with open_session(kind_node, Roundtrips({path.stem: path.read_text() for path in LISTINGS}, folder)):
        return folder


@cache
def nft_version() -> tuple[int, ...]:
    """Return the version of nft, such as (1, 0, 6)."""
    return tuple(map(int, re.findall(r"\d+", run(("nft", "--version")).stdout)[:3]))


def normal(listing: Path) -> str:
    """A listing without the time that has passed, and the seed that is given where there is none."""
    return re.sub(rf" expires \w+| seed {SEED:#x}", "", listing.read_text())


def without_json_gaps(text: str) -> str:
    """A listing without what nft's JSON does not know, and what it does not change."""
    return re.sub(r"\n\t+(comment .*|auto-merge|type(of)? (?!\w+ hook ).*)", "", text)


@pytest.mark.parametrize("name", [path.stem for path in LISTINGS])
def test_a_listing_loads_and_is_listed_as_it_was(name: str, roundtrips: Path) -> None:
    folder = roundtrips / name
    assert normal(folder / "text-again") == normal(folder / "text")
    assert (folder / "text-bytecode").read_text() == (folder / "bytecode").read_text()


REFUSED_AS_JSON = {
    "chains": "this has no JSON form: jump {",
    "statements": "flags",  # nft 1.0.6 prints whatever follows in memory: a word, or the end of the text
}
REFUSED_AS_JSON_OF_1_0 = {
    **REFUSED_AS_JSON,
    "draws": "one of its types is an integer",
    "learned": "this has no JSON form: update @dm",
    "netdev": "JSON does not name the device",
    "typeof": "one of its types is an integer",
}


@pytest.mark.parametrize("name", [path.stem for path in LISTINGS])
def test_json_loads_and_is_listed_as_it_was_or_is_refused(name: str, roundtrips: Path) -> None:
    again = normal(roundtrips / name / "json-again")
    refused = REFUSED_AS_JSON_OF_1_0 if nft_version() < (1, 1) else REFUSED_AS_JSON
    if name in refused:
        assert again.startswith("refused: ")
        assert refused[name] in again
    else:
        folder = roundtrips / name
        assert without_json_gaps(again) == without_json_gaps(normal(folder / "text"))
        assert (folder / "json-bytecode").read_text() == (folder / "bytecode").read_text()


def test_what_nft_does_not_understand_is_told_at_its_line(kind_node: Node) -> None:
    text = "table ip a {\n\tset s {\n\t\ttype ipv4_addr\n\t}\n\tchain c {\n\t\tip saddr @s acept\n\t}\n}\n"
    listing = read_listing(text, name="given.nft")
    with (
        pytest.raises(ParseError, match=r"given\.nft:6: nft does not understand this: syntax error"),
        open_session(kind_node, GivenNftLoader(listing, Family.IP)),
    ):
        pass


def test_what_the_kernel_does_not_take_is_told_at_its_line(kind_node: Node) -> None:
    chains = (
        "\tchain b {\n\t\ttype filter hook input priority 0;\n\t\tjump c\n\t}\n\tchain c {\n\t\tjump c\n\t}\n"
    )
    text = f"table ip a {{\n{chains}}}\n"
    listing = read_listing(text, name="given.nft")
    with (
        pytest.raises(MachineError, match=r"given\.nft:\d: the kernel refuses this: Too many links"),
        open_session(kind_node, GivenNftLoader(listing, Family.IP)),
    ):
        pass


@pytest.mark.parametrize(
    ("word", "complaint"), [("frobnicate", "Unknown statement object"), ("jump", "No such file or directory")]
)
def test_a_fault_in_json_is_told_by_the_name_of_the_entry(word: str, complaint: str, kind_node: Node) -> None:
    chain = {"family": "ip", "table": "a", "name": "c"}
    rules = [
        {"rule": {"family": "ip", "table": "a", "chain": "c", "handle": handle, "expr": [expression]}}
        for handle, expression in ((4, {"accept": None}), (5, {word: {"target": "nowhere"}}))
    ]
    text = json.dumps({"nftables": [{"table": {"family": "ip", "name": "a"}}, {"chain": chain}, *rules]})
    loader = GivenNftLoader(read_listing(text, name="given"), Family.IP)
    said = rf"given:1:\d+: rule ip a c handle 5: nft does not understand this: {complaint}"
    with pytest.raises(ParseError, match=said), open_session(kind_node, loader):
        pass


class Dying(NftablesLoader):
    """Brings its process down, as libnftables 1.0.6 does for some rulesets."""

    def __init__(self) -> None:
        super().__init__("")

    def load(self, tap: TapNode) -> None:
        os.kill(os.getpid(), signal.SIGSEGV)


def test_a_ruleset_of_which_libnftables_dies_is_named(kind_node: Node, kind_rules: str) -> None:
    given = GivenNftBackend("given.nft", "table ip a {\n}\n", beside=lambda _: Dying())
    job = Job(rules=read_ruleset(kind_rules.encode(), name="kind"), node=kind_node)
    said = r"given\.nft: the replay process ended by itself \(status -11\) while it loaded this ruleset"
    with pytest.raises(MachineError, match=said), given.open(job):
        pass


@pytest.mark.parametrize(("level", "form"), [(0, "text"), (2, "text"), (0, "json"), (2, "json")])
def test_the_listing_of_our_translation_has_parity(
    level: int, form: str, kind_node: Node, kind_rules: str, tmp_path: Path
) -> None:
    ruleset = read_ruleset(kind_rules.encode(), name="kind")
    text = emit(lower(ruleset, level=level)).text
    with open_session(kind_node, Listed(text, tmp_path)):
        given = (tmp_path / form).read_text()
    cases = [case for case in read_cases(CORPUS / "cases") if case.rules_path.parent.name == "kind-node"]
    flows = tuple(flow for case in cases if case.node_path.name == "worker.json" for flow in case.flows)
    assert len(flows) > 100
    if form == "json" and level and nft_version() < (1, 1):
        with pytest.raises(ParseError, match=r"one of its types is an integer .* use the text form"):
            GivenNftBackend("given", given)
        return
    batch = Batch(rules_path="kind", rules=ruleset, node=kind_node, flows=flows, corpus="cases")
    report = run_parity(
        Plan(batches=(batch,), repeat=20),
        (GivenNftBackend("given", given),),
        reference=SimulatorBackend(),
        rules=lambda *_: (),
        progress=lambda *_: None,
    )
    assert report.parity, report_text(report)
    assert report.share_tests


@cache
def kube_flows(rules: str, node: str) -> tuple[Batch, Plan]:
    from harness.corpus.generate import generate_corpus

    ruleset = read_ruleset((KUBE / rules).read_bytes(), name=rules)
    job = Job(rules=ruleset, node=node_from_json((KUBE / node).read_text(), name=node))
    batch = Batch(
        rules_path=rules,
        rules=ruleset,
        node=job.node,
        flows=generate_corpus(job, seed=0, exhaustive=True).flows,
        corpus="generated",
    )
    return batch, Plan(batches=(batch,), miss=1.0)


def kube_report(rules: str, node: str, form: str) -> ParityReport:
    _, plan = kube_flows(rules, node)
    return run_parity(
        plan,
        (GivenNftBackend(form, (KUBE / form).read_text()),),
        reference=SimulatorBackend(),
        rules=lambda *_: (),
        progress=lambda *_: None,
    )


def beginnings(report: ParityReport) -> dict[str, tuple[object, object]]:
    """Return the first expected and observed values that differ, for each differing flow.

    What follows of that depends on ports and endpoints that chance has drawn.
    """
    found: dict[str, tuple[object, object]] = {}
    for one in report.differences:
        found.setdefault(one.flow_id.partition("#")[0], (one.expected, one.observed))
    return found


EXPLAINED = {
    ("forward", "reject"),  # to a port that a ClusterIP does not have: K06, K13
    ("forward", "drop"),  # from a pod or the node to a LB IP without endpoints on the node: K24
    ("drop", "forward"),  # a TCP packet that conntrack calls invalid: K05
    ("forward", "local"),  # the node to its NodePort at 127.0.0.1: K02
    ("drop", "local"),  # to 127.0.0.0/8 from elsewhere, which kubelet's or kube-proxy's guard drops: K32
}


@pytest.mark.parametrize(
    ("rules", "node", "forms"),
    [
        ("rules.iptables-save", "dataplane.json", FORMS),
        ("rules.ip6tables-save", "dataplane6.json", FORMS[:2]),
    ],
)
def test_kube_proxys_two_modes_differ_in_every_form_alike(
    rules: str, node: str, forms: tuple[str, ...]
) -> None:
    reports = [kube_report(rules, node, form) for form in forms]
    first, *others = [beginnings(report) for report in reports]
    assert first
    assert set(first.values()) <= EXPLAINED, {v: k for k, v in first.items()}
    assert len(first) < reports[0].flows / 4
    for other in others:
        assert other == first


def test_affinity_holds_and_begins_anew_with_each_flow() -> None:
    """A client stays with the endpoint that it drew, and in the next flow it draws again.

    Left out are a node port, because the node of these flows is not the one of this ruleset, and a port that
    the service has for another protocol, which kube-proxy rejects in nftables mode.
    """
    (batch,) = load_batches(rules=None, corpus=str(CORPUS / "cases-kube-real"), node=None)
    sticky = tuple(flow for flow in batch.flows if flow.id not in ("mqtt-nodeport", "wrong-protocol"))
    assert len(sticky) == len(batch.flows) - 2
    report = run_parity(
        Plan(batches=(replace(batch, flows=sticky),), repeat=40),
        (GivenNftBackend("given", (KUBE / "realistic.nft").read_text()),),
        reference=SimulatorBackend(),
        rules=lambda *_: (),
        progress=lambda *_: None,
    )
    assert report.parity, report_text(report)
    assert report.share_tests > 20


def diff(*words: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-m", "nfparity.cli", "diff", *words],
        capture_output=True,
        text=True,
        cwd=KUBE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=120,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done


FLOW = (
    '{"id": "ping", "in": "cni0", "src": "10.244.0.9", "dst": "10.96.0.10", "proto": "icmp"}\n'
    '{"id": "dns", "in": "cni0", "src": "10.244.0.9", "dst": "10.96.0.10", "proto": "udp", "sport": 4000,'
    ' "dport": 53, "then": [{"reply": {}}]}\n'
)


def test_a_difference_is_reported_and_its_command_replays_it(tmp_path: Path) -> None:
    flows = tmp_path / "flows.jsonl"
    flows.write_text(FLOW)
    given = ("rules.iptables-save", "--node", "dataplane.json", "--corpus", str(flows))
    done = diff(*given, "--against", "realistic.nft", "--repeat", "20", "--format", "json")
    assert done.returncode == 1, done.stderr
    report = json.loads(done.stdout)
    (found,) = report["differences"]
    assert (found["backend"], found["flow_id"], found["field"]) == ("realistic.nft", "ping", "verdict")
    assert (found["expected"], found["observed"]) == ("forward", "reject")
    assert report["share_tests"]
    again = diff(*shlex.split(found["command"])[2:])
    assert again.returncode == 1
    assert "no parity: 1 difference in 1 of 1 flow\n" in again.stdout
    suite = diff(*given, "--against", "realistic.nft", "--format", "junit")
    assert 'testsuite name="realistic.nft" tests="2" failures="1"' in suite.stdout
    both = diff(*given, "--against", "realistic.nft.json", "--backends", "nftables", "--only", "dns")
    assert both.returncode == 0, both.stdout
    assert "parity: 1 flow at -O2, no difference" in both.stdout
    assert "realistic.nft.json" in both.stdout


def test_what_the_node_has_not_is_bad_input(tmp_path: Path) -> None:
    flows, given = tmp_path / "flows.jsonl", tmp_path / "given.nft"
    flows.write_text(FLOW)
    chain = 'chain i {\n\t\ttype filter hook ingress device "eth9" priority 0;\n\t}\n'
    given.write_text(f"table netdev a {{\n\t{chain}}}\n")
    words = ("rules.iptables-save", "--node", "dataplane.json", "--corpus", str(flows), "--against")
    done = diff(*words, str(given))
    assert done.returncode == 2
    assert (
        f"{given}:2: this names the device eth9, which the node does not have (it has cni0, eth0, lo)"
        in done.stderr
    )
    given.write_text("table ip6 a {\n}\n")
    done = diff(*words, str(given))
    assert done.returncode == 2
    assert "no table of this ruleset sees packets of ip; its tables are of: ip6" in done.stderr


REST = """\
# Generated by iptables-nft-save v1.8.9 (nf_tables)
*filter
:INPUT ACCEPT [0:0]
:FORWARD ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
-A FORWARD -s 10.244.0.66/32 -m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT -j DROP
COMMIT
"""
STOPPED = (
    '{"id": "stopped", "in": "cni0", "src": "10.244.0.66", "dst": "203.0.113.9", "proto": "udp",'
    ' "sport": 4000, "dport": 9}\n'
    '{"id": "spared", "in": "cni0", "src": "10.244.0.66", "dst": "10.96.0.10", "proto": "udp",'
    ' "sport": 4001, "dport": 53, "then": [{"reply": {}}]}\n'
)


@pytest.fixture
def other_rules(tmp_path: Path) -> tuple[str, ...]:
    """kube-proxy's iptables rules and one more, which nft lists as something else; and flows for it."""
    require(IptablesBackend("iptables-nft"))
    before = (KUBE / "rules.iptables-save").read_text()
    (rule,) = (line for line in REST.splitlines() if line.startswith("-A"))
    rules, flows, rest = (tmp_path / name for name in ("rules", "flows.jsonl", "rest"))
    rules.write_text(re.sub(r"(?m)^(?=-A FORWARD )", f"{rule}\n", before, count=1))
    assert rule in rules.read_text()
    flows.write_text(STOPPED)
    rest.write_text(REST)
    return str(rules), "--node", "dataplane.json", "--corpus", str(flows)


def test_rules_that_stay_are_beside_the_ruleset(other_rules: tuple[str, ...], tmp_path: Path) -> None:
    alone = diff(*other_rules, "--against", "realistic.nft", "--format", "json")
    assert [d["flow_id"] for d in json.loads(alone.stdout)["differences"]] == ["stopped"]
    beside = diff(*other_rules, "--against", "realistic.nft", "--with-iptables", str(tmp_path / "rest"))
    assert beside.returncode == 0, beside.stdout


def test_a_snapshot_has_all_that_was_on_its_node(other_rules: tuple[str, ...], tmp_path: Path) -> None:
    folder = tmp_path / "node"
    folder.mkdir()
    script = f"iptables-nft-restore < {tmp_path / 'rest'} && nft -f realistic.nft && nft -j list ruleset"
    done = subprocess.run(
        ["unshare", "-n", "sh", "-c", script], capture_output=True, text=True, cwd=KUBE, check=True
    )
    assert '"xt"' in done.stdout
    (folder / "nft.json").write_text(done.stdout)
    (folder / "iptables-save").write_text(REST)
    done = diff(*other_rules, "--against", str(folder))
    assert done.returncode == 0, done.stdout + done.stderr
    bare = diff(*other_rules, "--against", str(folder / "nft.json"))
    assert bare.returncode == 2
    assert "a rule of iptables-nft" in bare.stderr


HOST_PORT = """\
*nat
:PREROUTING ACCEPT [0:0]
-A PREROUTING -d 192.168.0.2/32 -p tcp -m tcp --dport 8000 -j DNAT --to-destination 10.244.0.66:80
COMMIT
"""


def test_both_orders_of_registration(tmp_path: Path) -> None:
    """The last registered of two chains at one place binds, and either can be the last."""
    flow = (
        '{"id": "%s", "in": "eth0", "src": "192.168.0.1", "dst": "192.168.0.2", "proto": "tcp",'
        ' "sport": 4000, "dport": %d}\n'
    )
    rules, flows, rest, given, counts = (
        tmp_path / name for name in ("rules", "flows.jsonl", "rest", "given.nft", "counts.nft")
    )
    rules.write_text(HOST_PORT)
    rest.write_text(HOST_PORT)
    flows.write_text(flow % ("both", 8000) + flow % ("neither", 8001))
    chain = "type nat hook prerouting priority %d;\n\t\ttcp dport 8000%s dnat to 10.244.0.67:80\n"
    given.write_text(f"table ip other {{\n\tchain a {{\n\t\t{chain % (-100, '')}\t}}\n}}\n")
    words = (str(rules), "--node", "dataplane.json", "--corpus", str(flows), "--with-iptables", str(rest))
    done = diff(*words, "--against", str(given), "--format", "json")
    report = json.loads(done.stdout)
    assert [(d["backend"], d["flow_id"]) for d in report["differences"]] == [(str(given), "both")]
    assert [(b["name"], b["differing"]) for b in report["backends"]] == [
        (str(given), 1),
        (f"{given}, iptables chains first", 0),
    ]
    assert f"--against {given} --with-iptables {rest}" in report["differences"][0]["command"]
    # At another priority there is one order.
    given.write_text(f"table ip other {{\n\tchain a {{\n\t\t{chain % (-99, '')}\t}}\n}}\n")
    done = diff(*words, "--against", str(given))
    assert (done.returncode, "iptables chains first" in done.stdout) == (0, False)
    limit = " limit rate 1/second burst 5 packets"
    counts.write_text(f"table ip other {{\n\tchain a {{\n\t\t{chain % (-100, limit)}\t}}\n}}\n")
    done = diff(*words, "--against", str(counts))
    assert "the order in which the chains of iptables run first is not tested" in done.stderr


class Checks(NftablesLoader):
    """Has libnftables read each of several scripts, and keeps what it says."""

    def __init__(self, texts: list[str], folder: Path) -> None:
        super().__init__("")
        self._texts = texts
        self._folder = folder

    def load(self, tap: TapNode) -> None:
        handle = NftHandle()
        said = [handle.attempt_lines(f"{text}\nflush ruleset\n") or "" for text in self._texts]
        (self._folder / "said").write_text(json.dumps(said))
        handle.close()


def test_no_file_is_opened_wherever_one_is_named(tmp_path: Path) -> None:
    """A line that includes a file is put anywhere: nft is given only what it opens no file for."""
    rng = random.Random(7)
    marker = tmp_path / "marker"
    marker.write_text("nonsense-of-the-marker\n")
    lines = [
        f'{word} "{marker}"' for word in ("include", " include ", "\tinclude\t", "x include", "# include")
    ]
    lines += [
        f'; include "{marker}";',
        f'\ninclude "{marker}"\n',
        f'}}\ninclude "{marker}"\n{{',
        f'"include {marker}"',
    ]
    texts = [(CORPUS / "hostile" / "n10.nft").read_text().replace('include "/etc/hostname";', "")]
    texts += [path.read_text() for path in LISTINGS if path.stat().st_size < 6000]
    raw, given = [], []
    for _ in range(600):
        text = rng.choice(texts)
        at = rng.choice([m.end() for m in re.finditer(r"[;{}\n\s]", text)])
        text = text[:at] + rng.choice(lines) + text[at:]
        raw.append(text)
        try:
            listing = read_listing(text, name="x.nft")
        except ParseError:
            continue
        given += [script.text for script in listing.scripts]
    node = node_from_json('{"interfaces": {"eth0": ["192.0.2.2/24"]}}', name="n")
    with open_session(node, Checks([*raw, *given], tmp_path)):
        pass
    said = json.loads((tmp_path / "said").read_text())
    opened = ["nonsense-of-the-marker" in one for one in said]
    assert sum(opened[: len(raw)]) > 50, "nft does include a file in many of these places"
    assert len(given) > 30
    assert not any(opened[len(raw) :])


class Loops(GivenNftLoader):
    """Never comes back, and has a second for that."""

    def load(self, tap: TapNode) -> None:
        limits._SECONDS = 1  # type: ignore[misc]
        super().load(tap)

    def _load(self, handle: NftHandle, script: Script) -> None:
        while True:
            pass


def test_a_ruleset_that_takes_too_long_is_told() -> None:
    listing = read_listing("table ip a {\n}\n", name="x.nft")
    node = node_from_json('{"interfaces": {"eth0": ["192.0.2.2/24"]}}', name="n")
    with (
        pytest.raises(
            InputError, match=r"x\.nft: this ruleset was not loaded: it took far more processor time"
        ),
        nftgiven._opened("x.nft", open_session(node, Loops(listing, Family.IP))),
    ):
        pass


def test_a_library_that_does_not_come_back_is_no_reason_to_stay(tmp_path: Path) -> None:
    """SIGTERM ends the command while its child waits for a FIFO that nobody writes to."""
    fifo, rules = tmp_path / "fifo", tmp_path / "rules"
    os.mkfifo(fifo)
    rules.write_text("*filter\n:INPUT ACCEPT [0:0]\nCOMMIT\n")
    code = f"""
import sys
from nfparity.cli import main
from tests.kernel.test_given_nft import Waits
import backends.given_nftables.backend as module
from backends.model.contract import Availability
module.GivenNftLoader = lambda listing, family: Waits({str(fifo)!r})
module.GivenNftBackend.probe = lambda self: Availability(True)
sys.exit(main(["diff", {str(rules)!r}, "--random", "3", "--against", {str(tmp_path / "given.nft")!r}]))
"""
    (tmp_path / "given.nft").write_text("table ip a {\n}\n")
    process = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT)
    # The child has come so far that it opens the FIFO.
    with open(fifo, "w"):
        pass
    process.terminate()
    assert process.wait(60) == 143


class Waits(NftablesLoader):
    """Opens a FIFO for reading, twice: the second time nobody writes."""

    def __init__(self, path: str) -> None:
        super().__init__("")
        self._path = path

    def load(self, tap: TapNode) -> None:
        Path(self._path).read_bytes()
        Path(self._path).read_bytes()
