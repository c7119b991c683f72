"""A client, a node with a translation, and a server: real sockets through a flowtable.

The client reaches the server by an address that the node translates (DNAT), with the node's address as the
source (SNAT). The server answers each line with the sender's address and the line, so that an answer shows
the payload and the addresses. A second way leads to the server over another host, for changes of routes.
"""

from __future__ import annotations

import contextlib
import json
import select
import socket
import struct
import threading
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

from backends.replay.worker import Worker
from tests.lab.traffic.host import Host, Ip, Request, Start, Tool
from translate import nft
from translate.errors import MachineError
from translate.ir import Family
from translate.nft import Offload
from translate.passes import lower
from translate.read import read_ruleset

__all__ = [
    "DETOUR",
    "DEVICES",
    "RULES",
    "SERVER",
    "SERVICE",
    "SOURCE",
    "Close",
    "Ends",
    "Open",
    "Provoke",
    "Say",
    "Scene",
    "Stop",
]

DEVICES: Final = ("eth0", "eth1", "eth2")
SERVICE: Final = {Family.IP: "10.96.0.1", Family.IP6: "fd00:96::1"}
SERVER: Final = {Family.IP: "10.9.9.9", Family.IP6: "fd00:9::9"}
SOURCE: Final = {Family.IP: "10.0.0.1", Family.IP6: "2001:db8:2::1"}
"""The client's address as the server sees it. MASQUERADE would end a connection whose device changes."""
PORT: Final = 80
_SECONDS: Final = 20.0

RULES: Final = {
    family: f"""\
*mangle
:PREROUTING ACCEPT [0:0]
:FORWARD ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
-A PREROUTING -m conntrack --ctstate NEW -j CONNMARK --set-xmark 0x7/0xffffffff
COMMIT
*filter
:FORWARD DROP [0:0]
-A FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A FORWARD -m conntrack --ctstate NEW -d {SERVER[family]} -j ACCEPT
COMMIT
*nat
:PREROUTING ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
-A PREROUTING -d {SERVICE[family]} -p tcp -m tcp --dport {PORT} -j DNAT --to-destination {target}:8080
-A PREROUTING -d {SERVICE[family]} -p udp -m udp --dport {PORT} -j DNAT --to-destination {target}:8080
-A POSTROUTING -d {SERVER[family]} -j SNAT --to-source {SOURCE[family]}
COMMIT
"""
    for family, target in ((Family.IP, SERVER[Family.IP]), (Family.IP6, f"[{SERVER[Family.IP6]}]"))
}
_COUNTING: Final = """\
table inet counting {
	counter passed_tcp { }
	counter passed_udp { }
	chain forward {
		type filter hook forward priority -500;
		meta l4proto tcp counter name passed_tcp
		meta l4proto udp counter name passed_udp
	}
}
"""
"""Counts the packets that pass FORWARD; one that a flowtable forwards does not."""

_NODE: Final = {
    "net/ipv4/ip_forward": "1",
    "net/ipv6/conf/all/forwarding": "1",
    "net/ipv4/conf/all/send_redirects": "0",
    "net/ipv4/conf/default/send_redirects": "0",
}
_EVERYWHERE: Final = {
    "net/ipv4/conf/all/rp_filter": "0",
    "net/ipv4/conf/default/rp_filter": "0",
    "net/ipv4/icmp_ratelimit": "0",
    "net/ipv6/icmp/ratelimit": "0",
    "net/ipv6/conf/all/accept_dad": "0",
    "net/ipv6/conf/default/accept_dad": "0",
    "net/ipv6/conf/all/disable_ipv6": "0",
    "net/ipv6/conf/default/disable_ipv6": "0",
}
_LINKS: Final = (
    # a host, its device and addresses, then those of the other end
    ("client", "eth0", "192.0.2.2/24 2001:db8:1::2/64", "node", "eth0", "192.0.2.1/24 2001:db8:1::1/64"),
    ("server", "eth0", "10.0.0.2/24 2001:db8:2::2/64", "node", "eth1", "10.0.0.1/24 2001:db8:2::1/64"),
    ("detour", "eth0", "10.0.1.2/24 2001:db8:3::2/64", "node", "eth2", "10.0.1.1/24 2001:db8:3::1/64"),
    ("server", "eth1", "10.0.2.2/24 2001:db8:4::2/64", "detour", "eth1", "10.0.2.1/24 2001:db8:4::1/64"),
)
_ROUTES: Final = (
    ("client", "default via 192.0.2.1", "default via 2001:db8:1::1"),
    ("server", "default via 10.0.0.1", "default via 2001:db8:2::1"),
    ("detour", "10.9.9.9/32 via 10.0.2.2", "fd00:9::9/128 via 2001:db8:4::2"),
    ("node", "10.9.9.9/32 via 10.0.0.2", "fd00:9::9/128 via 2001:db8:2::2"),
)
DETOUR: Final = {Family.IP: "10.9.9.9/32 via 10.0.1.2", Family.IP6: "fd00:9::9/128 via 2001:db8:3::2"}


