"""``-m cgroup`` and its translation beside each other, for senders in several cgroups.

The namespace of mounts has the hierarchy of version 2 where nft looks for it. The cgroups of the test are
below the first one, with names of their own.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kernel.helpers.ownmounts import IN_OWN_MOUNTS
from translate.ir import Family
from translate.nft import emit
from translate.passes import lower
from translate.read import read_ruleset

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root"),
    pytest.mark.skipif("cgroup2" not in Path("/proc/filesystems").read_text(), reason="needs cgroup2"),
]

TOP = f"nfparity-{os.getpid()}.slice"
CGROUPS = ("", TOP, f"{TOP}/a.service", f"{TOP}/a.service/deep", f"{TOP}/ab.service")
MATCHES = (
    *(f"--path {TOP}", f"! --path {TOP}", f"--path {TOP}/a.service", f"! --path /{TOP}//a.service/"),
    *(f"--path {TOP}/a.service/deep", "--path /", "! --path /", "--cgroup 0", "! --cgroup 0", "--cgroup 5"),
)
NEVER = {"! --path /", "! --cgroup 0", "--cgroup 5"}
HOOKS = ("OUTPUT", "INPUT")

_SCRIPT = """
import json, os, re, socket, subprocess, sys
legacy, ours, cgroups = json.load(sys.stdin)
def run(*words, text=None):
    return subprocess.run(words, input=text, text=True, check=True, capture_output=True).stdout
root = "/sys/fs/cgroup"
os.makedirs(root, exist_ok=True)
run("mount", "-t", "cgroup2", "none", root)
run("ip", "link", "set", "lo", "up")
for cgroup in cgroups[1:]:
    os.mkdir(f"{root}/{cgroup}")
def enter(cgroup):
    with open(f"{root}/{cgroup}/cgroup.procs", "w") as file:
        file.write(str(os.getpid()))
try:
    run("iptables-legacy-restore", text=legacy)
    run("nft", "-f", "-", text=ours)
    states = []
    for number, cgroup in enumerate(cgroups):
        enter(cgroup)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.sendto(b"", ("127.0.0.1", 9))
        with socket.socket() as server, socket.socket() as client:
            server.bind(("127.0.0.1", 4000 + number))
            server.listen()
            client.connect(server.getsockname())
            server.accept()[0].close()
        states.append((run("iptables-legacy-save", "-c", "-t", "mangle"), run("nft", "list", "ruleset")))
finally:
    enter("")
    for cgroup in reversed(cgroups[1:]):
        os.rmdir(f"{root}/{cgroup}")
print(json.dumps(states))
"""


@pytest.mark.parametrize("level", [0, 2])
def test_the_same_senders_match(level: int) -> None:
    every = [(hook, words) for hook in HOOKS for words in MATCHES]
    lines = [
        f"-A {hook} -m cgroup {words} -m nfacct --nfacct-name a{n}." for n, (hook, words) in enumerate(every)
    ]
    rules = "\n".join(("*mangle", *lines, "COMMIT", ""))
    legacy = rules.replace(" -m nfacct", " -m comment").replace("--nfacct-name", "--comment")
    text = emit(lower(read_ruleset(rules.encode(), name="rules", family=Family.IP), level=level)).text
    done = subprocess.run(
        [*IN_OWN_MOUNTS, "unshare", "--net", sys.executable, "-c", _SCRIPT],
        input=json.dumps((legacy, text, CGROUPS)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    before = [0] * len(every)
    for cgroup, (saved, listed) in zip(CGROUPS, json.loads(done.stdout), strict=True):
        counts = {int(n): int(c) for c, n in re.findall(r"^\[(\d+):.*--comment \"?a(\d+)\.", saved, re.M)}
        legacy_counts = [counts[n] for n in range(len(every))]
        found = re.findall(r"counter nfacct_a(\d+)\S* \{.*?packets (\d+)", listed, re.DOTALL)
        ours = {int(n): int(c) for n, c in found}
        different = {
            " ".join(each): (legacy_counts[n], ours.get(n, 0))
            for n, each in enumerate(every)
            if legacy_counts[n] != ours.get(n, 0)
        }
        assert not different, cgroup
        assert legacy_counts != before
        before = legacy_counts
    silent = {words for n, (hook, words) in enumerate(every) if hook == "OUTPUT" and not before[n]}
    assert silent == NEVER
