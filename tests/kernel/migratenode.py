"""A node with iptables rules of every table and one service, on which migrations are begun and cut short.

It is one network namespace with a mount namespace of its own. The service's endpoint is the node itself, so
that one socket pair tells whether packets to it are translated, once, there and back.
"""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import os
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from backends.kernel.command import run
from backends.kernel.worker import Worker
from harness.migrate import Migration, MigrationPlan, owned
from harness.migrate.journal import read_journal
from harness.migrate.place import here
from harness.migrate.planning import translate_live
from harness.migrate.record import Phase, Record
from harness.migrate.tables import save, split
from harness.migrate.verifying import look as look_live
from harness.snapshot import Stack
from harness.traffic.host import Host, Ip, Request, Start
from translate.ir import Family

STATE = Path("/var/lib/state")
SERVICE = ("10.96.0.10", 53)
ENDPOINT = ("10.2.0.1", 5300)

RULES = """\
*raw
:PREROUTING ACCEPT [1:60]
:OUTPUT ACCEPT [1:60]
[3:180] -A PREROUTING -d 10.2.0.9/32 -j DROP
COMMIT
*mangle
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:FORWARD ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
[0:0] -A PREROUTING -p tcp -m tcp --dport 81 -j MARK --set-xmark 0x1/0x1
COMMIT
*nat
:PREROUTING ACCEPT [5:300]
:INPUT ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
:KUBE-MARK-MASQ - [0:0]
:KUBE-POSTROUTING - [0:0]
:KUBE-SERVICES - [0:0]
[5:300] -A PREROUTING -j KUBE-SERVICES
[0:0] -A OUTPUT -j KUBE-SERVICES
[0:0] -A POSTROUTING -j KUBE-POSTROUTING
[0:0] -A KUBE-MARK-MASQ -j MARK --set-xmark 0x4000/0x4000
[0:0] -A KUBE-POSTROUTING -m mark ! --mark 0x4000/0x4000 -j RETURN
[0:0] -A KUBE-POSTROUTING -j MARK --set-xmark 0x4000/0x0
[0:0] -A KUBE-POSTROUTING -j MASQUERADE --random-fully
[0:0] -A KUBE-SERVICES -d 10.96.0.10/32 -p udp -m udp --dport 53 -j KUBE-MARK-MASQ
[7:420] -A KUBE-SERVICES -d 10.96.0.10/32 -p udp -m udp --dport 53 -j DNAT --to-destination 10.2.0.1:5300
COMMIT
*filter
:INPUT DROP [2:120]
:FORWARD ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
[9:540] -A INPUT -p udp -m udp --dport 5300 -j ACCEPT
[0:0] -A INPUT -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
COMMIT
"""
SIX = """\
*filter
:INPUT DROP [0:0]
:FORWARD ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
[4:240] -A INPUT -p ipv6-icmp -j ACCEPT
COMMIT
"""
FOREIGN = ("-t", "nat", "-A", "PREROUTING", "-d", "10.9.9.9/32", "-j", "ACCEPT")
"""A rule that somebody else writes."""


@dataclass(frozen=True)
class Prepare(Request):
    """Gives the node its address, its rules, and a place for the migration's state."""

    stack: Stack

    def run(self, host: Host) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        assert not libc.mount(b"none", b"/var/lib", b"tmpfs", ctypes.c_ulong(0), None)
        Ip("link set lo up\naddress add 10.2.0.1/32 dev lo\nroute add default dev lo\n").run(host)
        for program, rules in (("iptables", RULES), ("ip6tables", SIX)):
            done = run((f"{program}-{self.stack}-restore", "-c"), rules)
            assert not done.returncode, done.stderr


@dataclass(frozen=True)
class MakePlan(Request):
    """Returns a plan for the live rules; no packets."""

    stack: Stack
    families: tuple[Family, ...] = (Family.IP,)
    left: tuple[str, ...] = ()

    def run(self, host: Host) -> str:
        made = tuple(translate_live(family, self.stack, 2, self.left)[0] for family in self.families)
        return MigrationPlan(families=made, node="{}", seed=0).text()


@dataclass(frozen=True)
class Live(Request):
    """Returns how what is loaded compares with what was applied."""

    def run(self, host: Host) -> str:
        return look_live(Migration(here(STATE))).state.value


@dataclass(frozen=True)
class Said:
    """How a command went: ``killed`` at its point, or what it raised, if anything."""

    killed: bool
    error: str | None
    points: tuple[str, ...]


