"""Fixtures for every test: ``golden``, an expected output kept as a file.

Properties draw the same examples in every run, and none is judged by its time;
``pytest --hypothesis-profile random`` draws new ones. tests/lab/examples.py says how many.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Generator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.lab.examples import examples, leave_out_most
from translate.collector import collector_seldom

_GOLDEN = Path(__file__).parent / "golden"


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Decide how many examples are drawn, and which, before any test is imported."""
    if "not slow" in str(config.getoption("markexpr")):
        leave_out_most()
    settings.register_profile("fixed", derandomize=True, deadline=None, max_examples=examples(100))
    settings.register_profile("random", deadline=None, max_examples=examples(100))
    settings.load_profile("fixed")


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
