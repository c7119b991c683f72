"""The command as its users run it: statuses, messages, no traceback."""

from __future__ import annotations

import json
import platform
import re
import runpy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from nfparity.cli.main import make_parser
from tests.lab.commands import Done, run_command

ROOT = Path(__file__).resolve().parents[4]
KIND = "tests/corpus/rulesets/kind-node"
RULES, NODE = f"{KIND}/rules.iptables-save", f"{KIND}/worker.json"
FLOW = (
    '{"id": "dns", "in": "pod5", "src": "10.244.0.5", "dst": "10.96.0.10",'
    ' "proto": "udp", "sport": 1, "dport": 53}\n'
)
PACKET = "udp 10.244.0.5:1 > 10.96.0.10:53 in pod5"
COMMANDS = (
    *("translate", "simulate", "diff", "explain", "graph", "corpus", "assess", "requires"),
    *("tc", "watch", "capture", "migrate", "doctor"),
)


def nfparity(*words: str, stdin: str | bytes = "") -> Done:
    done = run_command(*words, stdin=stdin)
    assert "Traceback" not in done.stderr, done.stderr
    return done


@pytest.fixture(autouse=True)
def _paths_are_relative_to_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def test_help_names_every_command() -> None:
    words = [sys.executable, "-m", "nfparity.cli", "--help"]
    done = subprocess.run(words, capture_output=True, text=True, cwd=ROOT, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert all(f"  {c}" in done.stdout for c in COMMANDS)


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; from nfparity.cli import main\n"
        "try: main(['--help'])\nexcept SystemExit: pass\nprint(sorted(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    loaded = done.stdout.splitlines()[-1]
    for heavy in (
        "'scapy'",
        "'deepdiff'",
        "'rich'",
        "'backends.simulator'",
        "'translate.read'",
    ):
        assert heavy not in loaded


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_an_example(command: str) -> None:
    done = nfparity(command, "--help")
    assert done.returncode == 0
    assert "example:" in done.stdout


def test_no_command_and_wrong_command() -> None:
    overview = nfparity()
    assert overview.returncode == 0
    assert "nfparity --help" in overview.stdout
    assert nfparity("frobnicate").returncode == 2
    versions = [line.split(maxsplit=1) for line in nfparity("--version").stdout.splitlines()]
    assert [name for name, _ in versions][:3] == ["nfparity", "kernel", "python"]
    assert versions[1][1] == platform.release()


@pytest.mark.parametrize(
    "words",
    [
        ("simulate", "no-such-file", "--corpus", "-"),
        ("simulate", KIND, "--corpus", "-"),
        ("simulate", RULES, "--node", RULES, "--corpus", "-"),
        ("simulate", RULES, "--node", NODE, "--corpus", "no-such-file"),
        ("simulate", RULES, "--node", NODE, "--corpus", "tests"),
        ("simulate", "--corpus", "-"),
        ("simulate", "-", "--corpus", "-"),
        ("diff", RULES, "--node", NODE),
        ("diff", RULES, "--node", NODE, "--corpus", "-", "--backends", "nobody"),
        ("diff", RULES, "--node", NODE, "--corpus", "-", "--backends", "simulator"),
        ("diff", RULES, "--node", NODE, "--corpus", "-", "--only", "nobody"),
        ("diff", RULES, "--node", NODE, "--corpus", "-", "--repeat", "x"),
        ("explain", RULES, "--node", NODE, "--packet", "udp"),
        ("graph", RULES, "--chain", "NO-SUCH-CHAIN"),
        ("translate", RULES, "--to", "cobol"),
        ("translate", RULES, "--to", "nft", "-o", "/no/such/folder/x"),
        ("corpus", "check", "tests/unit"),
        ("corpus", "import", RULES, "--node", NODE),
        ("corpus", "import", "no-such.pcap"),
        ("corpus", "export", "-", "--node", NODE, "--left", "-o", "x.pcap"),
        ("tc",),
        ("tc", "load", "no-such-file"),
        ("tc", "status", "--family", "ipx"),
    ],
)
def test_bad_input_is_status_2(words: tuple[str, ...]) -> None:
    done = nfparity(*words, stdin=FLOW)
    assert done.returncode == 2, done
    assert done.stderr.startswith(("nfparity: ", "usage: "))


@pytest.mark.parametrize(
    "data", [b"\x7fELF\x00\xff\xfe" * 100, b"*nat\n:PREROUTING ACCEPT [0:0]\n", b"-A FOO\n", b"\xff"]
)
def test_bad_rules_are_status_2(data: bytes) -> None:
    done = nfparity("translate", "-", "--to", "iptables", stdin=data)
    assert done.returncode == 2
    assert "<stdin>" in done.stderr


def test_rules_that_a_program_cannot_carry_are_refused_before_anything_is_touched() -> None:
    refused = "*filter\n:INPUT ACCEPT [0:0]\n-A INPUT -m recent --name a --rcheck --rttl -j DROP\nCOMMIT\n"
    done = nfparity("tc", "load", "-", stdin=refused)
    assert done.returncode == 2
    assert "<stdin>:3: tc-ebpf: " in done.stderr


@pytest.mark.parametrize("action", ["load", "status", "connections", "refresh", "unload"])
def test_every_action_of_tc_has_an_example(action: str) -> None:
    done = nfparity("tc", action, "--help")
    assert done.returncode == 0
    assert f"example:\n  nfparity tc {action}" in done.stdout


_HEAD = b"*filter\n:FORWARD ACCEPT [0:0]\n"
BAD_DUMPS = {
    "truncated": ((ROOT / RULES).read_bytes()[:3000], ":"),
    "unknown match": (_HEAD + b"-A FORWARD -m frobnicate -j DROP\nCOMMIT\n", ":3:15: "),
    "bad mask": (_HEAD + b"-A FORWARD -s 10.0.0.0/33 -j DROP\nCOMMIT\n", ":3:"),
    "missing chain": (_HEAD + b"-A FORWARD -j NOWHERE\nCOMMIT\n", ":3:15: "),
    "loop": (_HEAD + b":a - [0:0]\n:b - [0:0]\n-A FORWARD -j a\n-A a -j b\n-A b -g a\nCOMMIT\n", ":"),
    "binary": (bytes(range(256)) * 80, ":1"),
    "long line": (b"A", ":1:"),  # 20 MB of them
}
"""The name of a fault, a dump with it, and the place that the message must name."""


@pytest.fixture(scope="module")
def bad_dumps(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Path]]:
    folder = tmp_path_factory.mktemp("bad")
    paths = {wrong: folder / f"{number}.rules" for number, wrong in enumerate(BAD_DUMPS)}
    for wrong, path in paths.items():
        path.write_bytes(BAD_DUMPS[wrong][0] * (20_000_000 if wrong == "long line" else 1))
    yield paths
    paths["long line"].unlink()


