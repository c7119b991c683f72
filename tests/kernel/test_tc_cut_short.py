"""A loader that is killed after any of its steps: packets pass, and what is left is all or nothing."""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from backends.kernel.tc_ebpf import TcEbpfBackend
from backends.kernel.tc_ebpf.dataplane import fitted
from backends.kernel.tc_ebpf.installed import Installed, Rules, lifecycle
from backends.kernel.tc_ebpf.installed.place import STATE
from backends.kernel.tc_ebpf.program import LoadedProgram
from harness.traffic.host import Host, Request
from tests.kernel.tcscene import FILTER, FIRST, OTHER, SECOND, SERVICE, Say, Scene, rules_of
from translate.bpf import with_pins
from translate.ir import Family


@functools.cache
def compiled(text: str) -> LoadedProgram:
    return LoadedProgram(text)


def _precompiled(text: str, log: Path | None = None) -> LoadedProgram:
    return compiled(text)


class NoGuard:
    """In place of a guard that was killed as well."""

    def __init__(self, undo: object) -> None:
        pass

    def __enter__(self) -> NoGuard:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def commit(self) -> None:
        pass


@dataclass(frozen=True)
class Steps(Request):
    """Loads in this process, and lets a datagram through at every step; returns the steps' names."""

    rules: str
    to: tuple[str, int]

    def run(self, host: Host) -> list[str]:
        done: list[str] = []
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
            udp.settimeout(3)

            def step(name: str) -> None:
                done.append(name)
                udp.sendto(name.encode(), self.to)
                assert udp.recv(2000).endswith(name.encode()), name

            Installed(Family.IP, step).load(rules_of(self.rules))
        return done


@dataclass(frozen=True)
class LoadUntil(Request):
    """Loads in a process that is killed after a step, and waits until its guard has gone."""

    rules: str
    last: str
    guarded: bool = True

    def run(self, host: Host) -> None:
        lifecycle.LoadedProgram = _precompiled  # type: ignore[misc,assignment]
        rules = rules_of(self.rules)
        _warm(rules)
        pid = os.fork()
        if not pid:
            _load_until(rules, self.last, guarded=self.guarded)
        _, status = os.waitpid(pid, 0)
        assert os.WIFSIGNALED(status)
        assert os.WTERMSIG(status) == signal.SIGKILL
        with Installed(Family.IP).place.locked():
            pass


def _warm(rules: Rules) -> None:
    """Compile before the fork, so that it is done once."""
    place = Installed(Family.IP).place
    kept = {name: str(place.state(name)) for name in STATE if place.state(name).exists()}
    compiled(with_pins(fitted(rules.output).source, kept))


def _load_until(rules: Rules, last: str, *, guarded: bool) -> None:
    def step(name: str) -> None:
        if name == last:
            os.kill(os.getpid(), signal.SIGKILL)

    if not guarded:
        lifecycle.Guard = NoGuard  # type: ignore[misc,assignment]
    with contextlib.suppress(BaseException):
        Installed(Family.IP, step).load(rules)
    os._exit(0)


@pytest.fixture(scope="module", autouse=True)
def _needs_bcc() -> None:
    found = TcEbpfBackend().probe()
    if not found.ok:
        pytest.skip(found.reason)


@pytest.fixture
def scene() -> Iterator[Scene]:
    with ExitStack() as stack:
        yield Scene(stack)


def test_packets_pass_at_every_step_and_nothing_stays_after_any(scene: Scene) -> None:
    steps = scene.node.ask(Steps(FIRST, ("10.2.0.2", 5300)))
    assert steps[:5] == ["recorded", "compiled", "pinned", "sysctls set", "filled"]
    assert len(steps) == 5 + 3 + 1 + 3 * 2 + 1
    scene.run("nfparity", "tc", "unload")
    assert scene.remains() == scene.before
    for step in steps:
        scene.node.ask(LoadUntil(FIRST, step))
        assert scene.remains() == scene.before, step


def test_a_replacement_that_is_cut_short_leaves_the_first(scene: Scene) -> None:
    assert scene.node.ask(Steps(FIRST, ("10.2.0.2", 5300)))
    assert scene.client.ask(Say("udp", "one", SERVICE)) == "10.2.0.2 one"
    first = scene.status()
    devices = {d["index"] for d in first["ip"]["devices"]}
    steps = ["recorded", "compiled", "pinned", "filled"]
    steps += [f"{side} of {index}" for index in sorted(devices) for side in ("ingress", "egress")]
    for number, step in enumerate(steps):
        scene.node.ask(LoadUntil(SECOND + FILTER, step))
        now = scene.status()
        assert now == first, step
        assert scene.client.ask(Say("udp", step, SERVICE)) == f"10.2.0.2 {step}"
        assert scene.client.ask(Say(f"new {number}", step, OTHER)) == f"10.2.0.2 {step}"
        now = scene.status()["ip"]
        first["ip"] |= {"tables": now["tables"], "counters": now["counters"]}
    assert scene.load(SECOND + FILTER) == "replaced"
    assert scene.client.ask(Say("udp", "end", SERVICE)) == "10.2.0.2 end"
    assert scene.client.ask(Say("end", "end", OTHER)) == "10.2.0.3 end"


def test_what_a_guard_left_is_cleaned_by_the_next(scene: Scene) -> None:
    scene.node.ask(LoadUntil(FIRST, "open", guarded=False))
    assert scene.remains() != scene.before
    assert "ip: unloaded" in scene.run("nfparity", "tc", "unload")
    assert scene.remains() == scene.before
    scene.node.ask(LoadUntil(FIRST, "ingress of 1", guarded=False))
    assert scene.load(FIRST) == "loaded"
    scene.node.ask(LoadUntil(SECOND + FILTER, "egress of 1", guarded=False))
    assert scene.run("nfparity", "tc", "refresh") == "ip: no new devices\n"
    assert scene.client.ask(Say("a", "still", SERVICE)) == "10.2.0.2 still"
    scene.run("nfparity", "tc", "unload")
    assert scene.remains() == scene.before
