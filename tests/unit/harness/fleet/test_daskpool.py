"""Real dask workers that assess nothing: what ends one, and what fails in one."""

from __future__ import annotations

import os
import signal

import pytest

from harness.fleet.daskpool import dask_pool
from harness.fleet.node import Answer, Failure
from harness.fleet.order import Order
from translate.errors import InputError

pytest.importorskip("distributed")

pytestmark = [
    pytest.mark.slow,
    # distributed's own, while a worker's connection ends under it.
    pytest.mark.filterwarnings("ignore"),
]


def deadly(order: Order, path: str) -> Answer:
    """Runs in a worker."""
    match os.path.basename(path):
        case "kills":
            os.kill(os.getpid(), signal.SIGKILL)
        case "raises":
            raise ValueError("odd")
        case "fails":
            return Answer(path=path, failure=Failure(2, f"{path}: cut"))
    return Answer(path=path, flows=order.only.count("three") * 3)


def test_nothing_is_lost_by_what_ends_workers_and_what_fails_in_them() -> None:
    paths = ["one", "kills", "raises", "fails", "two"]
    with dask_pool(Order(only=("three",)), workers=1, scheduler=None, ask=deadly) as pool:
        answers = {one.path: one for one in pool.answers(paths)}
    assert set(answers) == set(paths)
    assert answers["one"] == Answer(path="one", flows=3)
    assert answers["two"] == Answer(path="two", flows=3)
    assert answers["raises"].failure == Failure(3, "ValueError: odd", again=True)
    assert answers["fails"].failure == Failure(2, "fails: cut")
    killed = answers["kills"].failure
    assert killed is not None
    assert (killed.status, killed.again) == (3, True)
    assert "it has ended 3 workers" in killed.reason


def test_an_address_that_is_none() -> None:
    with (
        pytest.raises(InputError, match="--scheduler"),
        dask_pool(Order(), workers=None, scheduler="nowhere::x"),
    ):
        pass
