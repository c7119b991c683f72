"""Address families, and the text form of their addresses."""

from __future__ import annotations

import socket
from enum import StrEnum

__all__ = ["Family", "format_address", "parse_address"]


class Family(StrEnum):
    """An address family, spelled as nftables spells it."""

    IP = "ip"
    IP6 = "ip6"

    @property
    def bits(self) -> int:
        """Width of an address: 32 or 128."""
        return 32 if self is Family.IP else 128

    @property
    def version(self) -> int:
        """The IP version number: 4 or 6."""
        return 4 if self is Family.IP else 6

    @property
    def socket_family(self) -> int:
        """``AF_INET`` or ``AF_INET6``."""
        return socket.AF_INET if self is Family.IP else socket.AF_INET6


def format_address(family: Family, value: int) -> str:
    """Return the canonical text of an address given as an integer in network order."""
    if family is Family.IP:
        return socket.inet_ntop(socket.AF_INET, value.to_bytes(4, "big"))
    return socket.inet_ntop(socket.AF_INET6, value.to_bytes(16, "big"))


def parse_address(family: Family, text: str) -> int:
    """Return the integer of an address in canonical text form.

    Raises ValueError for any other text, also for ``10.1`` and ``010.0.0.1``.
    """
    try:
        return int.from_bytes(socket.inet_pton(family.socket_family, text), "big")
    except (OSError, UnicodeError) as e:
        raise ValueError(f"not an IPv{family.version} address: {text!r}") from e
