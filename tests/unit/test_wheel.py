"""The wheel: its contents, and its commands on a machine without the bindings of nftables and BCC."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Final

import pytest

from tests.lab.commands import Done

ROOT: Final = Path(__file__).parents[2]
PACKAGES: Final = ("translate", "backends", "harness", "nfparity")
KIND: Final = ROOT / "tests/corpus/rulesets/kind-node"
RULES: Final = (str(KIND / "rules.iptables-save"),)
PACKET: Final = "udp 10.244.0.5:1 > 10.96.0.10:53 in pod5"
_WITHOUT_BINDINGS: Final = """
import sys
import backends.testbed.libnftables, backends.tc_ebpf.programs.bcc, nfparity.cli, nfparity.doctor
assert nfparity.__file__.startswith(sys.argv[1])
for module in (backends.testbed.libnftables, backends.tc_ebpf.programs.bcc, nfparity.doctor):
    module._PLACES = ()
sys.exit(nfparity.cli.main(sys.argv[2:]))
"""

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    tree = folder / "tree"
    tree.mkdir()
    packed = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, capture_output=True, check=True).stdout
    subprocess.run(["tar", "-x"], input=packed, cwd=tree, check=True)
    made = subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", f"--wheel-dir={folder}", str(tree)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stderr
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("installed")
    zipfile.ZipFile(wheel).extractall(folder)
    return folder


def nfparity(installed: Path, *words: str) -> Done:
    """Run a command of the unpacked wheel as if there were no bindings on this machine."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", _WITHOUT_BINDINGS, str(installed), *words],
        cwd=installed, env=os.environ | {"PYTHONPATH": str(installed)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return Done(done.returncode, done.stdout, done.stderr)


def test_the_wheel_has_the_licence_the_types_and_all_data(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert {name.partition("/")[0] for name in names if ".dist-info/" not in name} == set(PACKAGES)
    for package in PACKAGES:
        assert f"{package}/py.typed" in names
        data = {path for path in _tracked(package) if Path(path).suffix not in (".py", ".md")}
        assert data <= names


def test_commands_that_need_no_bindings_work(installed: Path) -> None:
    flow = installed / "flows.jsonl"
    flow.write_text(
        '{"id": "dns", "in": "pod5", "src": "10.244.0.5", "dst": "10.96.0.10",'
        ' "proto": "udp", "sport": 1, "dport": 53}\n'
    )
    node = ("--node", str(KIND / "worker.json"))
    for words, expected in (
        (("translate", *RULES, "--to", "nft"), "table ip nfparity {"),
        (("translate", *RULES, "--to", "bpf"), "#define CONNECTIONS"),
        (("explain", *RULES, *node, "--packet", PACKET), "10.96.0.10:53"),
        (("simulate", *RULES, *node, "--corpus", str(flow)), '"forward"'),
        (("graph", *RULES), "KUBE-SERVICES"),
    ):
        done = nfparity(installed, *words)
        assert done.returncode == 0, done.stderr
        assert expected in done.stdout, words


@pytest.mark.skipif(os.geteuid() != 0, reason="without root, that is the reason given")
@pytest.mark.parametrize(
    ("words", "package"),
    [
        (("diff", *RULES, "--random", "1", "--backends", "nftables"), "python3-nftables"),
        (("diff", *RULES, "--random", "1", "--backends", "tc-ebpf"), "python3-bpfcc"),
        (("tc", "load", *RULES), "python3-bpfcc"),
        (("assess", *RULES), "python3-nftables"),
    ],
)
def test_other_commands_name_the_package_to_install(
    installed: Path, words: tuple[str, ...], package: str
) -> None:
    done = nfparity(installed, *words)
    assert done.returncode == 3, done
    assert package in done.stderr
    assert "Traceback" not in done.stderr


def test_doctor_speaks_of_no_checkout(installed: Path) -> None:
    done = nfparity(installed, "doctor")
    assert done.returncode == 3
    assert "python3-nftables" in done.stdout.partition("sudo apt install")[2]
    assert "make" not in done.stdout


def _tracked(folder: str) -> list[str]:
    listed = subprocess.run(["git", "ls-files", folder], cwd=ROOT, capture_output=True, text=True, check=True)
    return listed.stdout.splitlines()
