"""Numbers with their nouns."""

from __future__ import annotations

import pytest

from harness.counted import counted


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0 flows"), (1, "1 flow"), (2, "2 flows"), (11, "11 flows")]
)
def test_only_one_is_singular(number: int, text: str) -> None:
    assert counted(number, "flow") == text


def test_the_plural_may_be_given() -> None:
    assert counted(1, "flow has", "flows have") == "1 flow has"
    assert counted(3, "set or map", "sets and maps") == "3 sets and maps"
