"""A tc dataplane that stays: loaded, changed, replaced, refreshed, cut short and taken away.

A client and a server, each in a namespace of its own, on the two sides of a node, all joined by veth pairs.
The node's process has a bpf file system and a /run of its own, which end with it.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from backends.kernel.tc_ebpf import TcEbpfBackend, bpfcall
from backends.kernel.tc_ebpf.bcc import import_bcc, provide_headers
from backends.kernel.tc_ebpf.dataplane import fitted
from backends.kernel.tc_ebpf.installed import Installed, Rules, lifecycle
from backends.kernel.tc_ebpf.installed.place import STATE
from backends.kernel.tc_ebpf.installed.record import Record
from backends.kernel.tc_ebpf.installed.status import status_of
from backends.kernel.tc_ebpf.program import LoadedProgram
from backends.kernel.worker import Worker
from harness.traffic.host import Host, Ip, Request, Start, ToolSaid
from translate.bpf import emit, with_pins
from translate.errors import MachineError
from translate.ir import Family
from translate.passes import lower
from translate.read import read_ruleset

ROOT = Path(__file__).resolve().parents[2]
SYSCTLS = {
    "net/ipv4/ip_forward": "1",
    **{f"net/ipv6/conf/{d}/accept_dad": "0" for d in ("all", "default")},
    **{f"net/ipv6/conf/{d}/disable_ipv6": "0" for d in ("all", "default", "lo")},
    "net/ipv6/conf/all/forwarding": "1",
}
NODE = """\
link set lo up
link add c0 type veth peer name eth0 netns {client}
link add s0 type veth peer name eth0 netns {server}
address add 10.1.0.1/24 dev c0
address add 10.2.0.1/24 dev s0
link set c0 up
link set s0 up
"""
FAR = "link set lo up\n{addresses}link set eth0 up\nroute add default via {via}\n"

SERVICES = """\
*nat
:PREROUTING ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
:SERVICES - [0:0]
-A PREROUTING -j SERVICES
-A OUTPUT -j SERVICES
-A POSTROUTING -d 10.2.0.0/24 -p udp -j MASQUERADE
-A SERVICES -d 10.96.0.10/32 -p udp -m udp --dport 53 -j DNAT --to-destination {server}:5300
-A SERVICES -d 10.96.0.11/32 -p udp -m udp --dport 53 -j DNAT --to-destination {server}:5300
-A SERVICES -d 10.96.0.10/32 -p tcp -m tcp --dport 80 -j DNAT --to-destination {server}:8000
-A SERVICES -d 10.96.0.11/32 -p tcp -m tcp --dport 80 -j DNAT --to-destination {server}:8000
COMMIT
"""
FILTER = "*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD -p udp -m udp --dport 9 -j DROP\nCOMMIT\n"
FIRST, SECOND = SERVICES.format(server="10.2.0.2"), SERVICES.format(server="10.2.0.3")
SIX = "*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD -p tcp -m tcp --dport 9 -j DROP\nCOMMIT\n"


# What runs in the namespaces


@dataclass(frozen=True)
class OwnMounts(Request):
    """A bpf file system and a /run that nobody else sees, and sources that are checked."""

    def run(self, host: Host) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        assert not libc.unshare(0x00020000)
        assert not libc.mount(b"none", b"/", None, ctypes.c_ulong(0x4000 | 1 << 18), None)
        for kind, where in ((b"bpf", b"/sys/fs/bpf"), (b"tmpfs", b"/run")):
            assert not libc.mount(kind, where, kind, ctypes.c_ulong(0), None), ctypes.get_errno()
        Path("/proc/sys/net/ipv4/conf/c0/rp_filter").write_text("1")


@dataclass(frozen=True)
class Command(Request):
    """Any command; ``nfparity`` stands for this one."""

    words: tuple[str, ...]
    text: str = ""

    def run(self, host: Host) -> ToolSaid:
        words = self.words
        if words[0] == "nfparity":
            words = (sys.executable, "-m", "harness.cli", *words[1:])
        done = subprocess.run(
            words, input=self.text, capture_output=True, text=True, cwd=ROOT, timeout=200, check=False
        )
        return ToolSaid(done.returncode, done.stdout, done.stderr)


@dataclass(frozen=True)
class Serve(Request):
    """Answers on some addresses with the address that was asked, and with what was sent."""

    addresses: tuple[str, ...]

    def run(self, host: Host) -> None:
        for address in self.addresses:
            udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            udp.bind((address, 5300))
            threading.Thread(target=_answer_datagrams, args=(udp, address), daemon=True).start()
            tcp = socket.create_server((address, 8000))
            threading.Thread(target=_accept, args=(tcp, address), daemon=True).start()


def _answer_datagrams(udp: socket.socket, address: str) -> None:
    while True:
        data, sender = udp.recvfrom(2000)
        udp.sendto(address.encode() + b" " + data, sender)


def _accept(tcp: socket.socket, address: str) -> None:
    while True:
        connection, _ = tcp.accept()
        threading.Thread(target=_answer_stream, args=(connection, address), daemon=True).start()


def _answer_stream(connection: socket.socket, address: str) -> None:
    while data := connection.recv(2000):
        connection.sendall(address.encode() + b" " + data)


@dataclass(frozen=True)
class Say(Request):
    """Says something to a service over a connection kept by name; returns the answer or None."""

    name: str
    text: str
    to: tuple[str, int]
    proto: str = "udp"
    seconds: float = 3

    def run(self, host: Host) -> str | None:
        known = host.kept.get(self.name)
        if known is None:
            kind = socket.SOCK_DGRAM if self.proto == "udp" else socket.SOCK_STREAM
            known = host.kept[self.name] = socket.socket(socket.AF_INET, kind)
            known.settimeout(self.seconds)
            known.connect(self.to)
        try:
            known.send(self.text.encode())
            return str(known.recv(2000).decode())
        except OSError:
            return None


class Chatter:
    """Asks a service again and again over one connection, in a thread of its own."""

    def __init__(self, to: tuple[str, int]) -> None:
        self.asked = self.answered = 0
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.settimeout(3)
        self._socket.connect(to)
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._ending.is_set():
            self.asked += 1
            text = str(self.asked).encode()
            self._socket.send(text)
            with contextlib.suppress(OSError):
                self.answered += self._socket.recv(2000).endswith(b" " + text)

    def close(self) -> None:
        self._ending.set()
        self._thread.join()
        self._socket.close()


@dataclass(frozen=True)
class Chat(Request):
    """Begins with ``to`` to ask a service; ends without, and returns how often it asked and was answered."""

    to: tuple[str, int] | None = None

    def run(self, host: Host) -> tuple[int, int]:
        if self.to is not None:
            host.kept["chatter"] = Chatter(self.to)
            return 0, 0
        chatter = host.kept.pop("chatter")
        chatter.close()
        return chatter.asked, chatter.answered


@functools.cache
def rules_of(text: str, family: Family = Family.IP) -> Rules:
    output = emit(lower(read_ruleset(text.encode(), name="rules", family=family), level=2))
    return Rules(output=output, name="rules", digest="0", level=2)


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


@dataclass(frozen=True)
class AskStatus(Request):
    """Asks as ``nfparity tc status`` does."""

    def run(self, host: Host) -> dict[str, Any]:
        found = {}
        for family in Family:
            place = Installed(family).place
            record = Record.read(place.record)
            if record is not None:
                found[family.value] = status_of(place, record).data()
        return found


@dataclass(frozen=True)
class LoadBroken(Request):
    """Loads a program that the verifier does not take; returns what is said, and the log that it names."""

    def run(self, host: Host) -> tuple[str, str]:
        lifecycle.LoadedProgram = LoadedProgram  # type: ignore[misc]
        rules = rules_of(FIRST)
        entry = "int nfparity_ingress(struct __sk_buff *skb)\n{\n"
        after = rules.output.after.replace(
            entry, entry + "\tif (((u8 *)(long)skb->data)[40]) return TC_ACT_SHOT;\n"
        )
        broken = replace(rules, output=replace(rules.output, after=after))
        with pytest.raises(MachineError) as caught:
            Installed(Family.IP).load(broken)
        said = str(caught.value)
        log = said.rpartition("the whole log is in ")[2].rstrip(")")
        return said, Path(log).read_text()


@dataclass(frozen=True)
class Foreign(Request):
    """Attaches a program of somebody else's, which counts packets and decides nothing; returns the counts."""

    def run(self, host: Host) -> None:
        provide_headers()
        text = (
            b"#include <uapi/linux/bpf.h>\n#include <uapi/linux/pkt_cls.h>\n"
            b'BPF_TABLE("array", u32, u64, seen, 1);\n'
            b"int other(struct __sk_buff *skb)\n{\n\tu32 zero = 0;\n\tu64 *n = seen.lookup(&zero);\n"
            b"\tif (n)\n\t\t*n += 1;\n\treturn TC_ACT_UNSPEC;\n}\n"
        )
        bcc = import_bcc()
        program = host.kept["foreign"] = bcc.BPF(text=text)
        bpfcall.pin(Path("/sys/fs/bpf/other"), program.load_func(b"other", bcc.BPF.SCHED_CLS).fd)


