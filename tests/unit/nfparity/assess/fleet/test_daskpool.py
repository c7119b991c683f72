"""Real dask workers that assess nothing: what ends one, and what fails in one."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nfparity.assess.fleet.daskpool import dask_pool
from nfparity.assess.fleet.node import Answer, Failure
from nfparity.assess.snapshots import AssessOptions
from translate.errors import InputError, MachineError

pytest.importorskip("distributed")

pytestmark = [
    pytest.mark.slow,
    # distributed's own, while a worker's connection ends under it.
    pytest.mark.filterwarnings("ignore"),
]


def deadly(options: AssessOptions, path: str) -> Answer:
    """Runs in a worker."""
    match os.path.basename(path):
        case "kills":
            os.kill(os.getpid(), signal.SIGKILL)
        case "raises":
            raise ValueError("odd")
        case "fails":
            return Answer(path=path, failure=Failure(2, f"{path}: cut"))
    return Answer(path=path, flows=options.only.count("three") * 3)


def test_nothing_is_lost_by_what_ends_workers_and_what_fails_in_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    paths = ["one", "kills", "raises", "fails", "two"]
    with dask_pool(AssessOptions(only=("three",)), workers=1, scheduler=None, ask=deadly) as pool:
        answers = {one.path: one for one in pool.answers(paths)}
    assert set(answers) == set(paths)
    assert answers["one"] == Answer(path="one", flows=3)
    assert answers["two"] == Answer(path="two", flows=3)
    assert answers["raises"].failure == Failure(3, "ValueError: odd", again=True)
    assert answers["fails"].failure == Failure(2, "fails: cut")
    killed = answers["kills"].failure
    assert killed is not None
    assert (killed.status, killed.again) == (3, True)
    assert "3 workers have died while assessing it" in killed.reason
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "address", ["nowhere::x", "host:8786", "tcp://host", "tcp://host:port", "tcp://:1", ""]
)
def test_an_address_that_is_none(address: str) -> None:
    with (
        pytest.raises(InputError, match="not an address such as"),
        dask_pool(AssessOptions(), workers=None, scheduler=address),
    ):
        pass


@pytest.fixture
def scheduler(tmp_path: Path) -> Iterator[Any]:
    """A scheduler without workers, in this process."""
    import dask
    from distributed import LocalCluster

    settings = {"temporary-directory": str(tmp_path)}
    with (
        dask.config.set(settings),
        LocalCluster(
            n_workers=0,
            threads_per_worker=1,
            processes=False,
            protocol="tcp://",
            host="127.0.0.1",
            dashboard_address=None,
        ) as cluster,
    ):
        yield cluster


def test_a_scheduler_that_runs_already_lends_its_workers_and_keeps_them(scheduler: Any) -> None:
    scheduler.scale(1)
    address = scheduler.scheduler_address
    for _ in range(2):
        with dask_pool(AssessOptions(), workers=None, scheduler=address, ask=deadly) as pool:
            assert {one.path for one in pool.answers(["one", "two"])} == {"one", "two"}


def test_a_scheduler_without_workers_is_not_waited_for_for_ever(
    scheduler: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nfparity.assess.fleet.daskpool._SECONDS", 0.5)
    address = scheduler.scheduler_address
    with (
        pytest.raises(MachineError, match="no worker"),
        dask_pool(AssessOptions(), workers=None, scheduler=address),
    ):
        pass


def test_nobody_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nfparity.assess.fleet.daskpool._SECONDS", 0.5)
    with (
        pytest.raises(MachineError, match="no scheduler answers"),
        dask_pool(AssessOptions(), workers=None, scheduler="tcp://127.0.0.1:1"),
    ):
        pass
