"""The pauses of the cyclic collector end, and change nothing for a caller that has paused it already."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from translate.collector import collector_paused, collector_seldom, present_objects_kept


@pytest.fixture(autouse=True)
def _collector_as_before() -> Iterator[None]:
    enabled, threshold = gc.isenabled(), gc.get_threshold()
    gc.enable()
    gc.set_threshold(700, 10, 10)
    yield
    gc.set_threshold(*threshold)
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


@pytest.mark.parametrize("frozen", [False, True])
def test_present_objects_are_kept_until_the_end_of_the_block(frozen: bool) -> None:
    gc.unfreeze()
    if frozen:
        gc.freeze()

    @present_objects_kept()
    def fails() -> None:
        assert gc.get_freeze_count() > 1000
        raise LookupError

    with pytest.raises(LookupError):
        fails()
    assert (gc.get_freeze_count() > 0) is frozen


def test_the_collector_runs_seldom_and_then_as_before() -> None:
    before = gc.get_threshold()

    def fails() -> None:
        with collector_seldom():
            assert gc.isenabled()
            assert gc.get_threshold() == (100_000, *before[1:])
            raise LookupError

    with pytest.raises(LookupError):
        fails()
    assert gc.get_threshold() == before
