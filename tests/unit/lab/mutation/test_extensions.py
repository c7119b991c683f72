"""The table of docs/mutation.md: every match and target, and every fault shown that is not neutral."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

from tests.lab.mutation.extensions import Hunts, Score, Single, tried
from translate.read import read_ruleset
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


def test_a_rule_is_tried_again_in_another_ruleset(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sample of two extensions may have other rules around it for each."""
    loaded: list[str] = []

    def load(planter: object, faults: object) -> tuple[()]:
        loaded.append(str(getattr(planter, "text", "")))
        return ()

    monkeypatch.setattr("tests.lab.mutation.extensions._loaded", load)
    texts = [
        f"*mangle\n:FORWARD {policy} [0:0]\n-A FORWARD -j TEE --gateway 10.0.0.1\nCOMMIT\n"
        for policy in ("ACCEPT", "DROP", "ACCEPT")
    ]
    hunts: Hunts = {}
    for text in texts:
        single = Single("-j TEE", read_ruleset(text.encode(), name="sample"))
        tried(single, Score(), hunts=hunts)
    assert len(loaded) == len(set(loaded)) == 2
