"""Several snapshots through two dask workers, of which one is killed, on the running kernel."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from pathlib import Path

import pytest

from nfparity.assess.fleet.daskpool import dask_pool
from nfparity.assess.fleet.gathering import gather_answers
from nfparity.assess.fleet.grouping import fleet_of
from nfparity.assess.fleet.node import Answer
from nfparity.assess.snapshots import AssessOptions
from nfparity.cli.main import main
from tests.lab.bench.fleet import children, replaying_worker
from tests.lab.kuberules import Shape, draw_cluster
from tests.lab.kuberules.pernode import write_fleet

pytest.importorskip("distributed")

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="kernel backends need root"),
    # distributed's own, while a worker's connection ends under it.
    pytest.mark.filterwarnings("ignore"),
]

SHAPE = Shape(services=3, endpoints=2, node_ports=1, base=False)


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    """Six snapshots, of which the fourth was cut."""
    cluster = draw_cluster(SHAPE)
    paths = list(write_fleet(cluster, tmp_path, 6))
    paths[3].write_bytes(paths[3].read_bytes()[:200])
    return tmp_path


def test_a_killed_worker_loses_nothing(fleet: Path) -> None:
    killed: list[int] = []
    before = children()

    def kill() -> None:
        for _ in range(6000):
            worker = replaying_worker(before)
            if worker is not None:
                os.kill(worker, signal.SIGKILL)
                killed.append(worker)
                return
            time.sleep(0.005)

    told: list[Answer] = []
    paths = sorted(str(path) for path in fleet.iterdir())
    options = AssessOptions(version=(1, 37), corpus=False)
    with dask_pool(options, workers=2, scheduler=None) as pool:
        killer = threading.Thread(target=kill)
        killer.start()
        answers = gather_answers(pool, paths, lambda answer, done, again: told.append(answer))
        killer.join()
    assert killed
    assert [answer.path for answer in answers] == paths
    assert {answer.path for answer in told} == set(paths)
    failed = [answer for answer in answers if answer.failure is not None]
    assert [answer.path for answer in failed] == [paths[3]]
    assert failed[0].failure is not None
    assert failed[0].failure.status == 2
    assert all({"K06", "K32"} <= set(answer.ids) for answer in answers if answer.failure is None)
    assert fleet_of(answers).status == 2


def test_the_command_takes_a_folder(fleet: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["assess", str(fleet), "--known-only", "--workers", "2", "--format", "json"]
    assert main(words) == 2
    out, err = capsys.readouterr()
    data = json.loads(out)
    assert data["nodes"] == 6
    assert [one["failure"]["status"] for one in data["groups"] if one["failure"]] == [2]
    assert len([line for line in err.splitlines() if line.startswith(str(fleet))]) == 6  # others: progress
