"""The bench of a fleet: what it cuts, and whom it kills."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.lab.bench.fleet import Killer, children, cut_some, replaying_worker, shape_of
from tests.lab.kuberules import draw_cluster


@pytest.mark.parametrize("services", [5, 20, 200])
def test_clusters_of_any_size_are_drawn(services: int) -> None:

    assert draw_cluster(shape_of(services)).services


def test_each_hundredth_is_cut(tmp_path: Path) -> None:
    paths = [tmp_path / str(n) for n in range(205)]
    for path in paths:
        path.write_bytes(bytes(1000))
    assert cut_some(paths) == tuple(str(paths[n]) for n in (3, 103, 203))
    assert {path.stat().st_size for path in paths} == {200, 1000}


def test_only_a_child_with_a_child_is_killed_and_only_one() -> None:
    killer = Killer(2, besides=children())
    killer.progress(1)
    assert not killer.killed
    # Starts a child of its own and then says so.
    script = "import subprocess; subprocess.Popen(['sleep', '60']); print('ready', flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    ) as worker:
        try:
            assert worker.stdout is not None
            worker.stdout.readline()
            assert replaying_worker(killer.besides) == worker.pid
            killer.progress(2)
            assert killer.killed == [worker.pid]
            assert worker.wait(10) == -signal.SIGKILL
            killer.progress(3)
            assert len(killer.killed) == 1
        finally:
            os.killpg(worker.pid, signal.SIGKILL)