@dataclass(frozen=True)
class ForeignCount(Request):
    def run(self, host: Host) -> int:
        return int(host.kept["foreign"][b"seen"][ctypes.c_int(0)].value)


# The test's own hands


class Scene:
    def __init__(self, stack: ExitStack) -> None:
        self.node, self.client, self.server = (
            stack.enter_context(Worker(Start(name, SYSCTLS))) for name in ("node", "client", "server")
        )
        self.node.ask(Ip(NODE.format(client=self.client.pid, server=self.server.pid)))
        self.client.ask(Ip(FAR.format(addresses="address add 10.1.0.2/24 dev eth0\n", via="10.1.0.1")))
        addresses = "".join(f"address add 10.2.0.{n}/24 dev eth0\n" for n in (2, 3))
        self.server.ask(Ip(FAR.format(addresses=addresses, via="10.2.0.1")))
        self.node.ask(OwnMounts())
        self.server.ask(Serve(("10.2.0.2", "10.2.0.3")))
        self.before = self.remains()

    def run(self, *words: str, text: str = "", status: int = 0) -> str:
        done = self.node.ask(Command(words, text))
        assert done.status == status, (words, done.out, done.err)
        return str(done.out if not status else done.err)

    def load(self, text: str, *options: str) -> str:
        data = json.loads(self.run("nfparity", "tc", "load", "-", *options, "--format", "json", text=text))
        return str(data["outcome"])

    def status(self) -> dict[str, Any]:
        return dict(self.node.ask(AskStatus()))

    def remains(self) -> dict[str, str]:
        """What a dataplane could leave behind."""
        conf = "for d in all default lo c0 s0; do for n in rp_filter accept_local route_localnet; do "
        return {
            "qdiscs": self.run("tc", "qdisc", "show"),
            "filters": self.run(
                "sh",
                "-c",
                "for d in lo c0 s0; do tc filter show dev $d ingress; tc filter show dev $d egress; done",
            ),
            "pins": self.run("sh", "-c", "ls -A /sys/fs/bpf/nfparity 2>/dev/null; true"),
            "records": self.run("sh", "-c", "find /run -name '*.json'"),
            "sysctls": self.run("sh", "-c", f"{conf} cat /proc/sys/net/ipv4/conf/$d/$n; done; done"),
        }


