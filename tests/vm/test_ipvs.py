"""The tests of ip_vs on Debian's kernels; part of ``make test-vm``."""

from __future__ import annotations

import pytest

from tests.vm.helpers.guests import IN_A_GUEST, KERNELS, run_in_guest

pytestmark = IN_A_GUEST


@pytest.mark.parametrize("series", KERNELS)
def test_a_node_in_ipvs_mode_is_assessed(series: str, capfd: pytest.CaptureFixture[str]) -> None:
    status = run_in_guest(series, "tests/kernel/test_ipvs.py")
    out, err = capfd.readouterr()
    assert status == 0, f"{out}\n{err}"
    assert " passed" in out
    assert "no ip_vs" not in out
