"""``-j HMARK``: the mark that a packet gets from a hash."""

from __future__ import annotations

from translate.dataclass import dataclass

__all__ = ["HashMark"]


@dataclass(frozen=True, slots=True, kw_only=True)
class HashMark:
    """``mark = hash * modulus / 2**32 + offset``, by addresses, ports and protocol (``hmark_hash``).

    The addresses are masked, and of an IPv6 address the four words are combined by exclusive or. The lower
    one comes first. ``port_mask`` and ``port_set`` have the source port in the upper half and the destination
    port in the lower one, or an SPI: the bits of the first are kept, then those of the second are set. The
    higher of both ports comes first. ``seed`` begins the hash (``--hmark-rnd``).

    ``by_connection``: the source of the connection's first packet, and the source of its answers (``ct``); a
    packet without a connection keeps its mark. Otherwise they are those of the packet. For an ICMP error they
    are those of the packet that it quotes, and without a whole IP header there, the error keeps its mark.
    """

    source_mask: int
    destination_mask: int
    port_mask: int
    port_set: int
    protocol_mask: int
    seed: int
    modulus: int
    offset: int
    by_connection: bool = False