@dataclass(frozen=True)
class Do(Request):
    """Runs ``action`` of a migration in a process of its own, which is killed ``at`` a point, if that comes.

    ``alone``: the dead-man timer is killed before it. ``hang``: it stands still there instead. ``after``: it
    is killed so many seconds after its beginning. At ``meddle`` somebody else writes a rule, with ``lock``
    as iptables does by itself, which waits for others then.
    """

    action: str
    plan: str = ""
    at: str | None = None
    alone: bool = False
    within: float = 100.0
    hang: bool = False
    after: float | None = None
    meddle: tuple[str, Stack] | None = None
    lock: bool = False

    def run(self, host: Host) -> Said:
        reads, writes = os.pipe()
        child = os.fork()
        if not child:
            os.setsid()
            os.close(reads)
            self._serve(writes)
        os.close(writes)
        if self.after is not None:
            time.sleep(self.after)
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGHUP)  # as when the operator's terminal goes
        with open(reads, "rb") as pipe:
            lines = os.read(pipe.fileno(), 1 << 16).decode().splitlines()
        errors = [line.removeprefix("error ") for line in lines if line.startswith("error ")]
        points = tuple(line for line in lines if not line.startswith("error "))
        return Said(os.WIFSIGNALED(status), errors[0] if errors else None, points)

    def _serve(self, writes: int) -> None:
        me = os.getpid()

        def hook(point: str) -> None:
            if os.getpid() != me:
                return  # the dead-man timer's own steps
            os.write(writes, f"{point}\n".encode())
            if self.meddle is not None and point == self.meddle[0]:
                words = (f"iptables-{self.meddle[1]}", *(("-w", "1") if self.lock else ()), *FOREIGN)
                done = run(words, environment={} if self.lock else {"XTABLES_LOCKFILE": "/run/other"})
                os.write(writes, f"status {done.returncode}\n".encode())
            if point == self.at and self.hang:
                time.sleep(100)
            if point == self.at:
                if self.alone:
                    for pid in _children(me):
                        os.kill(pid, signal.SIGKILL)
                os.kill(me, signal.SIGKILL)

        try:
            migration = Migration(here(STATE), hook)
            match self.action:
                case "apply":
                    plan = MigrationPlan.from_text(self.plan, name="plan")
                    migration.apply(plan, self.within)
                case "rollback":
                    migration.rollback()
                case "confirm":
                    migration.confirm()
                case "settle":
                    migration.settle()
        except Exception as e:
            os.write(writes, f"error {type(e).__name__}: {e}\n".encode().replace(b"\n", b" ") + b"\n")
        finally:
            os._exit(0)


def _children(parent: int) -> Iterator[int]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                after = (entry / "stat").read_text().rpartition(")")[2].split()
                if int(after[1]) == parent:
                    yield int(entry.name)


@dataclass(frozen=True)
class Seen:
    """The state of the node: ``iptables`` is what each family's save says without counters."""

    iptables: tuple[tuple[str, ...], ...]
    counters: str
    nft: tuple[bool, bool]
    phase: Phase | None
    answered: bool
    journal: tuple[str, ...]
    said: str

    @property
    def is_old(self) -> bool:
        """Whether the old rules alone are in force."""
        return self.iptables == OLD and not any(self.nft)


OLD: tuple[tuple[str, ...], ...] = tuple(
    tuple(line for name in sorted(split(text)) for line in split(text)[name].meaning) for text in (RULES, SIX)
)


@dataclass(frozen=True)
class Look(Request):
    """Returns what is there, after the record has come to one of ``phases``, if any are given."""

    stack: Stack
    phases: tuple[Phase, ...] = ()

    def run(self, host: Host) -> Seen:
        place = here(STATE)
        deadline = time.monotonic() + 60
        while self.phases and time.monotonic() < deadline:
            record = Record.read(place.record)
            if record is not None and record.phase in self.phases:
                break
            time.sleep(0.02)
        record = Record.read(place.record)
        tables = [split(save(self.stack, family)) for family in Family]
        return Seen(
            iptables=tuple(tuple(x for name in sorted(t) for x in t[name].meaning) for t in tables),
            counters="\n".join(
                line for line in save(self.stack, Family.IP, counters=True).splitlines() if line[:1] != "#"
            ),
            nft=(owned.is_there(Family.IP), owned.is_there(Family.IP6)),
            phase=None if record is None else record.phase,
            answered=_answered(),
            journal=read_journal(place.journal),
            said=place.said.read_text() if place.said.exists() else "",
        )


def _answered() -> bool:
    """Whether the service answers a new connection, from the address that was asked."""
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client,
    ):
        server.bind(ENDPOINT)
        server.settimeout(2)
        client.settimeout(2)
        client.connect(SERVICE)
        try:
            client.send(b"?")
            _, source = server.recvfrom(10)
            server.sendto(b"!", source)
            return client.recv(10) == b"!"
        except OSError:
            return False


@dataclass(frozen=True)
class Forget(Request):
    """Has the kernel forget the rules, as a reboot does; the record is another boot's then.

    ``written``: what somebody's service has written since.
    """

    stack: Stack
    written: str = ""

    def run(self, host: Host) -> None:
        place = here(STATE)
        record = Record.read(place.record)
        assert record is not None
        owned.load("flush ruleset\n")
        for program in ("iptables", "ip6tables"):
            for table in split(
                save(Stack.LEGACY, Family.IP if program == "iptables" else Family.IP6)
            ).values():
                chains = "".join(f":{name} ACCEPT [0:0]\n" for name in table.built_in)
                done = run((f"{program}-legacy-restore",), f"*{table.name}\n{chains}COMMIT\n")
                assert not done.returncode, done.stderr
        if self.written:
            done = run((f"iptables-{self.stack}-restore",), self.written)
            assert not done.returncode, done.stderr
        dataclasses.replace(record, boot="another").write(place.record)


@dataclass(frozen=True)
class Shell(Request):
    """Runs a tool."""

    words: tuple[str, ...]

    def run(self, host: Host) -> str:
        done = run(self.words, environment={"XTABLES_LOCKFILE": "/run/other"})
        assert not done.returncode, done.stderr
        return done.stdout


@contextmanager
def migrate_node(stack: Stack) -> Iterator[Worker]:
    sysctls = {"net/ipv4/conf/all/rp_filter": "0", "net/ipv4/conf/all/route_localnet": "1"}
    with Worker(Start("node", sysctls)) as worker:
        worker.ask(Prepare(stack))
        yield worker


def look(node: Worker, stack: Stack, *phases: Phase) -> Seen:
    seen: Seen = node.ask(Look(stack, phases))
    return seen


def do(node: Worker, *arguments: object, **more: object) -> Said:
    said: Said = node.ask(Do(*arguments, **more))  # type: ignore[arg-type]
    return said
