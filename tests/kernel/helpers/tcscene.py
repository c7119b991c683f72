"""A client, a node and a server in three network namespaces, joined by veth pairs.

The node's process has a bpf file system and a /run of its own, which end with it.
"""

from __future__ import annotations

import contextlib
import functools
import json
import socket
import subprocess
import threading
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from backends.replay.worker import Worker
from nfparity.tc import DataplaneRules, Installed
from nfparity.tc.record import Record
from nfparity.tc.status import status_of
from tests.lab.forkedcommand import run_nfparity
from tests.lab.mountnamespace import enter_mount_namespace, mount
from tests.lab.traffic.host import Host, Ip, Request, Start, ToolOutput
from translate.bpf import emit
from translate.ir import Family
from translate.passes import lower
from translate.read import read_ruleset

ROOT = Path(__file__).resolve().parents[3]
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


@dataclass(frozen=True)
class OwnMounts(Request):
    """Mounts a private bpf file system and a private /run, and turns ``rp_filter`` on."""

    def run(self, host: Host) -> None:
        enter_mount_namespace()
        for kind, where in (("bpf", "/sys/fs/bpf"), ("tmpfs", "/run")):
            mount(kind, Path(where), kind)
        Path("/proc/sys/net/ipv4/conf/c0/rp_filter").write_text("1")


@dataclass(frozen=True)
class Command(Request):
    """Runs a command; ``nfparity`` is the program of this source tree."""

    words: tuple[str, ...]
    text: str = ""

    def run(self, host: Host) -> ToolOutput:
        if self.words[0] == "nfparity":
            return run_nfparity(self.words[1:], self.text)
        done = subprocess.run(
            self.words, input=self.text, capture_output=True, text=True, cwd=ROOT, timeout=200, check=False
        )
        return ToolOutput(done.returncode, done.stdout, done.stderr)


@dataclass(frozen=True)
class Serve(Request):
    """Starts servers that answer with their own address and the received text."""

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
    """Sends a text to a service over the connection with a name; returns the answer or None."""

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
    """A thread that repeatedly sends a text to a service over one connection, and counts the answers."""

    def __init__(self, to: tuple[str, int]) -> None:
        self.sent = self.answered = 0
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.settimeout(3)
        self._socket.connect(to)
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._ending.is_set():
            self.sent += 1
            text = str(self.sent).encode()
            self._socket.send(text)
            with contextlib.suppress(OSError):
                self.answered += self._socket.recv(2000).endswith(b" " + text)

    def close(self) -> None:
        self._ending.set()
        self._thread.join()
        self._socket.close()


@dataclass(frozen=True)
class Chat(Request):
    """Starts a :class:`Chatter` if ``to`` is given; otherwise ends it and returns the numbers of texts and
    answers.
    """

    to: tuple[str, int] | None = None

    def run(self, host: Host) -> tuple[int, int]:
        if self.to is not None:
            host.kept["chatter"] = Chatter(self.to)
            return 0, 0
        chatter = host.kept.pop("chatter")
        chatter.close()
        return chatter.sent, chatter.answered


SERVICE, OTHER, STREAM = ("10.96.0.10", 53), ("10.96.0.11", 53), ("10.96.0.10", 80)


@functools.cache
def rules_of(text: str, family: Family = Family.IP) -> DataplaneRules:
    output = emit(lower(read_ruleset(text.encode(), name="rules", family=family), level=2))
    return DataplaneRules(output=output, name="rules", digest="0", level=2)


@dataclass(frozen=True)
class ReadStatus(Request):
    """Returns the same data as ``nfparity tc status``."""

    def run(self, host: Host) -> dict[str, Any]:
        status = {}
        for family in Family:
            place = Installed(family).place
            record = Record.read(place.record)
            if record is not None:
                status[family.value] = status_of(place, record).data()
        return status


class Scene:
    def __init__(self, stack: ExitStack, *requests: type[Request]) -> None:
        self.node, self.client, self.server = (
            stack.enter_context(Worker(Start(name, SYSCTLS, (Say, *requests))))
            for name in ("node", "client", "server")
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
        return dict(self.node.ask(ReadStatus()))

    def remains(self) -> dict[str, str]:
        """Return everything that a dataplane could leave behind."""
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
