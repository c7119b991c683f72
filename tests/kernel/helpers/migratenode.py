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
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from backends.replay.worker import Worker
from backends.testbed.command import run
from nfparity.migrate import Migration, MigrationPlan
from nfparity.migrate.planning.planning import translate_live
from nfparity.migrate.state import owned
from nfparity.migrate.state.place import here
from nfparity.migrate.state.record import Record
from nfparity.migrate.state.tables import empty, save, split
from nfparity.migrate.verification import look as look_live
from nfparity.snapshot import Variant
from tests.kernel.helpers.faults import Fault, Faults
from tests.kernel.helpers.processes import adopt_orphans, children_of, wait_for
from tests.lab.traffic.host import Host, Ip, Request, Start
from translate.errors import MachineError
from translate.ir import Family

DISK = Path("/var/lib")
STATE = DISK / "state"
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
[0:0] -A INPUT -p udp -m udp --dport 5301 -m comment --comment "a\fb\u2028c\rd" -j ACCEPT
[0:0] -A INPUT -p udp -m udp --dport 5302 -j LOG --log-prefix "a$x b"
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
"""A rule that another program writes."""


TABLES = ("raw", "mangle", "nat", "filter")
APPLY = ("load ip", "check ip", *(f"empty ip {t}" for t in TABLES), "look ip", "applied")
ROLLBACK = (*(f"restore ip {t}" for t in reversed(TABLES)), "delete ip", "compare ip", "rolled back")


def points(steps: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"{when} {step}" for step in steps for when in ("begun", "made", "done"))


@dataclass(frozen=True)
class Fresh(Request):
    """Resets the node: its rules, no running process, and an empty disk of ``size`` KiB for the state."""

    variant: Variant
    size: int | None = None

    def run(self, host: Host) -> None:
        adopt_orphans()
        for pid in children_of(os.getpid()):
            os.kill(pid, signal.SIGKILL)
            wait_for([pid])
        libc = ctypes.CDLL(None, use_errno=True)
        if "disk" in host.kept:
            assert not libc.umount2(os.fsencode(DISK), 0), os.strerror(ctypes.get_errno())
        else:
            Ip("link set lo up\naddress add 10.2.0.1/32 dev lo\nroute add default dev lo\n").run(host)
        options = None if self.size is None else f"size={self.size}k".encode()
        assert not libc.mount(b"none", os.fsencode(DISK), b"tmpfs", ctypes.c_ulong(0), options)
        host.kept["disk"] = None
        forget_rules()
        for program, rules in (("iptables", RULES), ("ip6tables", SIX)):
            done = run((f"{program}-{self.variant}-restore", "-c"), rules)
            assert not done.returncode, done.stderr


def forget_rules() -> None:
    """Delete all rules, as a reboot does."""
    owned.load("flush ruleset\n")
    for family, program in zip(Family, ("iptables", "ip6tables"), strict=True):
        for table in split(save(Variant.LEGACY, family)).values():
            done = run((f"{program}-legacy-restore",), empty(table))
            assert not done.returncode, done.stderr


@dataclass(frozen=True)
class Space(Request):
    """Fills the disk, or empties it again; returns the number of bytes written."""

    full: bool

    def run(self, host: Host) -> int:
        filler = DISK / "filler"
        if self.full:
            return fill(filler)
        filler.unlink(missing_ok=True)
        return 0


