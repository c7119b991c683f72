"""Rules that real tools wrote are read, and written again to the byte."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lab.toolrules import FOLDER, captures
from translate.errors import UnsupportedError
from translate.ir import Family
from translate.read import read_save
from translate.write import write_save

ROOT = Path(__file__).resolve().parents[3]
CAPTURES = captures(ROOT / FOLDER)
UNPRINTED = {"miniupnpd"}
"""Tools with rules that iptables-save could not print."""
FILES = sorted((ROOT / FOLDER).glob("*/node/ip*tables-save"))


def test_every_tool_has_its_capture() -> None:
    made = {path.parent.name for path in (ROOT / FOLDER).glob("*/make.sh")}
    assert made == set(CAPTURES)
    assert len(made) >= 11


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.parent.name}-{path.name}")
def test_a_dump_is_written_as_it_was(path: Path) -> None:
    text = path.read_text()
    family = Family.IP6 if path.name.startswith("ip6") else Family.IP
    ruleset = read_save(text, name=path.name, family=family)
    if path.parent.parent.name in UNPRINTED:
        with pytest.raises(UnsupportedError, match="could not print the options of -j DNAT"):
            write_save(ruleset)
    else:
        assert write_save(ruleset, counters=True) == text
