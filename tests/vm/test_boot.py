"""Boots for real; part of ``make test-vm``."""

from __future__ import annotations

import pytest

import vm.__main__
from tests.vm.helpers.guests import IN_A_GUEST, KERNELS

pytestmark = IN_A_GUEST

# What the differential test asks of a guest: root, the kernel, both iptables, nft, TAP devices, clsact,
# headers.
NEEDS = """
set -e
id -u; uname -r
iptables-legacy -w -A FORWARD -m statistic --mode random --probability 0.5 -j MARK --set-xmark 0x4000/0x4000
iptables-nft -w -t nat -A POSTROUTING -j MASQUERADE --random-fully
nft add table ip parity
ip tuntap add dev probe mode tap
tc qdisc add dev probe clsact
test -e /lib/modules/$(uname -r)/build/include/generated/autoconf.h
test -e /lib/modules/$(uname -r)/source/include/linux/bpf.h
! touch /etc/parity 2>/dev/null
exit 7
"""


@pytest.mark.parametrize("series", KERNELS)
def test_a_guest_has_what_the_differential_test_needs(series: str, capfd: pytest.CaptureFixture[str]) -> None:
    status = vm.__main__.main(["--kernel", series, "--", "sh", "-c", NEEDS])
    out, err = capfd.readouterr()
    assert status == 7, f"{out}\n{err}"
    uid, release, *_ = out.splitlines()
    assert uid == "0"
    assert release.startswith(f"{series}.")
