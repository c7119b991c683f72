"""Services with session affinity in one namespace, and their clients: who reaches which endpoint.

All addresses are local. A client is a socket with the client's address; the servers answer with the address
that the packet came to, so a client knows its endpoint.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from backends.testbed.command import run
from backends.testbed.netlink import Conntrack
from nfparity.snapshot import Variant
from tests.kernel.helpers.migratenode import Fresh
from tests.lab.traffic.host import Host, Ip, Request
from translate.ir import Family

SERVICES = 4
ENDPOINTS = 50
HITS_PORT = 5400
BAN_PORT = 5500
NET = {Family.IP: "10.{}.{}.{}", Family.IP6: "fd10:{}:{}::{}"}
"""The spelling of every address, from three numbers."""
_IP_PKTINFO, _IPV6_FREEBIND = 8, 78  # which the module socket lacks


def service(family: Family, number: int) -> str:
    return NET[family].format(96, 1, number + 1)


def endpoint(family: Family, number: int) -> str:
    return NET[family].format(2, 1, number + 1)


def client(family: Family, number: int) -> str:
    return NET[family].format(64, number // 250, number % 250 + 1)


def rules(family: Family, endpoints: int) -> str:
    """Return kube-proxy's rules for the services, and a firewall with lists of both kinds."""
    whole = 32 if family is Family.IP else 128
    mask = "255.255.255.255" if family is Family.IP else ":".join(["ffff"] * 8)
    listed = f"--mask {mask} --rsource"
    chains, body = [":KUBE-SERVICES - [0:0]"], []
    for s in range(SERVICES):
        chain = f"KUBE-SVC-{s}"
        chains.append(f":{chain} - [0:0]")
        body.append(f"-A KUBE-SERVICES -d {service(family, s)}/{whole} -p udp -m udp --dport 53 -j {chain}")
        seps = [f"KUBE-SEP-{family.value}-{s}-{e}" for e in range(endpoints)]
        for sep in seps:
            check = f"-m recent --rcheck --seconds 10800 --reap --name {sep} {listed}"
            body.append(f"-A {chain} {check} -j {sep}")
        for e, sep in enumerate(seps):
            chance = 1 / (endpoints - e)
            draw = f"-m statistic --mode random --probability {chance:.11f} " if chance < 1 else ""
            body.append(f"-A {chain} {draw}-j {sep}")
        for e, sep in enumerate(seps):
            chains.append(f":{sep} - [0:0]")
            host = endpoint(family, e)
            target = f"{host if family is Family.IP else f'[{host}]'}:{5300 + s}"
            noted = f"-p udp -m recent --set --name {sep} {listed} -m udp"
            body.append(f"-A {sep} {noted} -j DNAT --to-destination {target}")
    hits, ban = f"HITS-{family.value}", f"BAN-{family.value}"
    lines = [
        "*nat",
        *(f":{name} ACCEPT [0:0]" for name in ("PREROUTING", "INPUT", "OUTPUT", "POSTROUTING")),
        *chains,
        "-A PREROUTING -j KUBE-SERVICES",
        "-A OUTPUT -j KUBE-SERVICES",
        *body,
        "COMMIT",
        "*filter",
        *(f":{name} ACCEPT [0:0]" for name in ("INPUT", "FORWARD", "OUTPUT")),
        f"-A INPUT -p udp -m udp --dport {HITS_PORT} -m recent --update --seconds 3000 --hitcount 3 "
        f"--name {hits} {listed} -j DROP",
        f"-A INPUT -p udp -m udp --dport {HITS_PORT} -m recent --set --name {hits} {listed} -j ACCEPT",
        f"-A INPUT -p udp -m udp --dport 53 -m recent --rcheck --seconds 3000 --name {ban} {listed} -j DROP",
        f"-A INPUT -p udp -m udp --dport {BAN_PORT} -m recent --set --name {ban} {listed} -j DROP",
        "COMMIT",
        "",
    ]
    return "\n".join(lines)


