from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from nfparity.capture.armour import armoured
from nfparity.capture.files import packed
from tests.unit.nfparity.kubectl.helpers.apiserver import Cluster
from tests.unit.nfparity.kubectl.helpers.plugin import Machine, make_machine, node
from translate.errors import MachineError
from vm.kubectl import ensure_kubectl

ROOT = Path(__file__).parents[4]
RULES = ROOT / "tests/corpus/rulesets/kube-real/rules.iptables-save"
NOTE = "nfparity: ipset: not installed\n"


@pytest.fixture(scope="session")
def kubectl() -> Path:
    if shutil.which("apt-get") is None:
        pytest.skip("needs apt, for Debian's kubectl")
    try:
        return ensure_kubectl("bookworm", build=ROOT / "build")
    except MachineError as e:
        pytest.skip(f"Debian's kubectl cannot be fetched: {e}")


@pytest.fixture
def machine(tmp_path: Path, kubectl: Path) -> Machine:
    return make_machine(tmp_path / "machine", kubectl)


@pytest.fixture(scope="session")
def archive() -> bytes:
    return packed({"iptables-save": RULES.read_bytes()}, now=0)


@pytest.fixture
def cluster(archive: bytes) -> Cluster:
    log = armoured(archive)
    return Cluster(nodes=[node("alpha"), node("beta")], log=lambda pod: log + NOTE)