@pytest.mark.parametrize("command", ["translate", "simulate", "diff", "explain", "coverage"])
@pytest.mark.parametrize("wrong", BAD_DUMPS)
def test_a_bad_dump_is_told_by_every_command(wrong: str, command: str, bad_dumps: dict[str, Path]) -> None:
    path, place = bad_dumps[wrong], BAD_DUMPS[wrong][1]
    flows = ("--node", NODE, "--corpus", "-")
    words = {
        "translate": ("translate", str(path), "--to", "nft"),
        "simulate": ("simulate", str(path), *flows),
        "diff": ("diff", str(path), *flows),
        "explain": ("explain", str(path), "--node", NODE, "--packet", PACKET),
        "coverage": ("corpus", "coverage", str(path), *flows),
    }[command]
    done = nfparity(*words, stdin=FLOW)
    assert done.returncode == 2
    assert done.stderr.startswith(f"nfparity: {path}{place}")
    assert len(done.stderr) < 5000
    assert not done.stdout


def test_bad_flows_are_named_by_line() -> None:
    done = nfparity("simulate", RULES, "--node", NODE, "--corpus", "-", stdin=FLOW + '{"id": 5}\n{"a"')
    assert done.returncode == 2
    assert "<stdin>:2:" in done.stderr
    assert "<stdin>:3:" in done.stderr
    assert "^" in done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("assess", "snapshot"), ("diff", "rules"), ("migrate", "plan"), ("migrate", "verify"),
    ],
)  # fmt: skip
def test_every_command_with_progress_has_quiet(words: tuple[str, ...]) -> None:
    sources = {
        path.stem for path in (ROOT / "nfparity/cli").glob("*.py") if "with progress(" in path.read_text()
    }
    assert words[0] in sources <= {"assess", "diff", "migrate"}
    parser = make_parser(words[:1])
    for option in ("-q", "--quiet"):
        assert parser.parse_args([*words, option]).quiet
    assert not parser.parse_args([*words]).quiet


