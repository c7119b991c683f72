"""Output of commands: printable, complete, and with a status that is never that of a difference."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from nfparity.cli import main

ROOT = Path(__file__).resolve().parents[4]
KIND = ROOT / "tests/corpus/rulesets/kind-node"
RULES, NODE = str(KIND / "rules.iptables-save"), str(KIND / "worker.json")

ESCAPES = "\x1b[31m\x1b]0;title\x07\x9b2J\u202e\u2066\u2028\x7f\r"
CHAIN = "A\x1b[31mB"
HOSTILE = (
    "*filter\n:INPUT ACCEPT [0:0]\n:FORWARD ACCEPT [0:0]\n"
    f":{CHAIN} - [0:0]\n"
    f'-A INPUT -m comment --comment "{ESCAPES}[red]bold[/red][/x]" -j {CHAIN}\n'
    f"-A FORWARD -p tcp -m tcp --dport 80 -j {CHAIN}\n"
    f'-A {CHAIN} -m comment --comment "{ESCAPES}" -j REJECT\nCOMMIT\n'
)
FLOW: dict[str, object] = {
    "id": f"a{ESCAPES}b\nnfparity: all is well",
    "src": "10.0.0.9",
    "dst": "192.0.2.2",
    "proto": "tcp",
}
FLOW |= {"sport": 40000, "dport": 80, "why": ESCAPES}
WRONG_RULES = HOSTILE.replace("REJECT", f"{ESCAPES}")
WRONG_FLOW = {**FLOW, f"key{ESCAPES}\n": 1}
NFT = f'table ip a {{ chain b {{ comment "{ESCAPES}" ; xt target "{ESCAPES}" ; include "x" ; }} }}'.replace(
    "\r", ""
)


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    texts = {
        "RULES": HOSTILE,
        "WRONG": WRONG_RULES,
        "FLOWS": json.dumps(FLOW),
        "ODD": json.dumps(WRONG_FLOW, ensure_ascii=False),
        "NODE": json.dumps({"interfaces": {f"e{ESCAPES}": [ESCAPES]}, ESCAPES: 1}, ensure_ascii=False),
        "NFT": NFT,
        "NFTJSON": json.dumps({"nftables": [{"chain": {"family": ESCAPES, "name": ESCAPES}}]}),
        "OBJECTS": json.dumps({"services": [{ESCAPES: ESCAPES, "metadata": {"name": 5}}]}),
        "PLAN": json.dumps({"nfparity-migration": 1, ESCAPES: ESCAPES, "families": [{ESCAPES: 1}]}),
        "SETS": f"create {ESCAPES} hash:ip\nadd {ESCAPES} x\n",
    }
    made = {}
    for name, text in texts.items():
        path = tmp_path / f"{name}\x1b[31m"
        path.write_bytes(text.encode())
        made[name] = str(path)
    return made


SHOWN = [
    ("translate RULES --to nft", (0, 2)),
    ("translate RULES --to bpf", (0, 2)),
    ("translate WRONG --to nft", (2,)),
    ("simulate RULES --corpus FLOWS", (0,)),
    ("simulate RULES --corpus ODD", (2,)),
    ("simulate RULES --corpus FLOWS --node NODE", (2,)),
    ("simulate WRONG --corpus FLOWS", (2,)),
    ("explain RULES", (0,)),
    ("explain RULES --format json", (0,)),
    ("explain RULES --packet PACKET --all --reply", (0,)),
    ("explain RULES --packet PACKET --format json", (0,)),
    ("explain RULES --packet ESC", (2,)),
    ("graph RULES", (0,)),
    ("graph RULES --format json", (0,)),
    ("graph RULES --format dot", (0,)),
    ("graph RULES --format svg", (0,)),
    ("graph RULES --chain ESC", (2,)),
    ("graph RULES --ESC", (2,)),
    ("graph RULES --ipsets SETS", (2,)),
    ("corpus coverage RULES --corpus FLOWS", (0, 1)),
    ("corpus coverage RULES --corpus FLOWS --format json", (0, 1)),
    ("corpus coverage RULES --corpus FLOWS --format html", (0, 1)),
    ("corpus generate RULES", (0, 1)),
    ("corpus import RULES --rules RULES", (2,)),
    ("diff RULES --corpus FLOWS --against NFT", (2,)),
    ("diff RULES --corpus FLOWS --against NFTJSON", (2,)),
    ("diff RULES --corpus FLOWS --only ESC", (2,)),
    ("assess RULES --objects OBJECTS", (2,)),
    ("migrate apply PLAN", (2,)),
    ("ESC", (2,)),
    ("graph ESC", (2,)),
]


@pytest.mark.parametrize(("command", "statuses"), SHOWN)
def test_nothing_is_shown_that_a_terminal_obeys(
    command: str, statuses: tuple[int, ...], files: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    given = {**files, "ESC": ESCAPES, "--ESC": f"--{ESCAPES}", "PACKET": "tcp 10.0.0.9:4 > 192.0.2.2:80"}
    try:
        status = main([given.get(word, word) for word in command.split()])
    except SystemExit as e:
        status = int(str(e.code))
    shown = capsys.readouterr()
    if not command.startswith(("translate", "corpus generate")):  # exact when it is no terminal
        assert all(c in "\n\t" or c.isprintable() for c in shown.out)
    assert all(c in "\n\t" or c.isprintable() for c in shown.err)
    assert status in statuses, shown.err
    assert not any(line.startswith("nfparity: all is well") for line in (shown.out + shown.err).splitlines())


@pytest.mark.parametrize(
    "command", ["translate RULES --to iptables", "translate RULES --to nft", "graph RULES", "explain RULES"]
)
def test_on_a_terminal(command: str, files: dict[str, str]) -> None:
    words = [files.get(word, word) for word in command.split()]
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(ROOT)
        os.execv(sys.executable, [sys.executable, "-m", "nfparity.cli", *words])
    shown = b""
    while True:
        try:
            part = os.read(terminal, 65536)
        except OSError:
            break
        if not part:
            break
        shown += part
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) in (0, 2)
    text = shown.decode().replace("\r\n", "\n")
    assert "\\u001b[31m" in text or "--to nft" in command
    assert all(c in "\n\t" or c.isprintable() for c in text)


def test_files_and_pipes_get_the_rules_as_they_are(
    files: dict[str, str], tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    path = tmp_path / "rules"
    path.write_bytes(Path(files["RULES"]).read_bytes().replace(b"\r", b"\xff"))
    out = tmp_path / "out"
    assert main(["translate", str(path), "--to", "iptables"]) == 0
    assert main(["translate", str(path), "--to", "iptables", "-o", str(out)]) == 0
    assert capsysbinary.readouterr().out == out.read_bytes() == path.read_bytes()


def nfparity(*words: str, redirect: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    command = f'exec "$0" -m nfparity.cli "$@" {redirect}'
    return subprocess.run(
        ["sh", "-c", command, sys.executable, *words],
        capture_output=True,
        cwd=ROOT,
        timeout=120,
        check=False,
        text=True,
        encoding="utf-8",
        errors="replace",
        stdin=subprocess.DEVNULL,
        env={**os.environ, **environment},
    )


WRITING = [
    ("graph", RULES),
    ("requires", RULES),
    ("simulate", "--corpus", "tests/corpus/cases/accept-local"),
    ("translate", RULES, "--to", "iptables"),
    ("explain", RULES, "--format", "json"),
    ("corpus", "coverage", RULES, "--node", NODE, "--corpus", "/dev/null"),
    ("--help",),
    ("--version",),
    ("diff", "--help"),
]


@pytest.mark.parametrize("words", WRITING, ids=lambda words: " ".join(words[:2])[:30])
@pytest.mark.parametrize("redirect", [">/dev/full", ">&-"])
def test_output_that_cannot_be_written_is_status_3(words: tuple[str, ...], redirect: str) -> None:
    words = tuple(word for word in words)
    done = nfparity(*words, redirect=redirect)
    assert done.returncode == 3, done
    assert done.stderr.splitlines()[-1].startswith("nfparity: standard output cannot be written: ")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("redirect", ["2>/dev/full", "2>&-", "2>&- <&-", "<&-"])
def test_messages_that_cannot_be_written_change_no_status(redirect: str) -> None:
    assert nfparity("graph", "no-such-file", redirect=redirect).returncode == 2
    done = nfparity("graph", RULES, redirect=redirect)
    assert done.returncode == 0
    assert "KUBE-SERVICES" in done.stdout


def test_a_standard_input_that_is_closed() -> None:
    done = nfparity("graph", "-", redirect="<&-")
    assert (done.returncode, done.stderr) == (
        2, "nfparity: <stdin>: cannot be read: standard input is closed\n",
    )  # fmt: skip


def test_closed_streams_are_nobody_elses(tmp_path: Path) -> None:
    """The rules would be opened as descriptor 2, and messages be written into them."""
    path = tmp_path / "rules"
    path.write_bytes(b"*filter\n:INPUT ACCEPT [0:0]\n-A INPUT -j NOWHERE\nCOMMIT\n")
    before = path.read_bytes()
    assert nfparity("graph", str(path), redirect="<&- >&- 2>&-").returncode == 2
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "encoding",
    ["ascii:strict", *(pytest.param(name, marks=pytest.mark.slow) for name in ("ascii", "latin-1", "cp437"))],
)
def test_output_that_knows_few_characters(encoding: str, tmp_path: Path) -> None:
    path = tmp_path / "rules"
    path.write_text(HOSTILE.replace(CHAIN, "Zürich…"), encoding="utf-8")
    for words in (("graph", str(path)), ("explain", str(path)), ("graph", str(path), "--chain", "Zürich…x")):
        done = nfparity(*words, PYTHONIOENCODING=encoding)
        assert "Traceback" not in done.stderr
        assert done.returncode == (2 if "--chain" in words else 0)
    data = nfparity(
        "translate", str(path), "--to", "iptables", redirect=f">{tmp_path}/out", PYTHONIOENCODING=encoding
    )
    assert data.returncode == 0
    assert (tmp_path / "out").read_bytes() == path.read_bytes()


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (("translate", RULES, "--to", "nft", "-o", "/dev/full"), 3),
        (("translate", RULES, "--to", "nft", "-o", "/no/such/folder/x"), 2),
        (("translate", RULES, "--to", "nft", "-o", "/"), 2),
        (("translate", RULES, "--to", "nft", "-o", "x" * 300), 2),
        (("corpus", "export", "FLOWS", "--node", NODE, "-o", "/dev/full"), 3),
        (("corpus", "export", "FLOWS", "--node", NODE, "-o", "/no/such/x.pcapng"), 2),
        (("corpus", "generate", RULES, "--node", NODE, "-o", "/dev/full"), 3),
    ],
)
def test_a_file_that_cannot_be_written(
    words: tuple[str, ...], status: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flows = tmp_path / "flows"
    flows.write_text('{"id": "a", "in": "pod5", "src": "10.244.0.5", "dst": "10.96.0.10", "proto": 1}\n')
    assert main([{"FLOWS": str(flows)}.get(word, word) for word in words]) == status
    assert "cannot be written" in capsys.readouterr().err


def test_a_full_disk_leaves_the_old_file(tmp_path: Path) -> None:
    limits = "ulimit -f 1;"
    target = tmp_path / "out"
    target.write_text("old")
    target.chmod(0o600)
    command = f'{limits} exec "$0" -m nfparity.cli translate {RULES} --to bpf -o {target}'
    code = (
        "import signal,sys,os; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); os.execvp('sh', sys.argv[1:])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "sh", "-c", command, sys.executable],
        capture_output=True,
        text=True,
        cwd=ROOT,
        # Python 3.11 would keep bytecode that is cut short there, and nothing could import it afterwards.
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        check=False,
    )
    assert done.returncode == 3, done
    assert "cannot be written: file too large" in done.stderr
    assert target.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_a_case_appears_as_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pcap = tmp_path / "c.pcap"
    flows = tmp_path / "flows"
    flows.write_text('{"id": "a", "in": "pod5", "src": "10.244.0.5", "dst": "10.96.0.10", "proto": 1}\n')
    assert main(["corpus", "export", str(flows), "--node", NODE, "-o", str(pcap)]) == 0

    def fails(case: object) -> str:
        raise MemoryError

    monkeypatch.setattr("harness.corpus.newcase.expectations", fails)
    words = [
        "corpus",
        "import",
        str(pcap),
        "--rules",
        RULES,
        "--node",
        NODE,
        "--case",
        str(tmp_path / "case"),
    ]
    assert main(words) == 3
    assert {p.name for p in tmp_path.iterdir()} == {"c.pcap", "flows"}


def test_a_fault_of_ours_has_a_status_of_its_own(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise KeyError(ESCAPES)

    monkeypatch.setattr("nfparity.cli.graph.load_pieces", broken)
    assert main(["graph", RULES]) == 70
    err = capsys.readouterr().err
    assert "Traceback" in err
    assert (
        err.splitlines()[-1]
        == "nfparity: this is a bug of nfparity, not a fault of its input; please report it"
    )
    assert all(c in "\n\t" or c.isprintable() for c in err)
