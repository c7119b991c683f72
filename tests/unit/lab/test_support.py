from __future__ import annotations

from pathlib import Path

import pytest

import translate.bpf
import translate.nft
from nfparity.inputs.rules import load_rules
from tests.lab.support import SAMPLES, markdown, refused, support
from translate.read import read_ruleset

ROOT = Path(__file__).parents[3]


def table(*paths: str) -> str:
    return markdown(support([load_rules(str(ROOT / path)) for path in paths]))


def without_ipsets(*paths: str) -> str:
    return markdown(support([read_ruleset((ROOT / path).read_bytes(), name=path) for path in paths]))


def test_the_documentation_says_what_the_backends_say() -> None:
    page = (ROOT / "docs/support.md").read_text()
    assert table(*SAMPLES) in page
    for features in (translate.nft.REFUSED, translate.bpf.REFUSED):
        assert f"\n\n{refused(features)}\n" in page


def test_an_extension_without_a_sample_rule_is_an_error() -> None:
    with pytest.raises(KeyError, match="nfacct"):
        table(*SAMPLES[:2])


def test_a_refusal_counts_for_the_match_and_not_for_the_target() -> None:
    rows = {line.split("|")[1].strip(): line for line in without_ipsets(*SAMPLES).splitlines()}
    assert "refused" in rows["`-m set`"]
    assert "refused" not in rows["`-j ACCEPT`"]
