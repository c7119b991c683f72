"""The few netlink requests that a node needs, packed by hand.

Importing a library takes longer than all other work of a replay before its first packet, and forgetting a
connection between two flows must take microseconds. See rtnetlink(7), ``linux/netfilter/nfnetlink*.h``.
"""

from __future__ import annotations

import errno
import functools
import os
import socket
import struct
from collections.abc import Sequence
from typing import Final, Self

from backends.model.routes import Route, RoutingRule, RuleAction
from translate.ir import AddressType, Family, Interval

__all__ = ["Accounting", "Conntrack", "Netlink", "Routing", "attribute", "attributes", "nested"]

_HEADER: Final = struct.Struct("=IHHII")
_NLMSG_ERROR: Final = 2
_NLMSG_DONE: Final = 3
_REQUEST: Final = 0x1
_ACK: Final = 0x4
_DUMP: Final = 0x300
_DUMP_INTR: Final = 0x10
_CREATE: Final = 0x400
_REPLACE: Final = 0x100
_EXCL: Final = 0x200

_RTM_NEWLINK: Final = 16
_RTM_NEWADDR: Final = 20
_RTM_NEWROUTE: Final = 24
_RTM_NEWRULE, _RTM_DELRULE = 32, 33
_RTM_NEWQDISC: Final = 36
_IFF_UP, _IFF_NOARP = 0x1, 0x80
_IFLA_ADDRESS: Final = 1
_IFLA_TXQLEN: Final = 13
_IFLA_GROUP: Final = 27
_IFA_ADDRESS: Final = 1
_IFA_LOCAL: Final = 2
_IFA_F_NODAD: Final = 2
_RTA_DST: Final = 1
_RTA_OIF: Final = 4
_RTA_GATEWAY: Final = 5
_RTA_TABLE: Final = 15
_RTPROT_STATIC: Final = 4
_SCOPE_UNIVERSE: Final = 0
_SCOPE_LINK: Final = 253
_SCOPE_HOST: Final = 254
_SCOPES: Final = {AddressType.UNICAST: _SCOPE_LINK, AddressType.LOCAL: _SCOPE_HOST}
"""The scopes of routes without a gateway (``iproute_modify``)."""
_RTNH_ONLINK: Final = 4
_FRA_DST, _FRA_SRC, _FRA_IIFNAME, _FRA_PRIORITY, _FRA_FWMARK = 1, 2, 3, 6, 10
_FRA_SUPPRESS_PREFIXLEN, _FRA_TABLE, _FRA_FWMASK, _FRA_OIFNAME = 14, 15, 16, 17
_FIB_RULE_INVERT: Final = 2
_FR_ACT: Final = {
    RuleAction.LOOKUP: 1,
    RuleAction.BLACKHOLE: 6,
    RuleAction.UNREACHABLE: 7,
    RuleAction.PROHIBIT: 8,
}
_TCA_KIND: Final = 1
_TC_H_ROOT: Final = 0xFFFFFFFF

_NETLINK_NETFILTER: Final = 12
_ACCT_NEW: Final = 7 << 8 | 0  # NFNL_SUBSYS_ACCT, NFNL_MSG_ACCT_NEW
_NFACCT_NAME: Final = 1
_CT_DELETE: Final = 1 << 8 | 2  # NFNL_SUBSYS_CTNETLINK, IPCTNL_MSG_CT_DELETE
_CT_STATS: Final = 1 << 8 | 5  # IPCTNL_MSG_CT_GET_STATS
_CTA_STATS_ENTRIES: Final = 1
_NLA_F_NESTED: Final = 0x8000
_CTA_TUPLE_ORIG: Final = 1
_CTA_TUPLE_IP, _CTA_TUPLE_PROTO = 1, 2
_CTA_IP_V4_SRC, _CTA_IP_V4_DST, _CTA_IP_V6_SRC, _CTA_IP_V6_DST = 1, 2, 3, 4
_CTA_PROTO_NUM, _CTA_PROTO_SRC_PORT, _CTA_PROTO_DST_PORT = 1, 2, 3


