"""The pause of the cyclic collector: it ends, and changes nothing for who had paused already."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from translate.collector import collector_paused


@pytest.fixture(autouse=True)
def _collector_as_before() -> Iterator[None]:
    enabled = gc.isenabled()
    gc.enable()
    yield
    if not enabled:
        gc.disable()


def test_the_collector_rests_meanwhile_and_runs_again_behind() -> None:
    with collector_paused():
        assert not gc.isenabled()
        with collector_paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_an_error_ends_the_pause() -> None:
    @collector_paused()
    def fails() -> None:
        assert not gc.isenabled()
        raise LookupError

    with pytest.raises(LookupError):
        fails()
    assert gc.isenabled()


def test_a_collector_that_was_off_stays_off() -> None:
    gc.disable()
    with collector_paused():
        pass
    assert not gc.isenabled()
