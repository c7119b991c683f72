"""The status of several runs, here and in the script of make diff-test."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from harness.status import worst_status

SCRIPT = Path(__file__).resolve().parents[3] / "vm/each-level.sh"
SEVERAL = [
    ((), 0),
    ((0, 0), 0),
    ((0, 4), 4),
    ((4, 0), 4),
    ((1, 4), 1),
    ((4, 1), 1),
    ((4, 2, 1), 2),
    ((3, 4, 1), 3),
]


@pytest.mark.parametrize(("statuses", "worst"), SEVERAL)
def test_a_difference_is_worse_than_what_was_not_tested(statuses: tuple[int, ...], worst: int) -> None:
    assert worst_status(statuses) == worst


@pytest.mark.parametrize(("statuses", "worst"), SEVERAL)
def test_the_script_ends_with_the_worst(statuses: tuple[int, ...], worst: int, tmp_path: Path) -> None:
    (tmp_path / "statuses").write_text("".join(f"{one}\n" for one in statuses))
    command = tmp_path / "command"
    # Each time the next of the statuses.
    command.write_text('#!/bin/sh\nread -r one < statuses\nsed -i 1d statuses\nexit "$one"\n')
    command.chmod(0o755)
    folders = " ".join("x" * len(statuses))
    words = ["sh", str(SCRIPT), folders, "2", "nftables", str(command)]
    assert subprocess.run(words, cwd=tmp_path, check=False, stdout=subprocess.DEVNULL).returncode == worst


def test_folders_without_tc_are_for_the_other_backends() -> None:
    words = ["sh", str(SCRIPT), "a b-without-tc", "0 2", "simulator,iptables-nft,nftables,tc-ebpf", "echo"]
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    assert [line for line in done.stdout.splitlines() if not line.startswith("==")] == [
        "--corpus a --backends simulator,iptables-nft,nftables,tc-ebpf -O 0",
        "--corpus a --backends simulator,nftables,tc-ebpf -O 2",
        "--corpus b-without-tc --backends simulator,iptables-nft,nftables -O 0",
        "--corpus b-without-tc --backends simulator,nftables -O 2",
    ]
    alone = subprocess.run(
        [*words[:2], "b-without-tc", "0", "tc-ebpf", "false"], check=True, capture_output=True
    )
    assert not alone.stdout
