from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from translate.nft import emit
from translate.passes import LEVELS, lower
from translate.read import read_ruleset

RULESETS = Path(__file__).parents[3] / "corpus" / "rulesets"


SMALL = ["affinity", "kind-node", "nft-traps"]


@pytest.mark.parametrize(("name", "level"), [*((n, o) for n in SMALL for o in LEVELS), ("kube-real", 2)])
def test_the_text_is_the_golden_one(name: str, level: int, golden: Callable[[str, str], None]) -> None:
    data = (RULESETS / name / "rules.iptables-save").read_bytes()
    output = emit(lower(read_ruleset(data, name=name), level=level))
    golden(f"nft/{name}.O{level}.nft", output.text)
