"""A loader that is killed after any of its steps, or whose disk runs full or is damaged.

Packets pass, and what is left is all or nothing.
"""

from __future__ import annotations

import ctypes
import os
import signal
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from backends.tc_ebpf import TcEbpfBackend
from nfparity.tc import DataplaneRules, Installed, lifecycle
from tests.kernel.helpers.availability import require
from tests.kernel.helpers.migratenode import fill
from tests.kernel.helpers.tcscene import FILTER, FIRST, OTHER, SECOND, SERVICE, Say, Scene, rules_of
from tests.lab.traffic.host import Host, Request
from translate.ir import Family

FILLER = Path("/run/filler")


class NoGuard:
    """In place of a guard that was killed as well."""

    def __init__(self, undo: object, again: str) -> None:
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
    """Loads in a process that is killed after a step, and waits until its guard has gone.

    With ``full`` the disk has no space left from that step on; without ``killed`` the process lives on, and
    what its load raises is returned.
    """

    rules: str
    last: str
    guarded: bool = True
    full: bool = False
    killed: bool = True

    def run(self, host: Host) -> str:
        rules = rules_of(self.rules)
        reads, writes = os.pipe()
        pid = os.fork()
        if not pid:
            os.close(reads)
            os.write(writes, self._load(rules).encode())
            os._exit(0)
        os.close(writes)
        with open(reads) as pipe:
            said = pipe.read()
        _, status = os.waitpid(pid, 0)
        assert os.WIFSIGNALED(status) == self.killed
        with Installed(Family.IP).place.locked(needed=not self.full):
            pass
        return said

    def _load(self, rules: DataplaneRules) -> str:
        def step(name: str) -> None:
            if name == self.last:
                if self.full:
                    fill(FILLER)
                if self.killed:
                    os.kill(os.getpid(), signal.SIGKILL)

        if not self.guarded:
            lifecycle.Guard = NoGuard  # type: ignore[assignment,attr-defined]
        try:
            return Installed(Family.IP, step).load(rules).value
        except BaseException as e:
            return f"{type(e).__name__}: {e}"


@dataclass(frozen=True)
class SmallDisk(Request):
    """Gives records a disk of their own, of so many KiB."""

    size: int

    def run(self, host: Host) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        options = ctypes.c_char_p(f"size={self.size}k".encode())
        assert not libc.mount(b"tmpfs", b"/run", b"tmpfs", ctypes.c_ulong(0), options), ctypes.get_errno()


@dataclass(frozen=True)
class Write(Request):
    """Writes over a part of a file, or all of it, or deletes it."""

    path: Path
    data: bytes | None
    at: int | None = None

    def run(self, host: Host) -> None:
        if self.data is None:
            self.path.unlink()
        elif self.at is None:
            self.path.write_bytes(self.data)
        else:
            with open(self.path, "r+b") as file:
                file.seek(self.at)
                file.write(self.data)


@pytest.fixture(scope="module", autouse=True)
def _needs_bcc() -> None:
    require(TcEbpfBackend())


@pytest.fixture
def scene() -> Iterator[Scene]:
    with ExitStack() as stack:
        yield Scene(stack, Steps)


@pytest.mark.parametrize("every", [3, pytest.param(1, marks=pytest.mark.slow)])
def test_packets_pass_at_every_step_and_nothing_stays_after_any(scene: Scene, every: int) -> None:
    """It is killed after one step in three; with ``every`` 1 after each."""
    steps = scene.node.ask(Steps(FIRST, ("10.2.0.2", 5300)))
    assert steps[:5] == ["recorded", "compiled", "pinned", "sysctls set", "filled"]
    assert len(steps) == 5 + 3 + 1 + 3 * 2 + 1
    scene.run("nfparity", "tc", "unload")
    assert scene.remains() == scene.before
    for step in steps[::every]:
        scene.node.ask(LoadUntil(FIRST, step))
        assert scene.remains() == scene.before, step


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_disk_that_runs_full(scene: Scene) -> None:
    """Existing state is undone all the same, by anyone; what is loaded completely stays."""
    scene.node.ask(SmallDisk(64))
    steps = scene.node.ask(Steps(FIRST, ("10.2.0.2", 5300)))
    scene.run("nfparity", "tc", "unload")
    for number, step in enumerate(steps[::3]):
        scene.node.ask(LoadUntil(FIRST, step, full=True))
        assert scene.remains() == scene.before, step
        scene.run("rm", str(FILLER))
        guarded = number % 2 == 0
        said = scene.node.ask(LoadUntil(FIRST, step, full=True, killed=not guarded, guarded=guarded))
        if guarded:
            assert said == "loaded"  # the space was there from the first record on
            assert scene.client.ask(Say(step, step, SERVICE)) == f"10.2.0.2 {step}"
        scene.run("nfparity", "tc", "unload")
        assert scene.remains() == scene.before, step
        scene.run("rm", str(FILLER))


