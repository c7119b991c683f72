"""The node under test: TAP devices in this process's network namespace, all of them observed.

Each interface is a TAP whose other end is this process, which plays all other hosts. The stack has handled a
written frame completely when ``write`` returns (``tun_get_user`` calls ``netif_receive_skb`` itself, and no
TAP has a queueing discipline, in which packets would wait for another CPU that is sending a listener report),
so the results can be read at once:

* frames that left are read from the TAPs, and again from a packet socket, which reports the mark
  (``SO_RCVMARK``) with which they passed the device;
* packets delivered to the node are read from raw sockets, which get them after INPUT;
* packets made on the node are sent through a raw socket with ``IP_HDRINCL``.

Raw sockets of IPv6 do not return the header. It is rebuilt from their control messages (``IPV6_PKTINFO``,
``IPV6_HOPLIMIT``, ``IPV6_TCLASS``) and the sender, so a delivered packet shows no extension headers.

Only packets on ``lo``, or redirected to a device's ingress, go through the per-CPU backlog.
:meth:`TapNode.settle` waits for it without sleeping.

The devices have no ARP (``IFF_NOARP``): neighbours are valid at once (also in ``ndisc_constructor``) and do
not age, and the machine-wide limit of the neighbour table does not limit the number of addresses in a corpus.
A node of IPv6 has only the given addresses: no link-local addresses are made, no neighbours are solicited,
and its multicast listener reports, which no sysctl stops, are not counted as packets.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import select
import socket
import struct
import time
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from backends.model.link import device_mac, neighbour_mac
from backends.model.node import Node, Route
from backends.model.routes import DEFAULT_RULES
from backends.testbed.controlmessages import mark_in, with_ipv6_header
from backends.testbed.localroutes import wait_for_local_routes
from backends.testbed.netlink import Conntrack, Routing
from backends.testbed.offloads import Offload, switch_off
from backends.testbed.ownership import opening_as
from backends.testbed.sniffer import SO_RCVMARK, Sniffer
from backends.testbed.sysctls import set_node_sysctls, set_own_sysctls
from backends.testbed.unroutedcount import UnroutedCount
from translate.errors import MachineError
from translate.ir import Family, Protocol

__all__ = ["QUEUE", "Sighting", "TapNode"]

_TUNSETIFF: Final = 0x400454CA
_IFF_TAP_NO_PI: Final = 0x1002
_SOL_RAW: Final = 255
_ETHERTYPES: Final = {Family.IP: 0x0800, Family.IP6: 0x86DD}
_ETH_P_FENCE: Final = 0x88B5  # "local experimental" (IEEE 802)
QUEUE: Final = 1000
"""The number of packets that can wait at a device to be read."""
_FENCE_SECONDS: Final = 5.0
_LONGEST: Final = 1 << 16
"""The size of a buffer for any packet."""


class Sighting(NamedTuple):
    """An IP packet that came out: on device ``out``, or delivered to the node if that is None.

    ``mark`` is its packet mark; None if the packet socket did not see it.
    """

    data: bytes
    out: str | None
    mark: int | None


class TapNode:
    """A Node, built in the current network namespace, which must be fresh and private.

    It has the addresses and routes of one family, and carries packets of that family only. Raises
    MachineError, with the kernel's error, if a part cannot be set up.
    """

    def __init__(self, node: Node, family: Family = Family.IP) -> None:
        self.node = node
        self.family = family
        self.conntrack = Conntrack()
        self.indexes: dict[str, int] = {}
        """The interface index of every device."""
        self._ethertype = _ETHERTYPES[family].to_bytes(2, "big")
        self._names: dict[int, str] = {}
        self._taps: dict[str, int] = {}
        self._tap_names: dict[int, str] = {}
        self._headers: dict[str, bytes] = {}
        self._raw: dict[int, socket.socket] = {}
        self._listening: dict[int, socket.socket] = {}
        self._poll = select.epoll()
        self._cpu: int | None = None
        self._cpus: set[int] = set()
        self._unrouted: UnroutedCount | None = None
        if family is Family.IP and not node.routes_everything(family):
            self._unrouted = UnroutedCount()
        set_own_sysctls(family)
        self._links()
        self._sniffer = Sniffer(_ETHERTYPES[family])
        self._poll.register(self._sniffer.fileno(), select.EPOLLIN)
        self._senders: dict[tuple[int, int], socket.socket] = {}
        self._marks: dict[tuple[int, int], int] = {}
        self._sender(0, 0)
        self._fence = self._open_fence()
        icmp = Protocol.ICMP if family is Family.IP else Protocol.ICMPV6
        for proto in (Protocol.TCP, Protocol.UDP, icmp):
            self.listen(proto)

    def close(self) -> None:
        """Delete the devices, close the sockets, and let this process run on all its processors again."""
        for fd in self._taps.values():
            os.close(fd)
        for each in (*self._raw.values(), *self._senders.values(), self._fence):
            each.close()
        self._sniffer.close()
        if self._unrouted is not None:
            self._unrouted.close()
        self.conntrack.close()
        self._poll.close()
        if self._cpus:
            os.sched_setaffinity(0, self._cpus)

    # Sending

    def inject(
        self, device: str, data: bytes, *, source: int | None = None, destination: int | None = None
    ) -> None:
        """Send an IP packet into ``device`` from outside. Raises KeyError for an unknown device.

        ``source`` and ``destination`` are hardware addresses; None means the neighbour's and the device's.
        """
        header = self._headers[device]
        if destination is not None:
            header = _mac_bytes(destination) + header[6:]
        if source is not None:
            header = header[:6] + _mac_bytes(source) + header[12:]
        os.write(self._taps[device], header + data)

    def originate(self, data: bytes, *, mark: int, uid: int = 0, gid: int = 0) -> int:
        """Send an IP packet from a socket of the node that was opened by this user and group.

        Returns the errno of ``sendto``, or 0.
        """
        sender = self._sender(uid, gid)
        if mark != self._marks[uid, gid]:
            sender.setsockopt(socket.SOL_SOCKET, socket.SO_MARK, struct.pack("=I", mark))
            self._marks[uid, gid] = mark
        try:
            at, end = (16, 20) if self.family is Family.IP else (24, 40)
            sender.sendto(data, (socket.inet_ntop(self.family.socket_family, data[at:end]), 0))
        except OSError as e:
            return e.errno or errno.EIO
        return 0

    def run_on(self, cpu: int) -> None:
        """Run this process on one processor, which then handles the packets that it sends.

        Raises MachineError if the process may not use it.
        """
        if cpu == self._cpu:
            return
        if self._cpu is None:
            self._cpus = os.sched_getaffinity(0)
        try:
            os.sched_setaffinity(0, {cpu})
        except (OSError, ValueError, OverflowError):
            raise MachineError(f"a packet is for CPU {cpu}, which this process cannot use") from None
        self._cpu = cpu

    def listen(self, proto: int) -> None:
        """Report packets of protocol ``proto`` that are delivered to the node from now on."""
        if proto in self._listening or proto in (socket.IPPROTO_IP, socket.IPPROTO_RAW):
            return  # no socket gets these protocols
        family = self.family.socket_family
        raw = socket.socket(family, socket.SOCK_RAW | socket.SOCK_NONBLOCK, proto)
        raw.setsockopt(socket.SOL_SOCKET, SO_RCVMARK, 1)
        if self.family is Family.IP6:
            raw.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVPKTINFO, 1)
            raw.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVHOPLIMIT, 1)
            raw.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVTCLASS, 1)
            if proto == Protocol.ICMPV6:
                # Packets with a wrong checksum must be reported, which rawv6_rcv would drop.
                raw.setsockopt(_SOL_RAW, socket.IPV6_CHECKSUM, -1)
        self._listening[proto] = raw
        self._raw[raw.fileno()] = raw
        self._poll.register(raw.fileno(), select.EPOLLIN)

    # Receiving

    def drain(self, at_most: int = 1) -> list[Sighting]:
        """Return the packets that have come out since the last call, in order for each device.

        ``at_most`` packets are read from a device before the next one: a large number is faster for many
        packets, and 1 for a single packet.
        """
        frames: dict[str, list[bytes]] = {}
        marked: dict[str, list[tuple[bytes, int]]] = {}
        sightings: list[Sighting] = []
        sniffer, names = self._sniffer.fileno(), self._names
        while ready := self._poll.poll(0):
            for fd, _ in ready:
                if (name := self._tap_names.get(fd)) is not None:
                    frames.setdefault(name, []).extend(self._packets(fd, at_most))
                elif fd == sniffer:
                    for index, data, mark in self._sniffer.read():
                        marked.setdefault(names[index], []).append((data, mark))
                else:
                    sightings += self._delivered(self._raw[fd], at_most)
        for name, packets in frames.items():
            marks = _marks(packets, marked.get(name, []))
            sightings += [Sighting(data, name, mark) for data, mark in zip(packets, marks, strict=True)]
        return sightings

    def _packets(self, fd: int, at_most: int) -> list[bytes]:
        """Return the IP packets that have left by a device, from at most ``at_most`` frames."""
        frames: list[bytes] = []
        try:
            for _ in range(at_most):
                frames.append(os.read(fd, _LONGEST))
        except BlockingIOError:
            pass
        ethertype, six = self._ethertype, self.family is Family.IP6
        return [f[14:] for f in frames if f[12:14] == ethertype and not (six and _is_listener_report(f))]

    def _delivered(self, raw: socket.socket, at_most: int) -> Iterator[Sighting]:
        with contextlib.suppress(BlockingIOError):
            for _ in range(at_most):
                data, extra, _, address = raw.recvmsg(_LONGEST, 256)
                if self.family is Family.IP6:
                    data = with_ipv6_header(data, raw.proto, address[0], extra)
                yield Sighting(data, None, mark_in(extra))

    def settle(self) -> list[Sighting]:
        """Wait until the stack has handled everything sent before, and drain.

        A frame sent through ``lo`` is in the backlog after all other packets of this CPU; when it returns,
        the others have been handled. It is sent twice, because a waiting packet may have been answered
        through ``lo``.
        """
        for _ in range(2):
            self._fence.send(bytes(12) + _ETH_P_FENCE.to_bytes(2, "big"))
            try:
                self._fence.recv(64)
            except TimeoutError as e:
                raise MachineError("the kernel keeps a frame on lo for seconds; is it overloaded?") from e
        return self.drain()

    def wait(self, seconds: float) -> None:
        """Let time pass, and discard the packets that come out meanwhile."""
        deadline = _now() + seconds
        while (left := deadline - _now()) > 0:
            self._poll.poll(left, 1)
            self.drain()

    def unrouted(self) -> int:
        """Return the number of packets that came in and had no route; 0 where it cannot matter.

        Of IPv4 packets without a route, the kernel answers five of each source at once, and then one a second
        (``ip_error``).
        """
        return 0 if self._unrouted is None else self._unrouted.read()

    # For many packets of which few properties are read

    def inject_all(self, device: str, packets: Iterable[bytes | bytearray]) -> None:
        """Send IP packets into ``device`` in order, each before the next is taken from the iterable.

        Packets that leave wait in the queue of their device; after :data:`QUEUE` packets they are lost.
        """
        write, fd, header = os.writev, self._taps[device], self._headers[device]
        for packet in packets:
            write(fd, (header, packet))

    def left(self) -> Iterator[bytes]:
        """Yield the IP packets that have left, device by device, without reading their marks."""
        for fd in self._taps.values():
            yield from self._packets(fd, QUEUE)

    # Building

    def apply_sysctls(self) -> None:
        """Set the node's sysctls again, now also those that exist only after rules are loaded.

        Those of conntrack exist only after a rule or a tool has switched conntrack on.
        """
        set_node_sysctls(self.node)

    def _links(self) -> None:
        with Routing() as routing:
            routing.set_up(1)
            self.indexes["lo"] = 1
            for number, interface in enumerate(self.node.interfaces, 1):
                name = interface.name
                index = self._open_tap(name)
                try:
                    mac = _mac_bytes(device_mac(number))
                    routing.set_up(index, mac=mac, queue=QUEUE, group=interface.group, arp=False)
                    routing.send_at_once(index)
                except OSError as e:
                    raise MachineError(f"cannot bring up {name}: {e.strerror}") from e
                self._headers[name] = (
                    _mac_bytes(device_mac(number)) + _mac_bytes(neighbour_mac(number)) + self._ethertype
                )
                for address in interface.addresses:
                    if address.family is not self.family:
                        continue
                    try:
                        routing.add_address(index, address.family, address.value, address.prefix_length)
                    except OSError as e:
                        raise MachineError(f"cannot give {name} the address {address}: {e.strerror}") from e
            if self.family is Family.IP6:
                wait_for_local_routes(
                    a.value for i in self.node.interfaces for a in i.addresses if a.family is Family.IP6
                )
            self.apply_sysctls()
            # A gateway must be reachable when its route is added, so routes on the link come first.
            for route in sorted(self.node.routes, key=lambda r: r.via is not None):
                if route.family is self.family:
                    self._add_route(routing, route)
            if self.node.has_own_rules(self.family):
                self._set_rules(routing)

    def _add_route(self, routing: Routing, route: Route) -> None:
        index = self.indexes[route.dev] if route.dev else None
        try:
            routing.add_route(index, route)
        except OSError as e:
            raise MachineError(f"cannot add the route {route}: {e.strerror}") from e

    def _set_rules(self, routing: Routing) -> None:
        """Replace the default routing rules with the node's."""
        for rule in DEFAULT_RULES:
            if rule.family is self.family:
                routing.delete_rule(rule)
        for rule in self.node.rules_of(self.family):
            try:
                routing.add_rule(rule)
            except OSError as e:
                raise MachineError(f"cannot add the routing rule {rule}: {e.strerror}") from e

    def _open_tap(self, name: str) -> int:
        try:
            fd = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
            fcntl.ioctl(fd, _TUNSETIFF, struct.pack("16sH22x", name.encode(), _IFF_TAP_NO_PI))
        except PermissionError as e:
            raise MachineError(f"no permission to open /dev/net/tun: {e.strerror}; root is needed") from e
        except OSError as e:
            raise MachineError(f"cannot make the TAP device {name}: {e.strerror}") from e
        switch_off(name, *Offload)
        index = socket.if_nametoindex(name)
        self.indexes[name] = index
        self._names[index] = name
        self._taps[name] = fd
        self._tap_names[fd] = name
        self._poll.register(fd, select.EPOLLIN)
        return index

    def _sender(self, uid: int, gid: int) -> socket.socket:
        sender = self._senders.get((uid, gid))
        if sender is None:
            with opening_as(uid, gid):
                sender = socket.socket(self.family.socket_family, socket.SOCK_RAW, socket.IPPROTO_RAW)
            self._senders[uid, gid], self._marks[uid, gid] = sender, 0
        return sender

    def _open_fence(self) -> socket.socket:
        fence = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ETH_P_FENCE))
        fence.bind(("lo", _ETH_P_FENCE))
        fence.settimeout(_FENCE_SECONDS)
        return fence


def _mac_bytes(mac: int) -> bytes:
    return mac.to_bytes(6, "big")


def _now() -> float:
    return time.monotonic()


def _marks(packets: list[bytes], marked: list[tuple[bytes, int]]) -> list[int | None]:
    """Return the marks of packets that left by a device, as its packet socket saw them; None if not seen."""
    if packets == [data for data, _ in marked]:
        return [mark for _, mark in marked]
    marks: dict[bytes, list[int]] = {}
    for data, mark in marked:
        marks.setdefault(data, []).append(mark)
    return [of.pop(0) if (of := marks.get(data)) else None for data in packets]


def _is_listener_report(frame: bytes) -> bool:
    """Return whether an IPv6 frame is a multicast listener report: options, then ICMPv6, to ff02::/16."""
    return frame[20:21] == b"\0" and frame[38:40] == b"\xff\x02" and frame[54:55] == b"\x3a"
