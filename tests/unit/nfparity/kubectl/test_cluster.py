"""A run against a small API server, through Debian's kubectl: what is captured, and what is left."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest
import yaml

from nfparity.capture.armour import armoured
from tests.unit.nfparity.kubectl.helpers.apiserver import Cluster, Moment, RefusedError, pause, serve
from tests.unit.nfparity.kubectl.helpers.plugin import IMAGE, Machine, make_machine, node
from translate.errors import MachineError
from vm.kubectl import ensure_kubectl

ROOT = Path(__file__).parents[4]
ROLE = yaml.safe_load((ROOT / "deploy/kubectl/role.yaml").read_text())
ALL = ("--all", "--image", IMAGE)


def allowed() -> set[tuple[str, str]]:
    return {(verb, one) for rule in ROLE["rules"] for one in rule["resources"] for verb in rule["verbs"]}


def nothing_is_left(cluster: Cluster) -> bool:
    return not cluster.namespaces and not cluster.pods


def test_all_nodes_are_captured_assessed_and_nothing_is_left(
    machine: Machine, cluster: Cluster, archive: bytes
) -> None:
    cluster.nodes += [node("gamma", system="windows"), node("delta", ready=False)]
    with serve(cluster) as address:
        done = machine.run(address, *ALL, "-o", "kept", "--", "--known-only")
    assert done.returncode == 3, done.stderr
    assert "delta: not captured: the node is not ready" in done.stderr
    assert done.stdout == "a report\n"
    kept = sorted((machine.folder / "kept").iterdir())
    assert [one.name for one in kept] == ["alpha.tar.gz", "beta.tar.gz"]
    assert [one.read_bytes() for one in kept] == [archive, archive]
    assert [oct(one.stat().st_mode)[-3:] for one in kept] == ["600", "600"]
    words = (machine.home / "assess.words").read_text()
    assert words == "assess --known-only kept/alpha.tar.gz kept/beta.tar.gz\n"
    assert nothing_is_left(cluster)
    assert not machine.left_files()
    space, *pods = cluster.created
    assert space["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "privileged"
    assert {pod["spec"]["nodeName"] for pod in pods} == {"alpha", "beta"}
    assert {pod["spec"]["containers"][0]["image"] for pod in pods} == {IMAGE}


def test_one_node_and_the_status_of_assess(machine: Machine, cluster: Cluster) -> None:
    with serve(cluster) as address:
        done = machine.run(address, "--node", "beta", variables={"NFPARITY_IMAGE": IMAGE})
    assert done.returncode == 1, done.stderr
    assert len(cluster.created) == 2
    assert nothing_is_left(cluster)
    assert not machine.left_files()


@pytest.mark.slow
def test_an_unknown_node(machine: Machine, cluster: Cluster) -> None:
    with serve(cluster) as address:
        done = machine.run(address, "--node", "omega", "--image", IMAGE)
    assert (done.returncode, cluster.created) == (3, [])
    assert 'nfparity: "omega" not found\n' in done.stderr


@pytest.mark.slow
def test_only_pods_are_created_in_a_namespace_that_exists(machine: Machine, cluster: Cluster) -> None:
    cluster.namespaces["ours"] = {"metadata": {"name": "ours"}, "seen": 1}
    with serve(cluster) as address:
        done = machine.run(address, *ALL, "-n", "ours", "-o", "kept", "--capture-only")
    assert done.returncode == 0, done.stderr
    assert [one["kind"] for one in cluster.created] == ["Pod", "Pod"]
    assert (list(cluster.namespaces), cluster.pods) == (["ours"], {})
    assert not (machine.home / "assess.words").exists()


@pytest.mark.slow
def test_every_request_is_allowed_by_the_role_and_no_right_is_idle(
    machine: Machine, cluster: Cluster
) -> None:
    with serve(cluster) as address:
        machine.run(address, *ALL)
        machine.run(address, "--node", "alpha", "--image", IMAGE)
        cluster.namespaces["ours"] = {"metadata": {"name": "ours"}, "seen": 1}
        machine.run(address, "--node", "alpha", "--image", IMAGE, "-n", "ours")
        machine.run(address, "--cleanup")
    assert set(cluster.requests) == allowed()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("status", "said"),
    [
        (
            {"phase": "Failed", "reason": "OutOfpods", "message": "Node didn't have enough resource"},
            "OutOfpods: Node didn't have enough resource: the last line",
        ),
        (
            {"phase": "Failed", "containerStatuses": [{"state": {"terminated": {"exitCode": 3}}}]},
            "the capture ended with status 3: the last line",
        ),
        (
            {
                "phase": "Pending",
                "containerStatuses": [
                    {"state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}}
                ],
            },
            "ImagePullBackOff: no such image",
        ),
    ],
)
def test_a_pod_that_fails(status: dict[str, object], said: str, machine: Machine, cluster: Cluster) -> None:
    cluster.ended, cluster.log = status, lambda pod: "the last line\n"
    with serve(cluster) as address:
        done = machine.run(address, "--node", "alpha", "--image", IMAGE)
    assert done.returncode == 3
    assert f"alpha: not captured: {said}" in done.stderr
    assert nothing_is_left(cluster)


@pytest.mark.slow
def test_pods_that_never_end(machine: Machine, cluster: Cluster) -> None:
    cluster.log = lambda pod: None
    with serve(cluster) as address:
        done = machine.run(address, *ALL, "--timeout", "1")
    assert done.returncode == 3
    assert "alpha: not captured: its pod has not ended in time" in done.stderr
    assert nothing_is_left(cluster)
    assert {pod["spec"]["activeDeadlineSeconds"] for pod in cluster.created[1:]} == {1}


@pytest.mark.slow
def test_a_removal_that_fails_is_tried_again(machine: Machine, cluster: Cluster) -> None:
    cluster.faults["delete", "namespaces"] = [RefusedError(500, "InternalError", "etcd: no leader")]
    with serve(cluster) as address:
        done = machine.run(address, "--node", "alpha", "--image", IMAGE)
    assert done.returncode == 1, done.stderr
    assert nothing_is_left(cluster)


def test_a_removal_that_is_forbidden_is_said(machine: Machine, cluster: Cluster) -> None:
    cluster.faults["delete", "namespaces"] = [RefusedError(403, "Forbidden", "namespaces is forbidden")]
    with serve(cluster) as address:
        done = machine.run(address, "--node", "alpha", "--image", IMAGE)
        assert done.returncode == 3
        (name,) = cluster.namespaces
        assert f"namespaces/{name} may be left in the cluster: namespaces is forbidden" in done.stderr
        assert machine.run(address, "--cleanup").stderr == f"nfparity: removed the namespace {name}\n"
    assert nothing_is_left(cluster)


def interrupted(
    machine: Machine, cluster: Cluster, at: int, moment: Moment, *numbers: signal.Signals
) -> tuple[int, bool]:
    """Run with signals to all of its processes at a request; return the status and whether it came."""
    child: list[subprocess.Popen[str]] = []
    happened = []

    def event(number: int, now: Moment) -> None:
        if (number, now) == (at, moment):
            happened.append(True)
            for one in numbers:
                os.killpg(child[0].pid, one)
                pause()

    cluster.event = event
    with serve(cluster) as address:
        child.append(machine.start(address, *ALL, own_group=True))
        _, err = child[0].communicate(timeout=120)
    assert "Traceback" not in err, err
    return child[0].returncode, bool(happened)


SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def check_interrupted(
    machine: Machine, cluster: Cluster, at: int, moment: Moment, one: signal.Signals
) -> bool:
    """Insist that nothing is left after a signal at a request; return whether there was such a request."""
    status, happened = interrupted(machine, cluster, at, moment, one)
    assert nothing_is_left(cluster), (at, moment, one)
    assert not machine.left_files(), (at, moment, one)
    assert status == (128 + one if happened else 1), (at, moment, one)
    return happened


@pytest.mark.parametrize(
    ("at", "moment", "one"),
    [
        (2, Moment.ARRIVED, signal.SIGTERM),  # the namespace is being created
        (4, Moment.DONE, signal.SIGINT),  # a pod has been created, which nobody knows yet
        (6, Moment.ANSWERED, signal.SIGTERM),  # the pods run
    ],
)
def test_interrupted_it_leaves_nothing(
    at: int, moment: Moment, one: signal.Signals, machine: Machine, cluster: Cluster
) -> None:
    assert check_interrupted(machine, cluster, at, moment, one)


@pytest.mark.slow
@pytest.mark.parametrize("release", ["bookworm", "trixie"])
@pytest.mark.parametrize("moment", list(Moment))
@pytest.mark.parametrize("one", SIGNALS)
def test_interrupted_at_each_moment(
    one: signal.Signals, moment: Moment, release: str, archive: bytes, tmp_path: Path
) -> None:
    try:
        kubectl = ensure_kubectl(release, build=ROOT / "build")
    except MachineError as e:
        pytest.skip(str(e))
    machine = make_machine(tmp_path / "machine", kubectl)
    at, happened = 0, True
    while happened:
        at += 1
        cluster = Cluster([node("alpha"), node("beta")], log=lambda pod: armoured(archive))
        happened = check_interrupted(machine, cluster, at, moment, one)
    assert at > 10


@pytest.mark.slow
def test_signals_during_the_removal_do_not_stop_it(machine: Machine, archive: bytes) -> None:
    cluster = Cluster([node("alpha")], log=lambda pod: armoured(archive))
    twice = (signal.SIGINT, signal.SIGINT, signal.SIGTERM)
    status, happened = interrupted(machine, cluster, 3, Moment.DONE, *twice)
    assert (status, happened) == (130, True)
    assert nothing_is_left(cluster)


def test_interrupted_while_it_assesses(kubectl: Path, cluster: Cluster, tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    machine = make_machine(
        tmp_path / "machine", kubectl, assess=f"#!/bin/sh\necho begun >{fifo}\nexec sleep 600\n"
    )
    subprocess.run(["mkfifo", fifo], check=True)
    with serve(cluster) as address:
        child = machine.start(address, *ALL)
        assert fifo.read_text() == "begun\n"
        child.send_signal(signal.SIGTERM)
        child.communicate(timeout=120)
    assert child.returncode == 143
    assert nothing_is_left(cluster)
    assert not machine.left_files()
