from __future__ import annotations

import os

from backends.testbed.unroutedcount import UnroutedCount


def test_the_counter_is_read_again_and_again() -> None:
    count = UnroutedCount()
    before = count.read()
    assert before >= 0
    assert count.read() >= before
    count.close()


def test_the_counter_is_found_by_its_name(tmp_path, monkeypatch) -> None:
    text = "TcpExt: A InNoRoutes\nTcpExt: 1 2\nIpExt: InTruncatedPkts InNoRoutes InMcastPkts\nIpExt: 3 4 5\n"
    file = tmp_path / "netstat"
    file.write_text(text)
    monkeypatch.setattr("backends.testbed.unroutedcount._STATISTICS", str(file))
    opened = len(os.listdir("/proc/self/fd"))
    count = UnroutedCount()
    assert count.read() == 4
    file.write_text(text.replace("4", "6"))
    assert count.read() == 6
    count.close()
    assert len(os.listdir("/proc/self/fd")) == opened
