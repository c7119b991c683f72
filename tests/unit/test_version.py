"""The version: the same wherever it is written."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from nfparity.cli.main import VERSION

ROOT = Path(__file__).parents[2]


def test_the_version_is_the_same_everywhere() -> None:
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"] == VERSION
    cited = re.search(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert cited is not None
    assert cited[1] == VERSION
    assert f"nfparity_{VERSION}_all.deb" in (ROOT / "README.md").read_text()
