from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from translate.errors import MachineError
from vm import difftest, nft, translator
from vm.unpacked import machine_version
from vm.userland import ensure_userland

ROOT = Path(__file__).resolve().parents[2]
VENV = Path(sys.prefix)

LOADED = """
import subprocess, sys
from backends.testbed.libnftables import NftHandle
from backends.testbed.command import run
NftHandle()
print(next(line.split()[-1] for line in open("/proc/self/maps") if "libnftables" in line))
print(sys.modules["nftables"].__file__)
print(sys.prefix)
for command in ("iptables-nft-restore", "ip6tables-legacy-save", "nft"):
    print(run((command, "--version")).stdout.split(" v")[1].split()[0])
if len(sys.argv) == 1:
    subprocess.run([sys.executable, "-c", sys.stdin.read(), "again"], check=True)
"""


VERSIONS = {release: (nft.RELEASES[release], translator.RELEASES[release]) for release in nft.RELEASES}


@pytest.mark.slow
@pytest.mark.parametrize("release", VERSIONS)
def test_every_process_has_the_programs_of_the_release(release: str) -> None:
    """The processes that replay packets are started by the Python that the first one runs as."""
    try:
        programs = ensure_userland(release, build=ROOT / "build", venv=VENV, say=print)
    except MachineError as e:
        pytest.skip(f"the packages of the release cannot be fetched: {e}")
    if (machine_version("nft"), machine_version("iptables-nft")) == VERSIONS[release]:
        assert programs is None
        return
    assert programs is not None
    done = subprocess.run(
        [str(programs / "python"), "-c", LOADED],
        input=LOADED,
        env={"PATH": f"{programs}:/usr/bin:/bin"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    of_nft, of_iptables = VERSIONS[release]
    lines = done.stdout.splitlines()
    library, bindings, prefix, *found = lines[:6]
    assert f"/build/python3-nftables/{release}/" in library
    assert f"/build/python3-nftables/{release}/" in bindings
    assert prefix == str(programs.parent)
    assert found == [of_iptables, of_iptables, of_nft]
    assert lines[6:] == lines[:6]


def test_an_unknown_release_is_bad_input(capsys: pytest.CaptureFixture[str]) -> None:
    assert difftest.main(["--userland", "sid", "--backends", "nftables"]) == 2
    assert "USERLAND=sid: expected bookworm, trixie" in capsys.readouterr().err