@dataclass(frozen=True, slots=True)
class Serve(Request):
    """Answers lines of TCP and UDP clients with the client's address and the line."""

    family: Family

    def run(self, host: Host) -> None:
        """Start the servers."""
        address = (SERVER[self.family], 8080)
        tcp = socket.create_server(address, family=self.family.socket_family)
        udp = socket.socket(self.family.socket_family, socket.SOCK_DGRAM)
        udp.bind(address)
        ends: list[str] = []
        host.kept["udp"], host.kept["tcp"], host.kept["ends"] = udp, tcp, ends
        threading.Thread(target=_accept, args=(tcp, ends), daemon=True).start()
        threading.Thread(target=_echo, args=(udp,), daemon=True).start()


def _accept(server: socket.socket, ends: list[str]) -> None:
    while True:
        try:
            connection, peer = server.accept()
        except OSError:
            return
        threading.Thread(target=_answer, args=(connection, peer, ends), daemon=True).start()


def _answer(connection: socket.socket, peer: tuple[Any, ...], ends: list[str]) -> None:
    with connection, connection.makefile("rwb") as file:
        try:
            for line in file:
                file.write(f"{peer[0]} ".encode() + line)
                file.flush()
            ends.append("closed")
        except OSError as e:
            ends.append(type(e).__name__)


def _echo(server: socket.socket) -> None:
    while True:
        try:
            data, peer = server.recvfrom(1 << 16)
            if peer is None:  # shut down
                return
            server.sendto(f"{peer[0]} ".encode() + data, peer)
        except OSError:
            return


@dataclass(frozen=True, slots=True)
class Ends(Request):
    """Returns how the server's TCP connections ended, once ``count`` have."""

    count: int

    def run(self, host: Host) -> list[str]:
        """Wait for them."""
        ends: list[str] = host.kept["ends"]
        waiting = threading.Event()
        while len(ends) < self.count and not waiting.wait(0.01):
            pass
        return ends


@dataclass(frozen=True, slots=True)
class Stop(Request):
    """Closes the server's UDP socket, so that its port is unreachable."""

    def run(self, host: Host) -> None:
        """Wake the thread that reads it, and close it."""
        udp: socket.socket = host.kept["udp"]
        with contextlib.suppress(OSError):
            udp.shutdown(socket.SHUT_RDWR)
        udp.close()


@dataclass(frozen=True, slots=True)
class Open(Request):
    """Opens the client's connection ``name`` to the service."""

    name: str
    kind: socket.SocketKind
    family: Family

    def run(self, host: Host) -> None:
        """Connect."""
        made = socket.socket(self.family.socket_family, self.kind)
        made.settimeout(_SECONDS)
        made.connect((SERVICE[self.family], PORT))
        host.kept[self.name] = made


@dataclass(frozen=True, slots=True)
class Say(Request):
    """Sends lines over a connection, each after the answer to the one before, and returns the answers."""

    name: str
    lines: tuple[bytes, ...]

    def run(self, host: Host) -> list[bytes]:
        """Send them; raises OSError."""
        made: socket.socket = host.kept[self.name]
        return [_line_answer(made, line) for line in self.lines]


def _line_answer(made: socket.socket, line: bytes) -> bytes:
    made.sendall(line + b"\n")
    answer = made.recv(1 << 16)
    while made.type is socket.SOCK_STREAM and not answer.endswith(b"\n"):
        more = made.recv(1 << 16)
        if not more:
            break
        answer += more
    return answer


