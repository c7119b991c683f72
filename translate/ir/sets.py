"""ipsets: named sets of addresses and ports that rules test with ``-m set``."""

from __future__ import annotations

from enum import Enum, StrEnum
from typing import Final

from translate.dataclass import dataclass, field
from translate.ir.family import Family
from translate.ir.fields import Field, Protocol
from translate.ir.matches import SetDirection
from translate.ir.origin import NOWHERE, Origin
from translate.ir.values import Interval

__all__ = ["SET_PORT_PROTOCOLS", "Cell", "IpSet", "SetElement", "SetOption", "SetType"]

SET_PORT_PROTOCOLS: Final = frozenset({Protocol.TCP, Protocol.UDP, Protocol.SCTP, Protocol.UDPLITE})
"""Protocols for which ``hash:…,port`` sets read a port (``get_port`` of ``ip_set_getport.c``).

For ICMP and ICMPv6 the "port" is ``type << 8 | code`` in both directions; for every other protocol it
is 0.
"""


class Cell(Enum):
    """One part of an element's key."""

    ADDRESS = "address"
    NET = "net"  # an address, compared under the element's prefix length
    PROTOCOL = "protocol"
    PORT = "port"


_PORT: Final = (Cell.PROTOCOL, Cell.PORT)


class SetType(StrEnum):
    """The types of ipsets that can be read, spelled as ``ipset create`` spells them."""

    BITMAP_PORT = "bitmap:port"
    HASH_IP = "hash:ip"
    HASH_IP_PORT = "hash:ip,port"
    HASH_IP_PORT_IP = "hash:ip,port,ip"
    HASH_IP_PORT_NET = "hash:ip,port,net"
    HASH_NET = "hash:net"
    HASH_NET_PORT = "hash:net,port"

    @property
    def dimensions(self) -> tuple[tuple[Cell, ...], ...]:
        """The cells of each dimension; a rule gives one direction for each dimension.

        A port comes with its protocol, except in ``bitmap:port``, whose ports are those of TCP and UDP alike
        and of no other protocol (``ip_set_get_ip_port`` of ``ip_set_bitmap_port.c``).
        """
        return _DIMENSIONS[self]

    @property
    def cells(self) -> tuple[Cell, ...]:
        """The cells of a key, in order."""
        return tuple(cell for dimension in self.dimensions for cell in dimension)


_DIMENSIONS: Final = {
    SetType.BITMAP_PORT: ((Cell.PORT,),),
    SetType.HASH_IP: ((Cell.ADDRESS,),),
    SetType.HASH_IP_PORT: ((Cell.ADDRESS,), _PORT),
    SetType.HASH_IP_PORT_IP: ((Cell.ADDRESS,), _PORT, (Cell.ADDRESS,)),
    SetType.HASH_IP_PORT_NET: ((Cell.ADDRESS,), _PORT, (Cell.NET,)),
    SetType.HASH_NET: ((Cell.NET,),),
    SetType.HASH_NET_PORT: ((Cell.NET,), _PORT),
}


@dataclass(frozen=True, slots=True)
class SetOption:
    """An option of a set or an element as spelled: ``timeout 0``, ``counters``, ``comment "x"``."""

    name: str
    value: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SetElement:
    """A set element: an interval per cell, which is a prefix in :attr:`Cell.NET` and a point in others.

    A ``nomatch`` element excludes the packets for which it is the most specific element.
    """

    key: tuple[Interval, ...]
    nomatch: bool = False
    options: tuple[SetOption, ...] = ()
    origin: Origin = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class IpSet:
    """An ipset with its elements at the time of reading; rules do not change it.

    ``family`` is None for ``bitmap:port``, which rules of both families may test. ``options`` are the options
    of ``ipset create``, in order, with ``family``. No two elements have the same key.

    A packet is in the set when an element has its key; among nets, the element with the longest prefix
    decides (``mtype_test_cidrs`` of ``ip_set_hash_gen.h``).
    """

    name: str
    type: SetType
    family: Family | None
    elements: tuple[SetElement, ...]
    options: tuple[SetOption, ...] = ()
    origin: Origin = field(default=NOWHERE, compare=False)

    def fields(self, directions: tuple[SetDirection, ...]) -> tuple[Field, ...]:
        """Return the field of each cell; for a port, the field of the protocols that have ports."""
        fields: list[Field] = []
        for cells, side in zip(self.type.dimensions, directions, strict=True):
            src = side is SetDirection.SRC
            for cell in cells:
                match cell:
                    case Cell.ADDRESS | Cell.NET:
                        fields.append(Field.SADDR if src else Field.DADDR)
                    case Cell.PROTOCOL:
                        fields.append(Field.L4PROTO)
                    case Cell.PORT:
                        fields.append(Field.SPORT if src else Field.DPORT)
        return tuple(fields)
