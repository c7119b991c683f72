"""The rights in deploy/capture.yaml are exactly those that capture needs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from nfparity.capture.package import make
from nfparity.snapshot import Variant, load_snapshot
from tests.kernel.helpers.ownmounts import IN_OWN_MOUNTS
from translate.errors import InputError
from translate.ir import Family

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.skipif(os.geteuid() != 0, reason="makes network namespaces"),
]

SCRIPT = """
set -e
ip tuntap add eth0 mode tap
ip address add 172.18.0.2/16 dev eth0
ip link set eth0 up
printf '*filter\\n-A INPUT -s 192.0.2.1/32 -j DROP\\nCOMMIT\\n' | iptables-legacy-restore
printf '*filter\\n-A INPUT -s 192.0.2.2/32 -j DROP\\nCOMMIT\\n' | iptables-nft-restore
nft add table inet other
# As in a container whose root is read-only; iptables-legacy's lock is in there.
mount --bind /run /run
mount -o remount,ro,bind /run
exec setpriv --no-new-privs --inh-caps=-all --bounding-set=-all{capabilities} "$@"
"""


def captured(folder: Path, *capabilities: str) -> tuple[int, str, str]:
    """Capture a namespace with rules of both variants, as root with these capabilities alone."""
    program, target = folder / "capture.pyz", folder / "node.tar.gz"
    make(program)
    script = SCRIPT.format(capabilities="".join(f",+{one}" for one in capabilities))
    words = [sys.executable, "-I", "-S", str(program), "-o", str(target)]
    done = subprocess.run(
        [*IN_OWN_MOUNTS, "unshare", "--net", "sh", "-c", script, "sh", *words],
        capture_output=True,
        text=True,
        env={**os.environ, "XTABLES_LOCKFILE": str(folder / "lock")},
        check=False,
    )
    return done.returncode, str(target), done.stderr


def test_the_rights_of_the_manifest_are_enough(tmp_path: Path) -> None:
    status, path, said = captured(tmp_path, "net_admin", "net_raw")
    assert status == 0, said
    snapshot = load_snapshot(path)
    assert set(snapshot.rules) >= {(Variant.LEGACY, Family.IP), (Variant.NFT, Family.IP)}
    for variant, address in ((Variant.LEGACY, "192.0.2.1"), (Variant.NFT, "192.0.2.2")):
        chains = snapshot.ruleset(Family.IP, variant).tables[0].chains
        assert [address in rule.origin.text for chain in chains for rule in chain.rules] == [True]
    assert '"other"' in (snapshot.nft or "")
    assert "failed" not in said
    # Without the right to a namespace, only expressions without effects are tried.
    tried = snapshot.meta["expressions"]
    assert isinstance(tried, dict)
    assert not tried["own namespace"]
    assert "nft_ct" in tried["not tried"]


@pytest.mark.parametrize("capability", ["net_admin", "net_raw"])
def test_one_of_them_is_not(capability: str, tmp_path: Path) -> None:
    status, path, said = captured(tmp_path, capability)
    assert "failed" in said or "cannot" in said or "no rules" in said
    if status:  # nothing could be read at all
        return
    with pytest.raises((InputError, KeyError)):
        _ = load_snapshot(path).rules[Variant.LEGACY, Family.IP].whole().tables[0]