def fill(path: Path) -> int:
    """Write to a file until the disk is full; return its length."""
    with open(path, "ab", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(b"x" * 4096)
    return path.stat().st_size


@dataclass(frozen=True)
class MakePlan(Request):
    """Returns a plan for the live rules, without testing it with packets."""

    variant: Variant
    families: tuple[Family, ...] = (Family.IP,)
    left: tuple[str, ...] = ()

    def run(self, host: Host) -> str:
        made = tuple(translate_live(family, self.variant, 2, self.left)[0] for family in self.families)
        return MigrationPlan(families=made, node="{}", seed=0).text()


@dataclass(frozen=True)
class Live(Request):
    """Returns the state of the loaded rules, compared with the applied ones."""

    def run(self, host: Host) -> str:
        return look_live(Migration(here(STATE))).state.value


@dataclass(frozen=True)
class CommandResult:
    """The result of a command: whether it was ``killed``, and the error that it raised, if any.

    ``done``: whether a rollback had something to do. ``operations`` are those that a fault can hit, in order.
    """

    killed: bool
    error: str | None
    points: tuple[str, ...]
    done: bool | None = None
    operations: tuple[str, ...] = ()


@dataclass(frozen=True)
class Do(Request):
    """Runs ``action`` of a migration in a separate process, which is killed if it reaches the point ``at``.

    ``alone``: the dead-man timer is killed first. ``hang``: at the point the process waits instead.
    At the point ``fills`` the disk becomes full. At the point ``meddle`` another program writes a rule, with
    ``lock`` under the lock of iptables. If the command is killed or fails, its timer has ended when this
    returns.
    """

    action: str
    plan: str = ""
    at: str | None = None
    alone: bool = False
    within: float = 100.0
    hang: bool = False
    meddle: tuple[str, Variant] | None = None
    lock: bool = False
    fills: str | None = None
    fault: Fault | None = None

    def run(self, host: Host) -> CommandResult:
        adopt_orphans()
        earlier = set(children_of(os.getpid()))
        reads, writes = os.pipe()
        child = os.fork()
        if not child:
            os.setsid()
            os.close(reads)
            self._serve(writes)
        os.close(writes)
        with open(reads, "rb") as pipe:  # the timer lets go of it
            lines = pipe.read().decode(errors="surrogateescape").split("\n")[:-1]
        _, status = os.waitpid(child, 0)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGHUP)  # as when the operator's terminal goes
        output: dict[str, list[str]] = {"point": [], "error": [], "done": [], "operation": []}
        for line in lines:
            kind, _, text = line.partition(" ")
            output[kind].append(text)
        killed = os.WIFSIGNALED(status)
        if killed or output["error"]:
            wait_for([pid for pid in children_of(os.getpid()) if pid not in earlier])
        return CommandResult(
            killed,
            output["error"][0].replace("\r", "\n") if output["error"] else None,
            tuple(output["point"]),
            {"True": True, "False": False}.get(output["done"][0]) if output["done"] else None,
            tuple(output["operation"]),
        )

    def _serve(self, writes: int) -> None:
        me = os.getpid()

        def tell(kind: str, text: str) -> None:
            os.write(writes, f"{kind} {text}\n".encode(errors="surrogateescape"))

        def kill() -> None:
            if self.alone or (self.fault is not None and self.fault.alone):
                for pid in children_of(me):
                    os.kill(pid, signal.SIGKILL)
            os.kill(me, signal.SIGKILL)

        def hook(point: str) -> None:
            if os.getpid() != me:
                return  # the dead-man timer's own steps
            tell("point", point)
            if self.meddle is not None and point == self.meddle[0]:
                words = (f"iptables-{self.meddle[1]}", *(("-w", "1") if self.lock else ()), *FOREIGN)
                done = run(words, environment={} if self.lock else {"XTABLES_LOCKFILE": "/run/other"})
                tell("point", f"status {done.returncode}")
            if point == self.fills:
                fill(DISK / "filler")
            if point == self.at and self.hang:
                time.sleep(100)
            if point == self.at:
                kill()

        try:
            Faults(self.fault, lambda name: tell("operation", name), kill).install()
            migration = Migration(here(STATE), hook)
            match self.action:
                case "apply":
                    plan = MigrationPlan.from_text(self.plan, name="plan")
                    migration.apply(plan, self.within)
                case "rollback":
                    tell("done", str(migration.rollback() is not None))
                case "confirm":
                    migration.confirm()
                case "settle":
                    migration.settle()
        except Exception as e:
            tell("error", f"{type(e).__name__}: {e}".replace("\n", "\r"))
        finally:
            os._exit(0)


@dataclass(frozen=True)
class Forget(Request):
    """Deletes the kernel's rules, as a reboot does, and changes the boot in the record.

    ``written`` are the rules that another program has written since.
    """

    variant: Variant
    written: str = ""

    def run(self, host: Host) -> None:
        place = here(STATE)
        forget_rules()
        if self.written:
            done = run((f"iptables-{self.variant}-restore",), self.written)
            assert not done.returncode, done.stderr
        with contextlib.suppress(MachineError):
            record = Record.read(place.record)
            if record is not None:
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
def migrate_node(variant: Variant, *requests: type[Request]) -> Iterator[Worker]:
    sysctls = {"net/ipv4/conf/all/rp_filter": "0", "net/ipv4/conf/all/route_localnet": "1"}
    with Worker(Start("node", sysctls, (Fresh, *requests))) as worker:
        worker.ask(Fresh(variant))
        yield worker


def do(node: Worker, *arguments: object, **more: object) -> CommandResult:
    result: CommandResult = node.ask(Do(*arguments, **more))  # type: ignore[arg-type]
    return result