def test_simulate() -> None:
    done = nfparity("simulate", RULES, "--node", NODE, "--corpus", "-", stdin=FLOW)
    assert done.returncode == 0
    line = json.loads(done.stdout)
    assert [o["probability"] for o in line["outcomes"]] == [0.5, 0.5]
    assert {o["dst"] for o in line["outcomes"]} == {"10.244.0.3", "10.244.0.4"}
    assert not done.stderr


def test_what_was_assumed_of_the_node_is_said() -> None:
    done = nfparity("simulate", RULES, "--corpus", "-", stdin=FLOW.replace("pod5", "auto"))
    assert done.returncode == 0
    assert "assumed interface eth0" in done.stderr


def test_translating_back_is_the_identity() -> None:
    text = (ROOT / RULES).read_text()
    done = nfparity("translate", "-", "--to", "iptables", stdin=text)
    assert (done.returncode, done.stdout) == (0, text)


_DNAT = """\
*nat
:PREROUTING ACCEPT [0:0]
-A PREROUTING -d 10.96.0.1/32 -p tcp -m tcp --dport 80 -j DNAT --to-destination 10.244.0.1:80
-A PREROUTING -d 10.96.0.2/32 -p tcp -m tcp --dport 80 -j DNAT --to-destination {}:80
COMMIT
"""


def test_translate_against_writes_what_changes(tmp_path: Path) -> None:
    old = tmp_path / "old"
    old.write_text(_DNAT.format("10.244.0.2"))
    done = nfparity("translate", "-", "--to", "nft", "--against", str(old), stdin=_DNAT.format("10.244.0.9"))
    assert done.returncode == 0
    assert [line.split()[:2] for line in done.stdout.splitlines()] == [
        ["delete", "element"],
        ["add", "element"],
    ]
    assert "change: elements, 1 element added, 1 deleted" in done.stderr


def test_translate_against_writes_the_entries_that_change(tmp_path: Path) -> None:
    old = tmp_path / "old"
    old.write_text(_DNAT.format("10.244.0.2"))
    done = nfparity("translate", "-", "--to", "bpf", "--against", str(old), stdin=_DNAT.format("10.244.0.9"))
    assert done.returncode == 0
    assert [line.split()[:2] for line in done.stdout.splitlines()] == [["update", "lookup_0"]]
    assert "change: entries, 1 entry written, 0 deleted" in done.stderr


@pytest.mark.parametrize(
    ("old", "to", "said"),
    [
        ("-", "nft", "cannot both be standard input"),
        (RULES, "iptables", "--against needs --to nft"),
        ("/no/such/file", "nft", "/no/such/file"),
    ],
)
def test_translate_against_refuses(old: str, to: str, said: str) -> None:
    done = nfparity("translate", "-", "--to", to, "--against", old, stdin=_DNAT.format("10.244.0.2"))
    assert done.returncode == 2
    assert said in done.stderr


def test_translate_writes_files(tmp_path: Path) -> None:
    for to, sign in (("nft", "table ip nfparity"), ("bpf", "#include")):
        path = tmp_path / to
        assert nfparity("translate", RULES, "--to", to, "-o", str(path)).returncode == 0
        assert sign in path.read_text()


def test_graph() -> None:
    done = nfparity("graph", RULES, "--chain", "KUBE-SVC-TCOU7JCQXEZGVUNU")
    assert "calls KUBE-SEP-6E7XQMQ4RAYOWTTM: 2 rules" in done.stdout
    assert "calls KUBE-MARK-MASQ" in done.stdout
    dot = nfparity("graph", RULES, "--format", "dot").stdout
    assert dot.startswith("digraph rules {")
    assert '"nat/KUBE-SERVICES" -> "nat/KUBE-SVC-TCOU7JCQXEZGVUNU" [label="98"]' in dot
    picture = nfparity("graph", RULES, "--format", "svg", "--chain", "KUBE-SVC-TCOU7JCQXEZGVUNU").stdout
    assert picture.startswith("<svg ")
    assert "KUBE-SEP-6E7XQMQ4RAYOWTTM" in picture
    assert "KUBE-SERVICES" not in picture
    calls = json.loads(nfparity("graph", RULES, "--format", "json").stdout)
    assert {"caller": "KUBE-SERVICES", "line": 98}.items() <= next(
        c for c in calls if c["line"] == 98
    ).items()


