"""Fixtures for every test: ``golden``, an expected output kept as a file.

Properties draw the same examples in every run, and none is judged by its time;
``pytest --hypothesis-profile random`` draws new ones.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Generator
from pathlib import Path

import pytest
from hypothesis import settings

from translate.collector import collector_seldom

settings.register_profile("fixed", derandomize=True, deadline=None)
settings.register_profile("random", deadline=None)
settings.load_profile("fixed")

_GOLDEN = Path(__file__).parent / "golden"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--golden-write",
        action="store_true",
        help="write the expected outputs under tests/golden anew instead of comparing",
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtestloop() -> Generator[None, object, object]:
    """Run the tests with the garbage collector set as ``nfparity`` sets it; it skips the collected tests."""
    gc.collect()
    gc.freeze()
    with collector_seldom():
        return (yield)


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """``golden(name, text)`` checks that ``tests/golden/name`` holds ``text``; ``make golden`` writes it."""

    def check(name: str, text: str) -> None:
        path = _GOLDEN / name
        if request.config.getoption("--golden-write"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            return
        assert path.is_file(), f"{path} is missing: make golden writes it"
        assert text == path.read_text(), f"{path} differs: make golden writes it, review the change"

    return check
