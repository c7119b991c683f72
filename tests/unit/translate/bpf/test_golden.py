"""The tc translation of whole rulesets, kept as files: one command writes them, a diff is reviewed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from translate.bpf import BpfOutput, emit
from translate.passes import LEVELS, lower
from translate.read import read_ruleset

RULESETS = Path(__file__).parents[3] / "corpus" / "rulesets"


def generated_part(output: BpfOutput) -> str:
    """Return chains and contents of maps, without the runtime."""
    contents = output.render().rpartition(f"{output.after}\n")[2]
    return f"{output.chains}\n{contents}"


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", ["affinity", "kind-node", "bpf-traps"])
def test_the_chains_are_the_golden_ones(name: str, level: int, golden: Callable[[str, str], None]) -> None:
    ruleset = read_ruleset((RULESETS / name / "rules.iptables-save").read_bytes(), name=name)
    golden(f"bpf/{name}.O{level}.c", generated_part(emit(lower(ruleset, level=level))))


@pytest.mark.parametrize("level", LEVELS)
def test_so_are_those_of_ipv6(level: int, golden: Callable[[str, str], None]) -> None:
    ruleset = read_ruleset((RULESETS / "six" / "rules.ip6tables-save").read_bytes(), name="six")
    golden(f"bpf/six.O{level}.c", generated_part(emit(lower(ruleset, level=level))))
