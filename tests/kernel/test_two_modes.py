"""Tools with an iptables and an nftables mode differ as docs/other-tools.md shows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from backends.nftables.backend import NftablesBackend
from tests.kernel.helpers.availability import require
from tests.lab.twomodes import TOOLS, rows

PAGE = Path(__file__).parents[2] / "docs/other-tools.md"


@pytest.mark.parametrize("tool", [*(pytest.param(t, marks=pytest.mark.slow) for t in TOOLS[:-1]), TOOLS[-1]])
def test_the_page_has_the_differences(tool: str) -> None:
    require(NftablesBackend())
    written = re.findall(rf"^\| {tool}, .*$", PAGE.read_text(), re.MULTILINE)
    assert written == [str(row) for row in rows(tool)]
