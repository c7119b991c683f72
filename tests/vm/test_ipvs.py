"""The tests of ip_vs on a Debian kernel; run with ``.venv/bin/python -m pytest tests/vm/test_ipvs.py``."""

from __future__ import annotations

import shutil
import sys

import pytest

import vm.__main__
from vm.accel import QEMU

pytestmark = [
    pytest.mark.vm,
    pytest.mark.skipif(shutil.which(QEMU) is None, reason=f"{QEMU} is not installed; run make setup"),
]


def test_a_node_in_ipvs_mode_is_assessed(capfd: pytest.CaptureFixture[str]) -> None:
    command = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-rs", "tests/kernel/test_ipvs.py")
    status = vm.__main__.main(["--kernel", "6.1", "--", sys.executable, *command])
    out, err = capfd.readouterr()
    assert status == 0, f"{out}\n{err}"
    assert " passed" in out
    assert "no ip_vs" not in out
