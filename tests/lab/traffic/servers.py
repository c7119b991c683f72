"""The services of a pod: lines over TCP and UDP, and a web page, each with the pod and the client's address.

A line ``X`` is answered with ``POD ADDRESS PORT X``, so that an answer shows which pod gave it, the source
that the pod saw, and that it is the answer to this question.
"""

from __future__ import annotations

import http.server
import select
import socket
import socketserver
import threading
import time
from dataclasses import dataclass, field
from typing import Final

from tests.lab.traffic.host import Daemon, Host, Request
from tests.lab.traffic.plan import DNS, DNS_NAME, HTTP, TCP
from translate.errors import MachineError
from translate.ir import Family

__all__ = ["BYTES", "Serve", "ServeNames", "Served"]

BYTES: Final = "/bytes/"
"""The path of pages of a given size: the number of bytes is the page's name."""
_BACKLOG: Final = 4096
_MOST: Final = 65536
_PATIENCE: Final = 60
"""Seconds after which a server that does not listen is an error."""
_LOOPBACK: Final = {Family.IP: "127.0.0.1", Family.IP6: "::1"}


@dataclass(frozen=True, slots=True)
class Serve(Request):
    """Serves lines and pages, in threads of the process."""

    def run(self, host: Host) -> None:
        """Start the servers."""
        lines = _Lines(host.name)
        host.kept["lines"] = lines
        lines.bind()
        threading.Thread(target=lines.serve, daemon=True).start()
        for family in Family:
            pages = _pages(family, host.name)
            threading.Thread(target=pages.serve_forever, daemon=True).start()


@dataclass(frozen=True, slots=True)
class ServeNames(Request):
    """Starts the DNS server dnsmasq with :data:`DNS_NAME`. MachineError if it does not listen."""

    def run(self, host: Host) -> None:
        """Start the server, and wait until it listens."""
        # A process that changes its user is no longer killed with its parent (commit_creds).
        alone = ("--no-daemon", "--conf-file=/dev/null", "--no-hosts", "--no-resolv")
        served = (f"--port={DNS.pod_port}", f"--txt-record={DNS_NAME},{host.name}")
        daemon = host.kept["names"] = Daemon.start(("dnsmasq", *alone, *served))
        end = time.monotonic() + _PATIENCE
        while not all(_listens(family, DNS.pod_port) for family in Family):
            if daemon.process.poll() is not None or time.monotonic() > end:
                raise MachineError(f"{host.name}: dnsmasq does not listen (status {daemon.process.poll()})")
            time.sleep(0.01)


def _listens(family: Family, port: int) -> bool:
    """Return whether dnsmasq listens: its UDP sockets are bound before those for TCP (create_listeners)."""
    with socket.socket(family.socket_family, socket.SOCK_STREAM) as stream:
        return stream.connect_ex((_LOOPBACK[family], port)) == 0


@dataclass(frozen=True, slots=True)
class Served(Request):
    """Returns the numbers of lines answered over TCP and UDP."""

    def run(self, host: Host) -> tuple[int, int]:
        """Return the numbers."""
        lines: _Lines = host.kept["lines"]
        return lines.tcp, lines.udp


@dataclass(slots=True)
class _Lines:
    name: str
    tcp: int = 0
    udp: int = 0
    _listening: dict[int, socket.socket] = field(default_factory=dict)
    _datagrams: dict[int, socket.socket] = field(default_factory=dict)
    _open: dict[int, tuple[socket.socket, bytes]] = field(default_factory=dict)

    def bind(self) -> None:
        """Open the sockets. From here on the kernel accepts connections and keeps datagrams."""
        for family in Family:
            for kind, into in ((socket.SOCK_STREAM, self._listening), (socket.SOCK_DGRAM, self._datagrams)):
                listener = _bound(family, kind)
                into[listener.fileno()] = listener

    def serve(self) -> None:
        """Serve for ever."""
        poll = select.epoll()
        for fd in (*self._listening, *self._datagrams):
            poll.register(fd, select.EPOLLIN)
        while True:
            for fd, _ in poll.poll():
                if fd in self._open:
                    self._stream(poll, fd)
                elif (datagrams := self._datagrams.get(fd)) is not None:
                    self._datagram(datagrams)
                else:
                    self._accept(poll, self._listening[fd])

    def _accept(self, poll: select.epoll, listening: socket.socket) -> None:
        while True:
            try:
                stream, peer = listening.accept()
            except BlockingIOError:
                return
            except OSError:
                continue  # gone before it was accepted
            stream.setblocking(False)
            self._open[stream.fileno()] = stream, f"{self.name} {peer[0]} {peer[1]} ".encode()
            poll.register(stream, select.EPOLLIN)

    def _stream(self, poll: select.epoll, fd: int) -> None:
        stream, prefix = self._open[fd]
        try:
            data = stream.recv(_MOST)
            if data:  # one line: a client waits for the answer before the next
                self.tcp += 1
                stream.sendall(prefix + data)
                return
        except OSError:
            pass  # reset
        poll.unregister(fd)
        del self._open[fd]
        stream.close()

    def _datagram(self, listener: socket.socket) -> None:
        while True:
            try:
                data, peer = listener.recvfrom(_MOST)
                self.udp += 1
                listener.sendto(f"{self.name} {peer[0]} {peer[1]} ".encode() + data, peer)
            except BlockingIOError:
                return
            except OSError:
                continue  # an ICMP error about an earlier answer, or no route to the client


def _bound(family: Family, kind: socket.SocketKind) -> socket.socket:
    bound = socket.socket(family.socket_family, kind)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if family is Family.IP6:
        bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
    bound.bind(("", TCP.pod_port))
    if kind == socket.SOCK_STREAM:
        bound.listen(_BACKLOG)
    bound.setblocking(False)
    return bound


def _pages(family: Family, name: str) -> http.server.ThreadingHTTPServer:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            said = f"{name} {self.client_address[0]} {self.client_address[1]} {self.path}\n".encode()
            if self.path.startswith(BYTES):
                said = b"x" * int(self.path.removeprefix(BYTES))
            self.send_response(200)
            self.send_header("Content-Length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # its name
            pass

    class Server(http.server.ThreadingHTTPServer):
        address_family = family.socket_family
        request_queue_size = _BACKLOG
        daemon_threads = True

        def server_bind(self) -> None:
            if family is Family.IP6:
                self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            socketserver.TCPServer.server_bind(self)  # HTTPServer.server_bind looks up the name of the host

    return Server(("", HTTP.pod_port), Handler)