@dataclass(frozen=True, slots=True)
class Provoke(Request):
    """Sends a UDP datagram that may not be fragmented; returns the ICMP error that arrives, and the MTU."""

    name: str
    size: int

    def run(self, host: Host) -> tuple[str, int]:
        """Send it, and wait for the error."""
        made: socket.socket = host.kept[self.name]
        v6 = made.family is socket.AF_INET6
        level, discover, mtu = (41, 23, 24) if v6 else (0, 10, 14)
        made.setsockopt(level, discover, 2)  # IP_MTU_DISCOVER, IP_PMTUDISC_DO
        made.send(b"x" * self.size)
        select.select([made], [], [], _SECONDS)
        try:
            made.recv(1 << 16)
            error = "an answer"
        except OSError as e:
            error = type(e).__name__ if isinstance(e, ConnectionRefusedError) else f"errno {e.errno}"
        return error, made.getsockopt(level, mtu)


@dataclass(frozen=True, slots=True)
class Close(Request):
    """Closes a connection; ``reset`` sends RST instead of FIN."""

    name: str
    reset: bool = False

    def run(self, host: Host) -> None:
        """Close it."""
        made: socket.socket = host.kept.pop(self.name)
        if self.reset:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        made.close()


@dataclass(frozen=True, slots=True)
class Tracked(Request):
    """Returns the lines of the node's connections of one protocol."""

    protocol: str

    def run(self, host: Host) -> list[str]:
        """Read them."""
        lines = Path("/proc/net/nf_conntrack").read_text().splitlines()
        return [line for line in lines if f" {self.protocol} " in line]


class Scene:
    """The hosts, with the translation of :data:`RULES`, with or without a flowtable. A context manager."""

    def __init__(self, family: Family, *, offloads: bool, rules: str | None = None) -> None:
        self.family = family
        self.hosts: dict[str, Worker] = {}
        self._stack = ExitStack()
        try:
            self._build()
            text = (RULES[family] if rules is None else rules).encode()
            program = lower(read_ruleset(text, name="rules", family=family), level=2)
            output = nft.emit(program)
            if offloads:
                output = nft.offloading(output, program, Offload(DEVICES, unchecked=True))
            self.nft(_COUNTING + output.text)
            self.hosts["server"].ask(Serve(family))
        except BaseException:
            self._stack.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def client(self, request: Request) -> Any:
        """Run a request on the client."""
        return self.hosts["client"].ask(request)

    def server(self, request: Request) -> Any:
        """Run a request on the server."""
        return self.hosts["server"].ask(request)

    def nft(self, text: str) -> None:
        """Load text on the node. Raises MachineError with nft's message."""
        said = self.hosts["node"].ask(Tool(("nft", "-f", "-"), text))
        if said.status:
            raise MachineError(said.err)

    def ip(self, host: str, command: str) -> None:
        """Run one command of ``ip``."""
        self.hosts[host].ask(Ip(f"{command}\n"))

    def tracked(self, protocol: str) -> list[str]:
        """Return the node's connections of a protocol."""
        lines: list[str] = self.hosts["node"].ask(Tracked(protocol))
        return lines

    def passed(self, protocol: str) -> int:
        """Return the number of packets that have passed FORWARD."""
        said = self.hosts["node"].ask(
            Tool(("nft", "list", "counter", "inet", "counting", f"passed_{protocol}"))
        )
        return int(said.out.partition("packets ")[2].split()[0])

    def arrived(self, host: str, device: str) -> int:
        """Return the number of packets that a device of a host has received."""
        said = self.hosts[host].ask(Tool(("ip", "-s", "-j", "link", "show", "dev", device)))
        (link,) = json.loads(said.out)
        return int(link["stats64"]["rx"]["packets"])

    def _build(self) -> None:
        for name in ("node", "client", "server", "detour"):
            sysctls = {**_EVERYWHERE, **(_NODE if name in ("node", "detour") else {})}
            self.hosts[name] = self._stack.enter_context(Worker(Start(name, sysctls)))
        for host, device, own, other, peer, others in _LINKS:
            pid = self.hosts[other].pid
            self.ip(host, f"link add {device} type veth peer name {peer} netns {pid}")
            for place, name, addresses in ((host, device, own), (other, peer, others)):
                self.ip(place, f"link set {name} up")
                for address in addresses.split():
                    nodad = " nodad" if ":" in address else ""
                    self.ip(place, f"address add {address} dev {name}{nodad}")
        for host in self.hosts:
            self.ip(host, "link set lo up")
        for address in SERVER.values():
            length = "/128 nodad" if ":" in address else "/32"
            command = f"address add {address}{length.split()[0]} dev lo"
            self.ip("server", command + (" nodad" if "nodad" in length else ""))
        for host, *routes in _ROUTES:
            for route in routes:
                self.ip(host, f"route add {route}")
