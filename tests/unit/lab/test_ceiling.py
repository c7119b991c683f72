"""The list of options that nft cannot express is complete, and the documentation has it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from nfparity.inputs.rules import load_rules
from tests.lab.ceiling import INEXPRESSIBLE, markdown, never_translated
from tests.lab.options import SAMPLES, Support, Use, options

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def table() -> dict[Use, dict[str, Support]]:
    return options([load_rules(str(ROOT / path)) for path in SAMPLES])


def listed(reasons: Mapping[str, Mapping[str, str]]) -> set[Use]:
    return {
        Use(kind, name, option)
        for extension, each in reasons.items()
        for kind, _, name in (extension.partition(" "),)
        for option in each
    }


def test_each_option_that_is_never_translated_is_in_the_list(table: dict[Use, dict[str, Support]]) -> None:
    assert listed(INEXPRESSIBLE) == set(never_translated(table))


def test_the_documentation_has_the_list(table: dict[Use, dict[str, Support]]) -> None:
    assert markdown(table) in (ROOT / "docs/options.md").read_text()