class Netlink:
    """A netlink socket of the current network namespace."""

    def __init__(self, protocol: int) -> None:
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, protocol)
        self._socket.bind((0, 0))
        self._sequence = 0

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def request(self, kind: int, flags: int, body: bytes) -> int:
        """Send one request, wait for its acknowledgement, and return its errno (0: success)."""
        self._sequence += 1
        header = _HEADER.pack(16 + len(body), kind, flags | _REQUEST | _ACK, self._sequence, 0)
        self._socket.send(header + body)
        while True:
            answer = self._socket.recv(65536)
            _, kind, _, sequence, _ = _HEADER.unpack_from(answer)
            if kind == _NLMSG_ERROR and sequence == self._sequence:
                return -int(struct.unpack_from("=i", answer, 16)[0])

    def transact(
        self, begin: tuple[int, bytes], requests: Sequence[tuple[int, bytes]], end: tuple[int, bytes]
    ) -> int:
        """Send requests that the kernel executes together or not at all, and return the errno (0: success).

        ``begin`` and ``end`` enclose them, as ``nfnetlink_rcv_batch`` of the kernel requires.
        """
        messages: list[bytes] = []
        for kind, body in (begin, *requests, end):
            self._sequence += 1
            flags = _REQUEST | _ACK if len(messages) == len(requests) else _REQUEST
            messages.append(_HEADER.pack(16 + len(body), kind, flags, self._sequence, 0) + body)
        self._socket.send(b"".join(messages))
        last, failed = self._sequence - 1, 0
        while True:
            data = self._socket.recv(1 << 20)
            while len(data) >= 16:
                length, kind, _, sequence, _ = _HEADER.unpack_from(data)
                if kind == _NLMSG_ERROR:
                    failed = failed or -int(struct.unpack_from("=i", data, 16)[0])
                    if sequence >= last:
                        return failed
                data = data[(length + 3) & ~3 :]

    def answer(self, kind: int, body: bytes) -> bytes:
        """Return the message that answers one request, without its header. Raises OSError."""
        self._sequence += 1
        self._socket.send(_HEADER.pack(16 + len(body), kind, _REQUEST, self._sequence, 0) + body)
        while True:
            data = self._socket.recv(65536)
            length, kind, _, sequence, _ = _HEADER.unpack_from(data)
            if sequence == self._sequence:
                if kind == _NLMSG_ERROR:
                    number = -int(struct.unpack_from("=i", data, 16)[0])
                    raise OSError(number, os.strerror(number))
                return data[16:length]

    def dump(self, kind: int, body: bytes) -> list[bytes]:
        """Return the messages that answer a dump, without their headers. Raises OSError.

        The kernel marks messages of a dump during which its objects have changed; the dump is then repeated.
        """
        self._sequence += 1
        header = _HEADER.pack(16 + len(body), kind, _DUMP | _REQUEST, self._sequence, 0)
        self._socket.send(header + body)
        messages: list[bytes] = []
        marks = 0
        while True:
            data = self._socket.recv(1 << 20)
            while len(data) >= 16:
                length, answered, flags, sequence, _ = _HEADER.unpack_from(data)
                if sequence == self._sequence:
                    marks |= flags & _DUMP_INTR
                    if answered == _NLMSG_DONE:
                        return self.dump(kind, body) if marks else messages
                    if answered == _NLMSG_ERROR:
                        number = -int(struct.unpack_from("=i", data, 16)[0])
                        raise OSError(number, os.strerror(number))
                    messages.append(data[16:length])
                data = data[(length + 3) & ~3 :]

    def demand(self, kind: int, flags: int, body: bytes) -> None:
        """Send one request. Raises OSError with the kernel's reason if it is refused."""
        number = self.request(kind, flags, body)
        if number:
            raise OSError(number, os.strerror(number))


