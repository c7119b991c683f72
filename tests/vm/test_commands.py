"""assess, diff and migrate on Debian's kernels; part of ``make test-vm``."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.vm.helpers.guests import IN_A_GUEST, KERNELS, run_in_guest

ROOT = Path(__file__).resolve().parents[2]
TESTS = "tests/kernel/test_each_kernel.py"

pytestmark = IN_A_GUEST


@pytest.fixture(scope="module")
def reports() -> Path:
    """The reports of the running kernel, in a folder that guests see."""
    if os.geteuid():
        pytest.skip("only root can make the reports of the running kernel, with which a guest's are compared")
    folder = ROOT / "build/vm/reports"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    command = (sys.executable, "-m", "pytest", "-q", "-n0", TESTS, "-k", "assessment or comparison")
    environment = {**os.environ, "NFPARITY_REPORTS": str(folder)}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=900
    )
    assert done.returncode == 0, done.stdout
    return folder


@pytest.mark.parametrize("series", KERNELS)
def test_commands_have_the_results_of_the_running_kernel(
    series: str, reports: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    status = run_in_guest(series, TESTS, environment=f"NFPARITY_REPORTS={reports}")
    out, err = capfd.readouterr()
    assert status == 0, f"{out}\n{err}"
    assert " passed" in out
    assert " skipped" not in out
