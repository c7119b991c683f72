from __future__ import annotations

from pathlib import Path

import pytest

from nfparity.inputs.rules import load_rules
from tests.lab.options import SAMPLES, Status, Support, Use, markdown, options
from translate.read import read_ruleset

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def table() -> dict[Use, dict[str, Support]]:
    return options([load_rules(str(ROOT / path)) for path in SAMPLES])


def test_the_documentation_has_the_table(table: dict[Use, dict[str, Support]]) -> None:
    assert markdown(table) in (ROOT / "docs/options.md").read_text()


def test_an_option_without_a_sample_rule_is_an_error() -> None:
    with pytest.raises(KeyError, match="no sample rule has -m bpf --bytecode"):
        options([load_rules(str(ROOT / path)) for path in SAMPLES[:2]])


def test_a_refusal_counts_for_the_match_and_not_for_the_target(table: dict[Use, dict[str, Support]]) -> None:
    assert table[Use("-m", "cgroup", "--cgroup")]["tc-ebpf"] == Support(Status.CONDITION, ("socket-taker",))
    assert table[Use("-j", "ACCEPT", "")]["tc-ebpf"] == Support(Status.EXACT)


def test_a_refusal_counts_for_the_option_that_causes_it(table: dict[Use, dict[str, Support]]) -> None:
    assert table[Use("-m", "recent", "--rttl")]["nftables"] == Support(Status.REFUSED, ("recent-rttl",))
    assert table[Use("-m", "recent", "--set")]["nftables"] == Support(Status.EXACT)


def test_a_set_without_its_members_is_a_refusal() -> None:
    samples = [read_ruleset((ROOT / path).read_bytes(), name=path) for path in SAMPLES]
    assert options(samples)[Use("-m", "set", "--match-set")]["nftables"].status is Status.REFUSED
