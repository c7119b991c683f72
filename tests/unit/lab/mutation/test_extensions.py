"""The table of docs/mutation.md: every match and target, and every fault shown that is not neutral."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from translate.read.extensions import MATCHES, TARGETS

PAGE: Final = Path(__file__).parents[4] / "docs/mutation.md"
_ROW: Final = re.compile(r"^\| `(-[mj] \w+)` \| (\d+) \| (.*) \|$", re.MULTILINE)


def test_every_extension_has_a_row() -> None:
    rows = [row[0] for row in _ROW.findall(PAGE.read_text())]
    every = {f"-m {name}" for name in MATCHES} | {f"-j {name}" for name in TARGETS}
    assert sorted(rows) == sorted(every)


def test_every_fault_that_loads_is_shown_or_explained() -> None:
    for name, _, cells in _ROW.findall(PAGE.read_text()):
        *counts, shown = cells.split(" | ")
        faults, rejected, neutral, beyond, packets, instructions = map(int, counts)
        visible = packets + instructions
        assert shown == (f"{visible} of {visible}" if visible else "-"), name
        assert faults == rejected + neutral + beyond + packets + instructions, name