@dataclass(frozen=True)
class Services(Request):
    """Resets the node, and loads the rules of the families."""

    variant: Variant
    families: tuple[Family, ...]
    endpoints: int = 3

    def run(self, host: Host) -> None:
        Fresh(self.variant).run(host)
        with contextlib.closing(Conntrack()) as conntrack:
            conntrack.flush()  # clients of another test may have had the same ports
        Ip("route replace local 10.0.0.0/8 dev lo\n").run(host)
        Ip("route replace local fd10::/16 dev lo\n").run(host)
        for family in Family:
            program = "iptables" if family is Family.IP else "ip6tables"
            text = rules(family, self.endpoints) if family in self.families else "*filter\nCOMMIT\n"
            empty = "*raw\nCOMMIT\n*mangle\nCOMMIT\n"
            done = run((f"{program}-{self.variant}-restore",), empty + text)
            assert not done.returncode, done.stderr


@dataclass(frozen=True)
class Visits(Request):
    """Returns the endpoint that each client reaches by its service, or None without an answer."""

    family: Family
    clients: range

    def run(self, host: Host) -> tuple[str | None, ...]:
        with contextlib.ExitStack() as stack:
            servers = [stack.enter_context(_server(self.family, 5300 + s)) for s in range(SERVICES)]
            # A port that a client has used before would continue an earlier connection.
            port = host.kept["port"] = host.kept.get("port", 40_000 if host.name == "clients" else 10_000) + 1
            return tuple([self._visit(number, servers[number % SERVICES], port) for number in self.clients])

    def _visit(self, number: int, server: socket.socket, port: int) -> str | None:
        with _socket(self.family) as made:
            made.bind((client(self.family, number), port))
            made.settimeout(20)
            made.connect((service(self.family, number % SERVICES), 53))
            try:
                made.send(b"?")
                answer(server)
                return made.recv(64).decode()
            except OSError:
                return None


@dataclass(frozen=True)
class Knocks(Request):
    """Sends one packet of each client to ``port`` of an endpoint; returns which packets arrived."""

    family: Family
    port: int
    clients: tuple[int, ...]

    def run(self, host: Host) -> tuple[bool, ...]:
        return tuple([self._knock(number) for number in self.clients])

    def _knock(self, number: int) -> bool:
        with _server(self.family, self.port) as server, _socket(self.family) as made:
            server.setblocking(False)
            made.bind((client(self.family, number), 0))
            made.sendto(b"!", (endpoint(self.family, 0), self.port))
            try:
                return server.recv(10) == b"!"  # the loopback device delivers before sendto returns
            except BlockingIOError:
                return False


def answer(server: socket.socket) -> None:
    """Answer one packet from the address that it came to, with this address."""
    _, controls, _, source = server.recvmsg(10, 256)
    for level, kind, data in controls:
        if (level, kind) == (socket.IPPROTO_IP, _IP_PKTINFO):
            local = data[8:12]
            text = socket.inet_ntop(socket.AF_INET, local)
            server.sendmsg([text.encode()], [(level, kind, struct.pack("i4s4s", 0, local, local))], 0, source)
        elif (level, kind) == (socket.IPPROTO_IPV6, socket.IPV6_PKTINFO):
            text = socket.inet_ntop(socket.AF_INET6, data[:16])
            server.sendmsg([text.encode()], [(level, kind, data[:16] + bytes(4))], 0, source)


def _socket(family: Family) -> socket.socket:
    if family is Family.IP:
        return socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    made = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    made.setsockopt(socket.IPPROTO_IPV6, _IPV6_FREEBIND, 1)  # a local route is not enough, as it is in IPv4
    return made


@contextlib.contextmanager
def _server(family: Family, port: int) -> Iterator[socket.socket]:
    with _socket(family) as server:
        server.settimeout(20)
        # Several processes may serve: each gets the packets of its own clients only in sequence.
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family is Family.IP:
            server.setsockopt(socket.IPPROTO_IP, _IP_PKTINFO, 1)
        else:
            server.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVPKTINFO, 1)
        server.bind(("", port))
        yield server


@dataclass(frozen=True)
class Lists(Request):
    """Returns the lines of the files of lists, by name."""

    def run(self, host: Host) -> dict[str, tuple[str, ...]]:
        folder = "/proc/net/xt_recent"
        names = os.listdir(folder) if os.path.isdir(folder) else []
        made = {}
        for name in names:
            with open(f"{folder}/{name}") as file:
                made[name] = tuple(sorted(line.split()[0].removeprefix("src=") for line in file))
        return made