def test_a_disk_that_is_full(scene: Scene) -> None:
    scene.node.ask(SmallDisk(16))
    scene.run("sh", "-c", f"cat /dev/zero > {FILLER} 2>/dev/null; true")
    said = scene.run("nfparity", "tc", "load", "-", text=FIRST, status=3)
    assert "No space left on device" in said
    assert scene.remains() == scene.before


def test_a_replacement_on_a_disk_that_runs_full_leaves_the_first(scene: Scene) -> None:
    scene.node.ask(SmallDisk(64))
    assert scene.node.ask(Steps(FIRST, ("10.2.0.2", 5300)))
    first = scene.status()
    for step in ("recorded", "pinned", "filled", "ingress of 1"):
        scene.node.ask(LoadUntil(SECOND + FILTER, step, full=True))
        assert scene.status() == first, step
        assert scene.client.ask(Say(step, step, SERVICE)) == f"10.2.0.2 {step}"
        now = scene.status()["ip"]
        first["ip"] |= {"tables": now["tables"], "counters": now["counters"]}
        scene.run("rm", str(FILLER))
    scene.run("nfparity", "tc", "unload")
    assert scene.remains() == scene.before


def test_a_record_that_is_damaged(scene: Scene) -> None:
    """One copy is enough; without both, what only it knew is told."""
    assert scene.node.ask(Steps(FIRST, ("10.2.0.2", 5300)))
    record = Path(scene.remains()["records"].strip())
    size = int(scene.run("stat", "-c", "%s", str(record)))
    for at, rules in ((0, SECOND), (size // 2, FIRST)):
        scene.node.ask(Write(record, b"\xff" * 100, at))
        assert scene.status()["ip"]["open"]
        assert scene.load(rules) == "changed"
    scene.node.ask(Write(record, b"\xff" * 100, 0))
    scene.run("nfparity", "tc", "unload")
    assert scene.remains() == scene.before
    for data in (b"\xff\xfe", None):
        assert scene.node.ask(LoadUntil(FIRST, "", killed=False)) == "loaded"
        scene.node.ask(Write(record, data))
        trouble = f"{record} is {'gone' if data is None else 'damaged'}"
        for words in (("status",), ("load", "-")):
            said = scene.run("nfparity", "tc", *words, text=FIRST, status=3)
            assert trouble in said
            assert "nfparity tc unload removes what is loaded" in said
        assert scene.client.ask(Say(f"{data!r}", "still", SERVICE)) == "10.2.0.2 still"
        said = scene.run("nfparity", "tc", "unload", status=3)
        assert trouble in said
        commands = [line for line in said.splitlines() if line.startswith("  ")]
        assert "  tc qdisc del dev c0 clsact   # unless another program added it" in commands
        assert "  echo BEFORE >/proc/sys/net/ipv4/conf/c0/rp_filter   # it is 0" in commands
        values = {"c0/rp_filter": "1"}
        for line in commands:
            name = line.partition("/conf/")[2].split(" ")[0]
            scene.run("sh", "-c", line.replace("BEFORE", values.get(name, "0")))
        assert scene.remains() == scene.before
        assert scene.run("nfparity", "tc", "unload") == "ip: nothing was loaded\nip6: nothing was loaded\n"
