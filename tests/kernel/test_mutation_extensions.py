"""Faults in the translation of single rules: packets or nft's instructions show all of some extensions."""

from __future__ import annotations

import pytest

from harness.diff.backends import backend
from tests.kernel.helpers.availability import require
from tests.lab.mutation.extensions import Score, singles, tried

pytestmark = pytest.mark.kernel

EXTENSIONS = {
    "-m iprange": 18,
    "-m realm": 18,
    "-m dccp": 14,
    "-m connlabel": 12,
}
"""Extensions, and the least number of faults that are shown."""


@pytest.mark.parametrize(("extension", "least"), EXTENSIONS.items())
def test_every_fault_of_an_extension_is_shown(extension: str, least: int) -> None:
    require(backend("nftables"))
    score = Score()
    for single in singles():
        if single.extension == extension:
            tried(single, score)
    assert [f"{place} {fault.key}" for place, fault in score.holes] == []
    assert [f"{place} {fault.key}" for place, fault in score.disproved] == []
    assert score.faults["caught"] + score.faults["instructions"] >= least
