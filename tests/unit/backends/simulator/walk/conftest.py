"""The index of rules, also for chains that are too short to have one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from backends.simulator.walk import index


@pytest.fixture(scope="module")
def every_chain_indexed() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(index, "_FEWEST_RULES", 1)
        patch.setattr(index, "_FEWEST_FILED", 1)
        yield