class Routing(Netlink):
    """Links, addresses and routes. Methods raise OSError with the kernel's reason."""

    def __init__(self) -> None:
        super().__init__(socket.NETLINK_ROUTE)

    def set_up(
        self,
        index: int,
        *,
        mac: bytes | None = None,
        queue: int | None = None,
        group: int = 0,
        arp: bool = True,
    ) -> None:
        """Bring a link up, with a hardware address, a queue length, a group, and optionally without ARP."""
        flags = _IFF_UP if arp else _IFF_UP | _IFF_NOARP
        body = struct.pack("=BxHiII", socket.AF_UNSPEC, 0, index, flags, flags)
        if mac is not None:
            body += attribute(_IFLA_ADDRESS, mac)
        if queue is not None:
            body += attribute(_IFLA_TXQLEN, struct.pack("=I", queue))
        if group:
            body += attribute(_IFLA_GROUP, struct.pack("=I", group))
        self.demand(_RTM_NEWLINK, 0, body)

    def send_at_once(self, index: int) -> None:
        """Make a link send without a queue (``noqueue``).

        With a queue, a sender leaves its packet to another CPU that is sending (``__dev_xmit_skb``).
        """
        body = struct.pack("=BxHiIII", socket.AF_UNSPEC, 0, index, 0, _TC_H_ROOT, 0)
        body += attribute(_TCA_KIND, b"noqueue\0")
        self.demand(_RTM_NEWQDISC, _CREATE | _REPLACE, body)

    def add_address(self, index: int, family: Family, value: int, length: int) -> None:
        """Add an address to a link. For an IPv6 address, duplicate address detection is switched off."""
        flags = _IFA_F_NODAD if family is Family.IP6 else 0
        packed = value.to_bytes(family.bits // 8, "big")
        body = struct.pack("=BBBBi", family.socket_family, length, flags, 0, index)
        body += attribute(_IFA_LOCAL, packed) + attribute(_IFA_ADDRESS, packed)
        self.demand(_RTM_NEWADDR, _CREATE | _EXCL, body)

    def add_route(self, index: int | None, route: Route) -> None:
        """Add a route; ``index`` is that of its interface, if it has one.

        An IPv4 gateway is assumed to be on the link of its device, even without a connected route, as for
        overlay networks (``ip route add … onlink``). A gateway with an address of the node itself needs such
        a route instead (``fib_check_nh_v4_gw``).
        """
        family, via = route.family, route.via
        length = route.dst.prefix_length(family.bits)
        if length is None:
            raise OSError(errno.EINVAL, "its destination is not a prefix")
        scope = _SCOPES.get(route.type, _SCOPE_UNIVERSE)
        if family is Family.IP6 or via is not None:
            scope = _SCOPE_UNIVERSE
        body = b""
        size = family.bits // 8
        if length:
            body += attribute(_RTA_DST, route.dst.low.to_bytes(size, "big"))
        if index is not None:
            body += attribute(_RTA_OIF, struct.pack("=i", index))
        body += attribute(_RTA_TABLE, struct.pack("=I", route.table))
        if via is not None:
            body += attribute(_RTA_GATEWAY, via.to_bytes(size, "big"))
        head = (family.socket_family, length, 0, 0, 0, _RTPROT_STATIC, scope, route.type)
        flags = _RTNH_ONLINK if via is not None and family is Family.IP else 0
        number = self._new_route(head, flags, body)
        if number == errno.EINVAL and flags and not self._new_route(head, 0, body):
            return
        if number:
            raise OSError(number, os.strerror(number))

    def _new_route(self, head: tuple[int, ...], flags: int, body: bytes) -> int:
        return self.request(_RTM_NEWROUTE, _CREATE | _EXCL, struct.pack("=BBBBBBBBI", *head, flags) + body)

    def add_rule(self, rule: RoutingRule) -> None:
        """Add a routing rule, after those of the same priority."""
        self.demand(_RTM_NEWRULE, _CREATE, _rule_body(rule))

    def delete_rule(self, rule: RoutingRule) -> None:
        """Delete a routing rule."""
        self.demand(_RTM_DELRULE, 0, _rule_body(rule))


class Conntrack(Netlink):
    """Forgets connections of the current network namespace."""

    def __init__(self) -> None:
        super().__init__(_NETLINK_NETFILTER)

    def flush(self) -> None:
        """Forget every connection.

        ``nf_ct_iterate_cleanup_net`` walks the hash table of the whole machine, unless this namespace has no
        connection. That takes milliseconds on a machine with much memory.
        """
        self.demand(_CT_DELETE, 0, struct.pack("=BBH", socket.AF_INET, 0, 0))

    def forget(self, family: Family, src: int, dst: int, proto: int, sport: int, dport: int) -> bool:
        """Forget the connection of a packet with these fields, if there is one; this takes microseconds.

        The protocol must have ports. Return False if the kernel keeps it, because it is in a flowtable.
        """
        size = family.bits // 8
        a, b, c, d, e, f = _original_tuple(family)
        addresses = a + src.to_bytes(size, "big") + b + dst.to_bytes(size, "big") + c
        ports = d + sport.to_bytes(2, "big") + e + dport.to_bytes(2, "big") + f
        number = self.request(_CT_DELETE, 0, addresses + bytes((proto,)) + ports)
        if number not in (0, errno.ENOENT, errno.EBUSY):
            raise OSError(number, os.strerror(number))
        return number != errno.EBUSY

    def count(self) -> int:
        """Return the number of connections in this namespace; this takes microseconds. Raises OSError."""
        stats = self.answer(_CT_STATS, struct.pack("=BBH", socket.AF_UNSPEC, 0, 0))
        return int.from_bytes(attributes(stats[4:])[_CTA_STATS_ENTRIES], "big")


class Accounting(Netlink):
    """The counters of ``-m nfacct`` (``nfnetlink_acct``) in the current network namespace."""

    def __init__(self) -> None:
        super().__init__(_NETLINK_NETFILTER)

    def add(self, name: str) -> None:
        """Create an object that counts from zero and has no quota."""
        body = struct.pack("=BBH", socket.AF_UNSPEC, 0, 0) + attribute(_NFACCT_NAME, name.encode() + b"\0")
        self.demand(_ACCT_NEW, _CREATE | _EXCL, body)


def _rule_body(rule: RoutingRule) -> bytes:
    """Return a rule as ``struct fib_rule_hdr`` and attributes (``linux/fib_rules.h``)."""
    source, src_length = _selector(rule, rule.src)
    destination, dst_length = _selector(rule, rule.dst)
    body = struct.pack(
        "=BBBBBBBBI",
        rule.family.socket_family,
        dst_length,
        src_length,
        0,
        0,
        0,
        0,
        _FR_ACT[rule.action],
        _FIB_RULE_INVERT if rule.negated else 0,
    )
    body += attribute(_FRA_PRIORITY, struct.pack("=I", rule.priority))
    if dst_length:
        body += attribute(_FRA_DST, destination)
    if src_length:
        body += attribute(_FRA_SRC, source)
    if rule.iif:
        body += attribute(_FRA_IIFNAME, rule.iif.encode() + b"\0")
    if rule.oif:
        body += attribute(_FRA_OIFNAME, rule.oif.encode() + b"\0")
    if rule.mask:
        body += attribute(_FRA_FWMARK, struct.pack("=I", rule.mark))
        body += attribute(_FRA_FWMASK, struct.pack("=I", rule.mask))
    if rule.action is RuleAction.LOOKUP:
        body += attribute(_FRA_TABLE, struct.pack("=I", rule.table))
    if rule.suppress is not None:
        body += attribute(_FRA_SUPPRESS_PREFIXLEN, struct.pack("=I", rule.suppress))
    return body


@functools.cache
def _original_tuple(family: Family) -> tuple[bytes, ...]:
    """Return the pieces of a request for the connection of an original tuple.

    Between them are the source, the destination, the protocol, the source port and the destination port.
    """
    size, v6 = family.bits // 8, family is Family.IP6
    addresses = attribute(_CTA_IP_V6_SRC if v6 else _CTA_IP_V4_SRC, bytes(size))
    addresses += attribute(_CTA_IP_V6_DST if v6 else _CTA_IP_V4_DST, bytes(size))
    ports = attribute(_CTA_PROTO_NUM, bytes(1))
    ports += attribute(_CTA_PROTO_SRC_PORT, bytes(2)) + attribute(_CTA_PROTO_DST_PORT, bytes(2))
    connection = nested(_CTA_TUPLE_IP, addresses) + nested(_CTA_TUPLE_PROTO, ports)
    body = struct.pack("=BBH", family.socket_family, 0, 0) + nested(_CTA_TUPLE_ORIG, connection)
    pieces, at = [], 0
    # Each value follows the header of its attribute; the second and fourth also follow padding or a header.
    for skipped, width in ((16, size), (4, size), (8, 1), (7, 2), (6, 2)):
        pieces.append(body[at : at + skipped])
        at += skipped + width
    return (*pieces, body[at:])


def _selector(rule: RoutingRule, network: Interval | None) -> tuple[bytes, int]:
    bits = rule.family.bits
    if network is None:
        return b"", 0
    return network.low.to_bytes(bits // 8, "big"), bits + 1 - network.size.bit_length()


def nested(kind: int, value: bytes) -> bytes:
    """Return an attribute that contains attributes."""
    return attribute(_NLA_F_NESTED | kind, value)


def attributes(data: bytes) -> dict[int, bytes]:
    """Return the values of the attributes in ``data`` by their kind."""
    values: dict[int, bytes] = {}
    while len(data) >= 4:
        length, kind = struct.unpack_from("=HH", data)
        if length < 4:
            break
        values[kind & 0x3FFF] = data[4:length]
        data = data[(length + 3) & ~3 :]
    return values


def attribute(kind: int, value: bytes) -> bytes:
    """Return an attribute, padded to four bytes."""
    return struct.pack("=HH", 4 + len(value), kind) + value + bytes(-len(value) % 4)