@pytest.fixture(scope="module", autouse=True)
def _needs_bcc() -> None:
    found = TcEbpfBackend().probe()
    if not found.ok:
        pytest.skip(found.reason)


@pytest.fixture
def scene() -> Iterator[Scene]:
    with ExitStack() as stack:
        yield Scene(stack)


SERVICE, OTHER, STREAM = ("10.96.0.10", 53), ("10.96.0.11", 53), ("10.96.0.10", 80)


def test_it_stays_and_goes_without_a_trace(scene: Scene) -> None:
    assert scene.client.ask(Say("early", "nobody", SERVICE, seconds=0.3)) is None
    assert scene.load(FIRST) == "loaded"
    assert scene.client.ask(Say("a", "hello", SERVICE)) == "10.2.0.2 hello"
    assert scene.client.ask(Say("b", "stream", STREAM, "tcp")) == "10.2.0.2 stream"
    status = json.loads(scene.run("nfparity", "tc", "status", "--format", "json"))["ip"]
    assert status == scene.status()["ip"]
    assert status["open"]
    assert [d["device"] for d in status["devices"]] == ["lo", "c0", "s0"]
    assert all(d["ingress"] and d["egress"] and not d["before"] for d in status["devices"])
    assert status["tables"]["conns"]["entries"] == 2
    listed = scene.run("nfparity", "tc", "connections").splitlines()
    assert len(listed) == 2
    stream = next(line for line in listed if line.startswith("tcp"))
    assert " ESTABLISHED src=10.1.0.2 dst=10.96.0.10 " in stream
    assert " src=10.2.0.2 dst=10.1.0.2 sport=8000 " in stream
    assert "[ASSURED] mark=0" in stream
    datagrams = next(line for line in listed if line.startswith("udp"))
    assert " dst=10.2.0.1 sport=5300 " in datagrams  # masqueraded
    assert "ip: unloaded" in scene.run("nfparity", "tc", "unload")
    assert scene.remains() == scene.before
    assert "ip: nothing was loaded" in scene.run("nfparity", "tc", "unload")
    assert "no rules are loaded" in scene.run("nfparity", "tc", "status", status=3)


