"""The files of lists of ``-m recent``, and the kernel's clock of ticks."""

from __future__ import annotations

from nfparity.migrate.recentfiles import Jiffies, ListedAddress, read_addresses
from translate.ir import Family

FILE = """\
src=10.0.0.3 ttl: 0 last_seen: 4298012219 oldest_pkt: 1 4298012219
src=10.0.0.1 ttl: 64 last_seen: 4298012219 oldest_pkt: 2 4298012100, 4298012219
src=fd00:0000:0000:0000:0000:0000:0000:0009 ttl: 64 last_seen: 4298012219 oldest_pkt: 1 4298012219
"""


def test_a_file_has_addresses_of_both_families() -> None:
    assert read_addresses(FILE, Family.IP) == (
        ListedAddress("10.0.0.3", (4298012219,)),
        ListedAddress("10.0.0.1", (4298012100, 4298012219)),
    )
    assert read_addresses(FILE, Family.IP6) == (ListedAddress("fd00::9", (4298012219,)),)


def test_ages_in_seconds() -> None:
    clock = Jiffies(now=4298012219, per_second=250)
    assert clock.age(4298011969) == 1.0
    assert clock.age(4298012219 + 5) == 0.0  # noted after the clock was read
    assert Jiffies(now=100, per_second=100).age((1 << 64) - 100) == 2.0  # the counter has wrapped
