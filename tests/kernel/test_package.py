"""The Debian package in a bare Debian 12 and 13: installed, used and removed.

The roots are made with debootstrap and kept under build/roots. Each test works in a copy, in a mount
namespace of its own, so that nothing stays mounted. Kernel headers are the checkout's: Debian's package of
them installs a kernel, too.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from backends.tc_ebpf.programs.bcc import find_headers
from tests.kernel.helpers.roots import bare_root

ROOT: Final = Path(__file__).parents[2]
RULES: Final = "tests/corpus/rulesets/kind-node/rules.iptables-save"
CASE: Final = ("cases/aws-vpc-cni", "rulesets/aws-vpc-cni")

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="makes roots and network namespaces"),
    pytest.mark.skipif(shutil.which("debootstrap") is None, reason="needs debootstrap"),
]

_INSTALL: Final = """
mount -t proc proc "$1/proc"; mount -t sysfs sys "$1/sys"; mount --rbind /dev "$1/dev"
if [ -n "$2" ]; then mount --bind "$2" "$1/usr/src"; fi
export DEBIAN_FRONTEND=noninteractive
chroot "$1" apt-get update -qq
chroot "$1" apt-get install -y -qq --no-install-recommends /nfparity.deb
"""
_USE: Final = """
nfparity --version
unshare --net sh -c '
    ip tuntap add dev eth0 mode tap && ip addr add 10.244.0.1/24 dev eth0 && ip link set eth0 up
    ip link set lo up && ip route add default via 10.244.0.254
    iptables-restore </rules && nfparity capture -o /node.tar.gz'
nfparity assess /node.tar.gz || test $? = 1
nfparity translate /node.tar.gz --to nft
nfparity explain /node.tar.gz --packet "udp 10.244.0.5:1000 > 10.96.0.10:53 in eth0"
cd / && mkdir elsewhere && cd elsewhere && echo 'raise SystemExit("imported")' >translate.py
nfparity diff --corpus /corpus/cases/aws-vpc-cni
"""


@pytest.mark.parametrize("suite", ["bookworm", "trixie"])
def test_installed_used_and_removed(suite: str, tmp_path: Path) -> None:
    root = tmp_path / "root"
    subprocess.run(["cp", "-a", bare_root(suite), root], check=True)
    built = subprocess.run(
        [ROOT / "deploy/deb/build.sh", tmp_path], env=os.environ | {"PYTHON": sys.executable},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    shutil.copy(built.stdout.strip(), root / "nfparity.deb")
    for folder in CASE:
        shutil.copytree(ROOT / "tests/corpus" / folder, root / "corpus" / folder)
    shutil.copy(ROOT / RULES, root / "rules")
    for name in ("resolv.conf", "hosts"):
        shutil.copy(f"/etc/{name}", root / "etc" / name)
    headers = find_headers()
    sources = headers[0].resolve().parent if headers is not None else None

    script = (
        f'{_INSTALL}\nchroot "$1" sh -euc \'{_quoted(_USE)}\'\nchroot "$1" apt-get remove -y -qq nfparity\n'
    )
    words = ["unshare", "--mount", "sh", "-euxc", script, "-", str(root), str(sources or "")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert "table ip nfparity {" in done.stdout
    for backend in ("iptables-legacy", "iptables-nft", "nftables", *(["tc-ebpf"] if sources else [])):
        assert any(line.split()[::2] == [backend, "0"] for line in done.stdout.splitlines() if line), backend
    assert not list(root.glob("usr/*/nfparity"))
    shutil.rmtree(root)  # half a gigabyte


def _quoted(script: str) -> str:
    return script.replace("'", "'\\''")
