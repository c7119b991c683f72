"""The instructions of nf_tables that change a packet, a connection, a set or a counter, or end its path."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = [
    "Count",
    "HandOver",
    "Help",
    "Log",
    "Nat",
    "NoTrack",
    "ProxyHandshake",
    "Reject",
    "SendCopy",
    "SetCt",
    "SetCtZone",
    "SetMeta",
    "SetTcpOption",
    "StorePayload",
    "StripTcpOption",
    "Take",
    "TransparentProxy",
    "UpdateSet",
]


@dataclass(frozen=True, slots=True)
class StorePayload:
    """``payload set``: the same bytes, from a register. ``summed``: the checksum of the header is updated."""

    base: str
    offset: int
    length: int
    register: int
    summed: bool


@dataclass(frozen=True, slots=True)
class UpdateSet:
    """``dynset``: ``operation`` is add, update or delete.

    ``over`` is True if the element's limit matches above its rate, False if below it, and None without a
    limit. ``limit`` is the maximum number of connections if connections are limited.
    """

    operation: str
    set: int
    register: int
    over: bool | None = None
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class Count:
    """``objref`` to a named counter."""

    name: str


@dataclass(frozen=True, slots=True)
class Take:
    """``objref`` to a named limit or quota."""

    name: str


@dataclass(frozen=True, slots=True)
class Help:
    """``objref`` to a named helper of conntrack."""

    name: str


@dataclass(frozen=True, slots=True)
class SetMeta:
    """``meta KEY set``: the key as nft spells it."""

    key: str
    register: int


@dataclass(frozen=True, slots=True)
class SetCt:
    """``ct KEY set``: the key as nft spells it."""

    key: str
    register: int


@dataclass(frozen=True, slots=True)
class SendCopy:
    """``dup``: the registers of the address and, if given, of the device's index."""

    address: int
    device: int | None


@dataclass(frozen=True, slots=True)
class ProxyHandshake:
    """``synproxy``, which takes every packet with SYN or ACK (``nft_synproxy_eval``)."""

    mss: int
    wscale: int
    flags: int


@dataclass(frozen=True, slots=True)
class TransparentProxy:
    """``tproxy``, which always finds a socket here: the registers of its address and port, if given."""

    address: int | None
    port: int | None


@dataclass(frozen=True, slots=True)
class HandOver:
    """``queue``: the first queue, the number of queues, and ``NFT_QUEUE_FLAG_*``."""

    first: int
    total: int
    flags: int


@dataclass(frozen=True, slots=True)
class StripTcpOption:
    """Remove a TCP option (``reset tcp option``)."""

    kind: int


@dataclass(frozen=True, slots=True)
class SetTcpOption:
    """``tcp option … set``: ``length`` bytes at ``offset`` of an option's header."""

    kind: int
    offset: int
    length: int
    register: int


@dataclass(frozen=True, slots=True)
class SetCtZone:
    """``ct zone set``, for one direction if given."""

    direction: str | None
    register: int


@dataclass(frozen=True, slots=True)
class Nat:
    """``nat``, ``masq`` and ``redir``: the registers of both ends of addresses and ports, if given."""

    kind: str
    addresses: tuple[int, int] | None
    ports: tuple[int, int] | None
    flags: int


@dataclass(frozen=True, slots=True)
class Reject:
    """``reject``: type and code of the answer (``enum nft_reject_types``)."""

    kind: int
    code: int


@dataclass(frozen=True, slots=True)
class Log:
    """``log``: to a netlink group, or with a level to the kernel's log."""

    prefix: str
    group: int | None
    snaplen: int
    threshold: int
    level: int | None
    flags: int


@dataclass(frozen=True, slots=True)
class NoTrack:
    """Exempt the packet from conntrack (``notrack``)."""
