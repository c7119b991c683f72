"""No changed input, however broken, ends in a traceback or in an endless loop."""

from __future__ import annotations

import pytest

from tests.lab import mutated
from tests.lab.inputreaders import TARGETS


@pytest.mark.parametrize("target", TARGETS)
def test_a_few_broken_inputs(target: str) -> None:
    found = mutated.tried(target, seed=1, number=40)
    assert found.faults == []
    assert found.read + found.refused == 40


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_many_broken_inputs(target: str) -> None:
    assert mutated.tried(target, seed=2, number=7000).faults == []