def test_changed_and_replaced_under_connections(scene: Scene) -> None:
    scene.load(FIRST)
    assert scene.client.ask(Say("udp", "one", SERVICE)) == "10.2.0.2 one"
    assert scene.client.ask(Say("tcp", "one", STREAM, "tcp")) == "10.2.0.2 one"
    programs = scene.status()["ip"]["devices"]
    assert scene.load(FIRST) == "unchanged"
    assert scene.load(SECOND) == "changed"
    assert scene.status()["ip"]["devices"] == programs
    assert scene.client.ask(Say("udp", "two", SERVICE)) == "10.2.0.2 two"
    assert scene.client.ask(Say("tcp", "two", STREAM, "tcp")) == "10.2.0.2 two"
    assert scene.client.ask(Say("new", "new", SERVICE)) == "10.2.0.3 new"
    assert scene.load(SECOND, "--stack") == "unchanged"
    assert not scene.status()["ip"]["direct"]
    assert scene.client.ask(Say("udp", "by the stack", SERVICE)) == "10.2.0.2 by the stack"
    assert scene.load(SECOND + FILTER) == "replaced"
    assert {d["device"] for d in scene.status()["ip"]["devices"]} == {"lo", "c0", "s0"}
    assert all(d not in programs for d in scene.status()["ip"]["devices"])
    assert scene.client.ask(Say("udp", "three", SERVICE)) == "10.2.0.2 three"
    assert scene.client.ask(Say("tcp", "three", STREAM, "tcp")) == "10.2.0.2 three"
    assert scene.client.ask(Say("other", "four", OTHER)) == "10.2.0.3 four"
    assert scene.run("ls", "/sys/fs/bpf/nfparity/" + _inode(scene) + "/ip").split() == ["2", "state"]
    scene.run("nfparity", "tc", "unload")
    assert scene.remains() == scene.before


def test_no_packet_is_lost_under_changes_and_replacements(scene: Scene) -> None:
    scene.load(FIRST)
    scene.client.ask(Chat(SERVICE))
    for text, outcome in ((SECOND, "changed"), (SECOND + FILTER, "replaced"), (FIRST, "replaced")):
        assert scene.load(text) == outcome
    scene.run("nfparity", "tc", "refresh")
    asked, answered = scene.client.ask(Chat())
    assert asked == answered
    assert asked > 1000


def _inode(scene: Scene) -> str:
    return str(os.stat(f"/proc/{scene.node.pid}/ns/net").st_ino)


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


def test_beside_other_programs_and_the_other_family(scene: Scene) -> None:
    scene.node.ask(Foreign())
    scene.run("tc", "qdisc", "add", "dev", "c0", "clsact")
    for preference in ("7", "50000"):
        words = ("bpf", "direct-action", "object-pinned", "/sys/fs/bpf/other")
        scene.run(
            "tc", "filter", "add", "dev", "c0", "ingress", "pref", preference, "protocol", "all", *words
        )
    before = scene.remains()
    done = scene.node.ask(Command(("nfparity", "tc", "load", "-"), FIRST))
    assert "c0: the bpf filter" in done.err
    assert "asked first at ingress" in done.err
    assert scene.load(SIX, "--family", "ip6") == "loaded"
    seen = scene.node.ask(ForeignCount())
    assert scene.client.ask(Say("a", "hello", SERVICE)) == "10.2.0.2 hello"
    assert scene.node.ask(ForeignCount()) > seen
    status = scene.status()
    assert [b["preference"] for d in status["ip"]["devices"] for b in d["before"]] == [7]
    assert set(status) == {"ip", "ip6"}
    assert scene.load(SIX.replace("tcp", "udp"), "--family", "ip6") == "replaced"
    assert scene.client.ask(Say("a", "again", SERVICE)) == "10.2.0.2 again"
    scene.run("nfparity", "tc", "unload", "--family", "ip")
    assert set(scene.status()) == {"ip6"}
    scene.run("nfparity", "tc", "unload")
    assert scene.remains() == before