def test_coverage_of_the_committed_cases() -> None:
    """Every rule is hit, but those for packets that do not exist, or that no corpus can have."""
    done = nfparity("corpus", "coverage", "--corpus", "tests/corpus/cases")
    assert done.returncode == 1
    missed = re.findall(r"not hit:\n((?:  .*\n)+)", done.stdout)
    assert [line.partition(": ")[2] for lines in missed for line in lines.splitlines()] == [
        "-A FORWARD -p tcp -m tcp --dport 443 -m connlimit --connlimit-upto 0 --connlimit-mask 0"
        " --connlimit-saddr -j ACCEPT",
        "-A FORWARD -m cpu --cpu 4294967295 -j DROP",
        "-A FORWARD -p udp -m udp --dport 7001 -m ecn ! --ecn-ip-ect 1 -j DROP",
        "-A INPUT -i lo -m mac ! --mac-source 02:00:00:00:02:01 -j DROP",
        "-A FORWARD -m devgroup --src-group 0x9 -j DROP",
        "-A FORWARD -p udp -m udp --dport 7001 -m quota --quota 0 -j DROP",
        "-A INPUT -p udp -m udp --dport 60 -m set --match-set seen src -m set --match-set gone dst -j DROP",
        "-A FORWARD -p tcp -m tcp --dport 3 --tcp-flags SYN SYN --tcp-option 8 -j DROP",
        '-A POSTROUTING -m u32 ! --u32 "0x14=0x0:0xffffffff" -j MARK --set-xmark 0x5/0xffffffff',
        '-A FORWARD -m u32 --u32 "0x0&0x0=0x1" -j DROP',
    ]
    assert "no rule jumps to chain KUBE-MARK-DROP" in done.stdout


def test_coverage_that_is_not_whole() -> None:
    done = nfparity(
        "corpus", "coverage", RULES, "--node", NODE, "--corpus", "-", "--format", "json", stdin=FLOW
    )
    assert done.returncode == 1
    (report,) = json.loads(done.stdout)
    assert report["missed"] > 10


def test_capture_there_and_back(tmp_path: Path) -> None:
    path = str(tmp_path / "c.pcapng")
    assert nfparity("corpus", "export", "-", "--node", NODE, "-o", path, stdin=FLOW).returncode == 0
    done = nfparity("corpus", "import", path, "--node", NODE)
    assert done.returncode == 0
    assert json.loads(done.stdout)["dst"] == "10.96.0.10"


def test_a_capture_becomes_a_case(tmp_path: Path) -> None:
    path, case = str(tmp_path / "c.pcapng"), tmp_path / "cases" / "dns"
    assert nfparity("corpus", "export", "-", "--node", NODE, "-o", path, stdin=FLOW).returncode == 0
    words = ("corpus", "import", path, "--rules", RULES, "--node", NODE, "--case", str(case))
    done = nfparity(*words, "--purpose", 'DNS, "as ever"')
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(p.name for p in case.iterdir()) == [
        "case.toml",
        "expect.jsonl",
        "flows.jsonl",
        "node.json",
        "rules.iptables-save",
    ]
    assert (case / "rules.iptables-save").read_bytes() == (ROOT / RULES).read_bytes()
    assert nfparity("corpus", "check", str(case.parent)).stdout.startswith("1 case, 1 flow, 0 not")
    again = nfparity(*words)
    assert again.returncode == 2
    assert "cannot be written: file exists" in again.stderr
    bare = nfparity("corpus", "import", path, "--node", NODE, "--case", str(tmp_path / "other"))
    assert bare.returncode == 2
    assert "give --rules" in bare.stderr


def test_a_reader_that_leaves_early() -> None:
    flows = "".join(FLOW.replace('"dns"', f'"f{n}"') for n in range(2000))
    words = [sys.executable, "-m", "nfparity.cli", "simulate", RULES, "--node", NODE, "--corpus", "-"]
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT
    ) as process:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        process.stdin.write(flows.encode())
        process.stdin.close()
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(60) == 141


@pytest.mark.parametrize("module", ["nfparity", "nfparity.cli"])
def test_modules_that_python_runs(
    module: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["nfparity", "doctor", "--help"])
    with pytest.raises(SystemExit) as end:
        runpy.run_module(module, run_name="__main__")
    assert end.value.code in (None, 0)
    assert "usage: nfparity doctor" in capsys.readouterr().out
