"""The harness in the hands of a user without rights: user namespaces are enough for iptables and nft."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kernel.helpers.ownmounts import IN_OWN_MOUNTS
from tests.lab.pycache import compiled_modules

ROOT = Path(__file__).resolve().parents[2]
CASE = ROOT / "tests/corpus/cases/calico"
NOBODY = 65534
SITE = next(path for path in sys.path if path.endswith("site-packages"))

# /dev/net/tun as most distributions have it, in a mount namespace of its own; then as an ordinary user.
_START = """
import os, sys, nfparity.cli.main, deepdiff
os.execv(sys.executable, ["python", "-V"])
"""
SCRIPT = f"""
mount -t tmpfs -o mode=755 none /dev/net
mknod -m $1 /dev/net/tun c 10 200
shift
exec setpriv --reuid {NOBODY} --regid {NOBODY} --clear-groups --bounding-set=-all --inh-caps=-all -- "$@"
"""


def run(*command: str, mode: str = "666") -> subprocess.CompletedProcess[str]:
    environment = {
        "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
        "PYTHONPATH": f"{ROOT}:{SITE}",
        **compiled_modules(),
    }
    words = [*IN_OWN_MOUNTS, "sh", "-ec", SCRIPT, "sh", mode, *command]
    return subprocess.run(words, capture_output=True, text=True, check=False, env=environment, cwd="/")


@pytest.fixture(scope="module")
def python() -> str:
    """An interpreter that an ordinary user can start, with this project."""
    if shutil.which("setpriv") is None:
        pytest.skip("needs setpriv (Debian package util-linux)")
    made = run("unshare", "--user", "--map-root-user", "--net", "true")
    if made.returncode:
        pytest.skip(f"no user namespaces here, as in a chroot: {made.stderr.strip()}")
    for found in (sys.executable, "/usr/bin/python3"):
        started = run(found, "-c", _START)
        if started.returncode == 0 and "3.1" in started.stdout:
            return found
    pytest.skip("an ordinary user can read neither this interpreter nor this folder")


def diff(python: str, backends: str, mode: str = "666") -> subprocess.CompletedProcess[str]:
    words = [python, "-m", "nfparity.cli", "diff", "--corpus", str(CASE), "--backends", backends]
    return run(*words, mode=mode)


def test_iptables_and_nftables_run_in_a_user_namespace(python: str) -> None:
    done = diff(python, "iptables-legacy,iptables-nft,nftables")
    assert done.returncode == 0, done.stderr
    assert "parity" in done.stdout


_ONE_AFTER_ANOTHER = """
from functools import partial
from backends.replay.successive import lent_worker, workers_kept
with workers_kept():
    for _ in range(3):
        with lent_worker("k", partial(eval, "lambda message: message()")) as worker:
            print(worker.pid, worker.ask(partial(eval, "__import__('os').readlink('/proc/self/ns/net')")))
"""


def test_one_process_enters_one_namespace_after_another(python: str) -> None:
    done = run(python, "-c", _ONE_AFTER_ANOTHER)
    assert done.returncode == 0, done.stderr
    pids, namespaces = zip(*(line.split() for line in done.stdout.splitlines()), strict=True)
    assert (len(pids), len(set(pids)), len(set(namespaces))) == (3, 1, 3)


def test_bpf_programs_need_root(python: str) -> None:
    done = diff(python, "tc-ebpf")
    assert done.returncode == 3
    assert "no permission to load BPF programs" in done.stderr


def test_a_closed_device_is_named(python: str) -> None:
    done = diff(python, "nftables", mode="600")
    assert done.returncode == 3
    assert "no permission to open /dev/net/tun: Permission denied; root is needed" in done.stderr
