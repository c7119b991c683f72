"""``-m cgroup`` in iptables-legacy and in the tc program, for packets of senders in several cgroups."""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import struct
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from backends.tc_ebpf import TcEbpfBackend
from backends.tc_ebpf.dataplane import Dataplane
from tests.kernel.helpers.availability import require
from tests.kernel.helpers.ownmounts import IN_OWN_MOUNTS
from translate.bpf import emit
from translate.passes import lower
from translate.passes.inventory import Inventory
from translate.passes.recents import recent_lists
from translate.read import read_ruleset

pytestmark = pytest.mark.skipif(
    "cgroup2" not in Path("/proc/filesystems").read_text(), reason="needs cgroup2"
)

ROOT: Final = Path("/sys/fs/cgroup")
MATCHES = (
    *(
        "--path {}",
        "! --path {}",
        "--path {}/a.service",
        "! --path /{}//a.service/",
        "--path {}/a.service/deep",
    ),
    *("--path /", "! --path /", "--cgroup 0", "! --cgroup 0", "--cgroup 5"),
)
NEVER = {"! --path /", "! --cgroup 0", "--cgroup 5"}
HOOKS = ("OUTPUT", "POSTROUTING")
REJECT = """\
*filter
-A OUTPUT -p udp --dport 10 -j REJECT
-A OUTPUT -p tcp --dport 11 -j REJECT --reject-with tcp-reset
COMMIT
"""


@pytest.mark.parametrize("level", [0, pytest.param(2, marks=pytest.mark.slow)])
def test_the_same_senders_match(level: int) -> None:
    require(TcEbpfBackend())
    top = f"nfparity-tc-{os.getpid()}.slice"
    done = subprocess.run(
        [*IN_OWN_MOUNTS, "unshare", "--net", sys.executable, "-m", __name__, top, str(level)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    matched = set()
    for cgroup, (legacy, ours) in json.loads(done.stdout).items():
        assert legacy == ours, cgroup
        matched.update(legacy)
    every = {f"{hook} {words.format(top)}" for hook in HOOKS for words in MATCHES}
    assert every - matched == {f"{hook} {words}" for hook in HOOKS for words in NEVER}


def run(*words: str, text: str | None = None) -> str:
    return subprocess.run(words, input=text, text=True, check=True, capture_output=True).stdout


def enter(cgroup: str) -> None:
    (ROOT / cgroup / "cgroup.procs").write_text(str(os.getpid()))


def main() -> None:
    """Print which matches have held for packets of senders in each cgroup, in both."""
    top, level = sys.argv[1], int(sys.argv[2])
    cgroups = ("", top, f"{top}/a.service", f"{top}/a.service/deep", f"{top}/ab.service")
    every = [f"{hook} {words.format(top)}" for hook in HOOKS for words in MATCHES]
    ROOT.mkdir(parents=True, exist_ok=True)
    run("mount", "-t", "cgroup2", "none", str(ROOT))
    run("ip", "link", "set", "lo", "up")
    for cgroup in cgroups[1:]:
        (ROOT / cgroup).mkdir()
    rules = [f"-A {words.replace(' ', ' -m cgroup ', 1)}" for words in every]
    counted = "".join(f"{words} -m comment --comment a{n}.\n" for n, words in enumerate(rules))
    listed = "".join(f"{words} -m recent --set --name a{n:03} --rsource\n" for n, words in enumerate(rules))
    found: dict[str, list[list[str]]] = {}
    try:
        for kind in ("iptables-legacy", "tc"):
            text = f"*mangle\n{counted if kind != 'tc' else listed}COMMIT\n{REJECT}"
            program = None
            if kind == "tc":
                lowered = lower(read_ruleset(text.encode(), name="rules"), level=level)
                lists = [int(name[1:]) for name in sorted(recent_lists(Inventory.of(lowered)))]
                program = Dataplane(emit(lowered))
                program.load()
            else:
                run("iptables-legacy-restore", text=text)
            for cgroup in cgroups:
                enter(cgroup)
                if program is None:
                    run("iptables-legacy", "-t", "mangle", "-Z")
                    send()
                    held = counted_ones()
                else:
                    program.map("recents").clear()
                    send()
                    keys = (key for key, _ in program.map("recents").entries())
                    held = {lists[struct.unpack_from("=I", key)[0]] for key in keys}
                found.setdefault(cgroup, []).append(sorted(every[n] for n in held))
            run("iptables-legacy-restore", text="*mangle\nCOMMIT\n*filter\nCOMMIT\n")
    finally:
        enter("")
        for cgroup in reversed(cgroups[1:]):
            (ROOT / cgroup).rmdir()
    print(json.dumps(found))


def counted_ones() -> set[int]:
    """Return the numbers of the matches that have held in iptables."""
    saved = run("iptables-legacy-save", "-c", "-t", "mangle")
    return {int(n) for n in re.findall(r"^\[[1-9]\d*:.*--comment \"?a(\d+)\.", saved, re.MULTILINE)}


def send() -> None:
    """Send datagrams, one of them to a closed port and one that is rejected, and make a connection."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for port in (9, 10):
            with contextlib.suppress(OSError):  # a rejected packet fails in iptables alone
                sender.sendto(b"", ("127.0.0.1", port))
    for port in (11, 12):  # rejected, and closed
        with socket.socket() as client:
            client.connect_ex(("127.0.0.1", port))
    with socket.socket() as server, socket.socket() as client:
        server.bind(("127.0.0.1", 0))
        server.listen()
        client.connect(server.getsockname())
        client.send(b"data")
        with server.accept()[0] as accepted:
            accepted.recv(4)
        client.recv(1)


if __name__ == "__main__":
    main()