def test_devices_that_come_and_go(scene: Scene) -> None:
    scene.load(FIRST)
    scene.node.ask(Ip("link add n0 type veth peer name n1\nlink add br0 type bridge\nlink set br0 up\n"))
    assert set(
        scene.run("nfparity", "tc", "refresh").removeprefix("ip: attached to ").strip().split(", ")
    ) == {
        "br0",
        "n0",
        "n1",
    }
    scene.node.ask(Ip("link set n0 master br0\n"))
    assert scene.run("nfparity", "tc", "refresh") == "ip: no new devices\n"
    attached = {d["device"] for d in scene.status()["ip"]["devices"]}
    assert attached == {"lo", "c0", "s0", "br0", "n1"}  # a bridge's packets are its own, not its ports'
    assert scene.client.ask(Say("a", "hello", SERVICE)) == "10.2.0.2 hello"
    scene.node.ask(Ip("link delete n1\nlink delete br0\n"))
    scene.run("nfparity", "tc", "refresh")
    assert scene.status()["ip"]["tables"]["devices"]["entries"] == 3
    scene.run("nfparity", "tc", "unload")
    assert scene.remains() == scene.before


def test_another_number_of_connections(scene: Scene) -> None:
    assert scene.load(FIRST, "--connections", "1000") == "loaded"
    assert scene.client.ask(Say("a", "hello", SERVICE)) == "10.2.0.2 hello"
    done = scene.node.ask(Command(("nfparity", "tc", "load", "-", "--connections", "2000"), SECOND))
    assert done.status == 2
    assert "takes 1000 connections, not 2000; --flush forgets" in done.err
    assert scene.load(SECOND) == "changed"
    tables = scene.status()["ip"]["tables"]
    assert tables["conns"] == {"entries": 1, "room": 1000}
    assert scene.status()["ip"]["counters"]["entered"] == 1
    assert "counter  entered: 1 (connections entered)" in scene.run("nfparity", "tc", "status")
    assert scene.load(SECOND, "--connections", "2000", "--flush") == "replaced"
    assert scene.status()["ip"]["tables"]["conns"] == {"entries": 0, "room": 2000}
    assert scene.client.ask(Say("b", "hello", SERVICE)) == "10.2.0.3 hello"
    scene.run("nfparity", "tc", "load", "-", "--connections", "0", text=FIRST, status=2)


def test_through_a_tunnel(scene: Scene) -> None:
    """What goes into a tunnel is forwarded; what the tunnel makes of it is a packet made here."""
    tunnel = (
        "link add x0 type vxlan id 5 dstport 4789 local {0} remote {1} dev {2}\n"
        "address add {3}/24 dev x0\nlink set x0 up\n"
    )
    scene.node.ask(Ip("route add 10.96.0.0/16 via 10.1.0.2\n"))  # which leads elsewhere
    scene.node.ask(Ip(tunnel.format("10.2.0.1", "10.2.0.2", "s0", "10.3.0.1")))
    scene.server.ask(Ip(tunnel.format("10.2.0.2", "10.2.0.1", "eth0", "10.3.0.2")))
    scene.server.ask(Serve(("10.3.0.2",)))
    scene.load(SERVICES.format(server="10.3.0.2"))
    assert scene.client.ask(Say("udp", "hello", SERVICE)) == "10.3.0.2 hello"
    assert scene.client.ask(Say("tcp", "hello", STREAM, "tcp")) == "10.3.0.2 hello"
    assert scene.node.ask(Say("own", "hello", SERVICE)) == "10.3.0.2 hello"
    assert " dst=10.2.0.2 sport=" in scene.run("nfparity", "tc", "connections")  # the tunnel's own


def test_what_cannot_be_loaded_leaves_nothing(scene: Scene) -> None:
    said, log = scene.node.ask(LoadBroken())
    assert "nfparity_ingress: the verifier refuses it: invalid access to packet, off=40 size=1" in said
    assert "skb->data)[40]" in said
    assert len(said.splitlines()) <= 5
    assert "processed " in log
    assert scene.remains() == scene.before
    scene.node.ask(Ip("tuntap add t0 mode tun\nlink set t0 up\n"))
    done = scene.node.ask(Command(("nfparity", "tc", "load", "-"), FIRST))
    assert done.status == 3
    assert "device t0 carries packets without an Ethernet header" in done.err
    scene.node.ask(Ip("link delete t0\n"))
    assert scene.remains() == scene.before
