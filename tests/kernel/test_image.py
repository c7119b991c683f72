"""The container images: built, unpacked as a runtime does, and used, as root and as an ordinary user."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Final

import pytest

from harness.diff.backends import backend
from tests.kernel.helpers.availability import require

ROOT: Final = Path(__file__).parents[2]
RULES: Final = ROOT / "tests/corpus/rulesets/kube-real/rules.iptables-save"
KIND: Final = ROOT / "tests/corpus/rulesets/kind-node/rules.iptables-save"

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="makes roots and network namespaces"),
    pytest.mark.skipif(shutil.which("debootstrap") is None, reason="needs debootstrap"),
]

# A root like a container's, by pivot_root: in a chroot no user namespace could be made.
_ENTER: Final = """
mount --bind "$0" "$0"; cd "$0"
mount -t proc proc proc; mount --rbind /dev dev; mount -t tmpfs tmpfs tmp; mount -t tmpfs tmpfs run
mknod -m 666 run/tun c 10 200; mount --bind run/tun dev/net/tun
mkdir tmp/old; pivot_root . tmp/old; umount -l /tmp/old
cd /
exec "$@"
"""
_AS_USER: Final = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all")
_AS_USER_WITHOUT_RIGHTS: Final = (*_AS_USER, "--bounding-set=-all", "--no-new-privs")


def build(folder: Path, name: str) -> Path:
    """Build an image; return the folder in which its layer is unpacked."""
    done = subprocess.run(
        [sys.executable, "-m", "deploy.image", folder, "--only", name],
        cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if "debootstrap ended" in done.stderr:
        pytest.skip(f"debootstrap cannot make a root: {done.stderr[-300:]}")
    assert done.returncode == 0, done.stderr
    image, digest = done.stdout.split()
    root = folder / "root"
    with tarfile.open(image) as archive:
        blob = archive.extractfile(f"blobs/{digest.replace(':', '/')}")
        assert blob is not None
        manifest = json.load(blob)
        archive.extract(f"blobs/{manifest['layers'][0]['digest'].replace(':', '/')}", folder)
    root.mkdir()
    subprocess.run(
        ["tar", "--numeric-owner", "-xpzf", next((folder / "blobs/sha256").iterdir()), "-C", root], check=True
    )
    return root


def inside(root: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a program in the root."""
    return subprocess.run(
        ["unshare", "--mount", "--net", "sh", "-euc", _ENTER, root, *words],
        env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/tmp", "LANG": "C.UTF-8"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_the_image_of_nfparity(tmp_path: Path) -> None:
    require(backend("iptables-legacy"), backend("nftables"))
    root = build(tmp_path, "nfparity")
    shutil.copy(RULES, root / "rules")
    shutil.copy(KIND, root / "kind")
    # In a user namespace the kernel refuses the lists of -m recent, which the first rules have.
    for user, rules in (((), "/rules"), (_AS_USER, "/kind")):
        done = inside(root, *user, "nfparity", "assess", rules, "--known-only", "--only", "K05")
        assert done.returncode == 1, done.stderr
        assert "1 known difference (K05), 0 unexplained" in done.stdout
    done = inside(root, *_AS_USER_WITHOUT_RIGHTS, "nfparity", "translate", "/rules", "--to", "nft")
    assert (done.returncode, done.stdout[:22]) == (0, "add table ip nfparity\n"), done.stderr
    bill = json.loads(next(tmp_path.glob("nfparity-*.spdx.json")).read_text())
    names = {package["name"] for package in bill["packages"]}
    listed = inside(root, "dpkg-query", "-W", "-f", "${Package}\\n").stdout.split()
    assert names == {*listed, "nfparity"}
    shutil.rmtree(root)


def test_the_image_of_the_capture_is_the_same_every_time(tmp_path: Path) -> None:
    root = build(tmp_path / "a", "nfparity-capture")
    words = ("python3", "/nfparity-capture.pyz", "-o", "-", "--text")
    done = inside(root, "sh", "-c", f"iptables-restore </rules && exec {' '.join(words)}")
    assert done.returncode != 0, "no rules yet"
    shutil.copy(RULES, root / "rules")
    done = inside(root, "sh", "-c", f"iptables-restore </rules && exec {' '.join(words)}")
    assert done.returncode == 0, done.stderr
    assert "-----BEGIN NFPARITY SNAPSHOT-----\n" in done.stdout
    build(tmp_path / "b", "nfparity-capture")
    first, second = (next((tmp_path / name).glob("*.oci.tar")) for name in ("a", "b"))
    assert first.read_bytes() == second.read_bytes()
    shutil.rmtree(root)
