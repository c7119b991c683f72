"""Snapshots in logs: read back whole, or refused with the reason."""

from __future__ import annotations

import random

import pytest

from harness.files.errors import CaptureError
from nfparity.capture.armour import armoured, dearmoured

ARCHIVE = random.Random(1).randbytes(9000)
LOG = armoured(ARCHIVE)


@pytest.mark.parametrize("size", [0, 1, 3071, 3072, 3073, 9000])
def test_round_trip(size: int) -> None:
    assert dearmoured(armoured(ARCHIVE[:size])) == ARCHIVE[:size]


def test_messages_around_and_within_are_no_data() -> None:
    lines = LOG.splitlines()
    lines.insert(2, "nfparity-capture: ipset: not installed")
    assert dearmoured("\n".join(["a message", *lines, "another message"])) == ARCHIVE


def test_the_last_snapshot_counts() -> None:
    """A container that was restarted has the log of both runs."""
    assert dearmoured(armoured(b"old") + LOG) == ARCHIVE
    assert dearmoured(armoured(b"old")[:40] + "\n" + LOG) == ARCHIVE


@pytest.mark.parametrize(
    ("log", "said"),
    [
        ("", "the log contains no snapshot"),
        (
            "nfparity-capture: it is not root\n",
            "no snapshot; its last line: nfparity-capture: it is not root",
        ),
        (LOG[:5000], "the log contains no snapshot; it breaks off"),
        (LOG[5000:], "the beginning of the log is missing"),
        (LOG.replace(LOG.splitlines()[2] + "\n", ""), "its checksum differs"),
        (LOG.replace(LOG.splitlines()[2], "A" * 4095), "its checksum differs"),
        (LOG[:-5] + "\n", "its checksum differs"),
    ],
)
def test_a_log_without_a_whole_snapshot(log: str, said: str) -> None:
    with pytest.raises(CaptureError, match=said):
        dearmoured(log)
